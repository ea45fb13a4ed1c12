"""``fd.plan(inputs)``: a definition bound to one signature of inputs, to call again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...cache.calls.binding import Binding, refuse_changed
from ...cache.calls.cuda_graphs import CapturedGraph, capture
from ...cache.calls.guarded_calls import GuardedCallInto
from ...cache.executor import FusionExecutorCache
from ...cache.keys.storage import modes_active
from ...cache.plan.execution_plan import ExecutionPlan
from ...cache.plan.steps import Step
from ...heuristics.params import HeuristicParams
from ...ir import Fusion
from ...lowering.kernel_source import KernelSource
from ...lowering.run_options import DEFAULT, RunOptions
from ...pickling import Unpicklable
from ..multidevice.sharded_executor import ShardedExecutor
from ..record.inputs import Inputs, flatten_inputs, locate_errors
from ..record.recording import Recording
from ..vocabulary.unavailable import UnavailableError
from ..vocabulary.untraced import untraced


class BoundPlan(Unpicklable):
    """What a definition does with inputs of one signature; ``fd.plan(inputs)`` makes one.

    A call runs it. Sizes, strides, dtypes, device and alignment must be those of the inputs it was
    made with, and numbers that a shape depends on must be the same; else the call raises an
    ``InputError``. Later changes of ``TRITONFUSER_`` variables have no effect on it. It runs on
    torch's current stream. Threads may share it.

    Examples
    --------
    >>> plan = fd.plan([a, b])
    >>> (out,) = plan([a, b])
    >>> (out,) = plan([a, b], out=[out])
    >>> graph = plan.graph([a, b])
    """

    send_instead = "Send the definition and call fd.plan(inputs) where it arrives."

    def __init__(
        self, plan: ExecutionPlan, fusion: Fusion, recording: Recording, inputs: Inputs
    ) -> None:
        self._recording = recording
        self._binding = Binding(plan, fusion, inputs)
        self._plan = plan
        self._guarded = self._binding.guarded(inputs)
        self._guarded_into: GuardedCallInto | None = None

    @untraced
    def __call__(
        self, inputs: Inputs, out: Sequence[torch.Tensor | None] | None = None
    ) -> list[torch.Tensor]:
        """Run it.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``.
        out : list of (Tensor or None), optional
            One for each output that is returned, with the shape, strides, dtype and device that
            the plan would allocate; ``plan.allocate()`` makes such tensors. Results are written
            there, and these tensors are returned. A kernel writes directly into a tensor given
            for a result with a buffer of its own. Copied are results that are views of an input
            or of another result, that torch computes, or that are an input written to. For None
            the plan allocates. Tensors in ``out`` must share no memory with the inputs or with
            one another; an output that is written into an input may be given that input.

        Returns
        -------
        list of Tensor
            The outputs that are not hidden, in order.

        Raises
        ------
        InputError
            Inputs or tensors in ``out`` do not fit the signature of the plan; nothing was run.
        """
        if out is None:
            return self._guarded.run(inputs, self._missed)
        if self._guarded_into is None:
            return self._missed_into(inputs, out)
        return self._guarded_into.run(inputs, out, self._missed_into)

    @untraced
    def allocate(self) -> list[torch.Tensor | None]:
        """New uninitialized tensors with the layouts of the results, to be given as ``out``.

        None for a result whose elements share memory, as after ``expand``.
        """
        return self._binding.allocate()

    @untraced
    def graph(
        self, inputs: Inputs, out: Sequence[torch.Tensor | None] | None = None
    ) -> CapturedGraph:
        """Capture a run as a CUDA graph, on these very tensors.

        ``graph()`` replays it on the current contents of these tensors. ``graph(inputs)`` copies
        other inputs into them first. ``graph.outputs`` are the results, overwritten by each
        replay. Numbers among the inputs are fixed. Each replay draws new random numbers from
        torch's generator, other ones than a run outside of a graph does.

        Parameters
        ----------
        inputs, out
            As for a call. 0-dim CPU tensors are read at the capture, or by ``graph(inputs)``.

        Raises
        ------
        CaptureError
            The plan runs on a CPU, or writes to one, or a capture is going on already.
        """
        given = self._checked_inputs(inputs)
        return capture(self._binding, given, self._checked_out(given, out), self._checked_inputs)

    # -- copies ---------------------------------------------------------------------------------

    def __copy__(self) -> BoundPlan:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BoundPlan:
        # Threads may share a plan, so copies of what holds one may.
        return self

    # -- what it is -----------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self._plan.device

    @property
    def kernels(self) -> list[KernelSource]:
        """The generated kernels, in order; what torch computes is not among them."""
        return [step.source for step in self._plan.steps if step.source is not None]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The generated kernels and the calls of torch, in order."""
        return self._plan.steps

    @property
    def params(self) -> list[HeuristicParams]:
        """The params of the segments, as ``fd.heuristics(inputs)`` gives them."""
        return [segment.params for segment in self._plan.lowered.segmented.segments]

    @property
    def text(self) -> str:
        """The generated function of a run, without guards."""
        return self._plan.text

    def __repr__(self) -> str:
        names = [step.name for step in self._plan.steps]
        return f"<BoundPlan on {self.device}: {', '.join(names) or 'nothing to launch'}>"

    # -- guard misses ---------------------------------------------------------------------------

    def _checked_inputs(self, inputs: Inputs) -> Inputs:
        """The inputs without nested lists.

        Raises
        ------
        InputError
            They do not fit.
        """
        given = flatten_inputs(inputs)
        with locate_errors(self._recording):
            error = self._binding.input_error(given)
            if error is not None:
                raise error
        return given

    def _checked_out(
        self, inputs: Inputs, out: Sequence[torch.Tensor | None] | None
    ) -> Sequence[torch.Tensor | None] | None:
        error = None if out is None else self._binding.out_error(inputs, out)
        if error is not None:
            raise error
        return out

    def _missed(self, inputs: Inputs) -> list[torch.Tensor]:
        """Raise for inputs that do not fit; run others, and make a guard that takes such ones."""
        given = self._checked_inputs(inputs)
        if given is inputs and not modes_active():
            self._guarded = self._binding.guarded(given, self._guarded)
        return self._plan.run(given)

    def _missed_into(self, inputs: Inputs, out: Any) -> list[torch.Tensor]:
        given = self._checked_inputs(inputs)
        self._checked_out(given, out)
        self._guarded_into = into = self._binding.guarded_into(given, out, self._guarded_into)
        return into.run(given, out, refuse_changed)


def bind(
    core: FusionExecutorCache,
    inputs: Inputs,
    recording: Recording,
    options: RunOptions = DEFAULT,
) -> BoundPlan:
    """The bound plan of a recorded definition for flat inputs.

    Raises
    ------
    UnavailableError
        The definition is over a mesh.
    """
    if isinstance(core, ShardedExecutor):
        raise UnavailableError(
            "a bound plan of a definition over a mesh is not available in tritonfuser",
            hint="Use fd.run(inputs), which runs it in pieces.",
        )
    plan = core.plan(inputs, options)
    return BoundPlan(plan, core.fusion, recording, inputs)
