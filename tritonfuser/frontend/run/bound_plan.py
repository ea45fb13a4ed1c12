"""``fd.plan(inputs)``: a definition bound to one signature of inputs, to call again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...cache.calls.binding import Bound, refuse_changed
from ...cache.calls.cuda_graphs import CapturedGraph, capture
from ...cache.calls.entries import Into
from ...cache.executor import FusionExecutorCache
from ...cache.plan.execution_plan import ExecutionPlan
from ...heuristics.params import HeuristicParams
from ...ir import Fusion
from ...lowering.kernel_source import KernelSource
from ...lowering.passes.contractions_to_mma import Products
from ..multidevice.sharded_executor import ShardedExecutor
from ..record.inputs import Inputs, flat, placing
from ..record.recording import Recording
from ..vocabulary.unavailable import UnavailableError


class BoundPlan:
    """What a definition does with inputs of one signature; ``fd.plan(inputs)`` makes one.

    A call runs it. The look at the inputs is the cheapest that lets nothing wrong through: sizes,
    strides, dtypes, device and alignment have to be those of the inputs it was made with, and
    numbers that a shape depends on have to be the same; anything else is an ``InputError``. A
    change of ``TRITONFUSER_`` options does not reach it. Threads may share one, and it follows
    torch's current stream.

    Examples
    --------
    >>> plan = fd.plan([a, b])
    >>> (out,) = plan([a, b])
    >>> (out,) = plan([a, b], out=[out])
    >>> graph = plan.graph([a, b])
    """

    def __init__(
        self, plan: ExecutionPlan, fusion: Fusion, recording: Recording, inputs: Inputs
    ) -> None:
        self._recording = recording
        self._bound = Bound(plan, fusion, inputs)
        self._plan = plan
        self._checked = self._bound.checked(inputs)
        self._into: Into | None = None

    def __call__(
        self, inputs: Inputs, out: Sequence[torch.Tensor | None] | None = None
    ) -> list[torch.Tensor]:
        """Run it.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``.
        out : list of (Tensor or None), optional
            One for each output that is returned, laid out as the plan would allocate it
            (``plan.allocate()`` makes such); results are put there, and these tensors returned.
            Kernels write straight into a tensor given for a result that has memory of its own.
            A result that is a view of an input or of another result, that torch computes, or
            that is an input written to, is copied. Where None is given the plan does as without
            ``out``. What is written must share no memory with the inputs or with one another; an
            output that is written into an input may be given that input.

        Returns
        -------
        list of Tensor
            The outputs that are not hidden, in order.

        Raises
        ------
        InputError
            Inputs or tensors in ``out`` are not what the plan is bound to; nothing was run.
        """
        if out is None:
            return self._checked.run(inputs, self._missed)
        if self._into is None:
            return self._missed_into(inputs, out)
        return self._into.run(inputs, out, self._missed_into)

    def allocate(self) -> list[torch.Tensor | None]:
        """New tensors laid out as the results, to be given as ``out``.

        None stands for a result whose elements share memory, as they do after ``expand``.
        """
        return self._bound.allocate()

    def graph(
        self, inputs: Inputs, out: Sequence[torch.Tensor | None] | None = None
    ) -> CapturedGraph:
        """Capture a run as a CUDA graph, on these very tensors.

        ``graph()`` runs it again on what is in them then, ``graph(inputs)`` copies others into
        them first, and ``graph.outputs`` are the results, written anew each time. Numbers among
        the inputs stay as they are. Random numbers are drawn anew by each replay, from torch's
        generator; they are not those of a run outside of a graph.

        Parameters
        ----------
        inputs, out
            As for a call. 0-dim tensors on the CPU are read when they are given.

        Raises
        ------
        CaptureError
            The plan runs on a CPU, or writes to one, or a capture is going on already.
        """
        given = self._fitting(inputs)
        return capture(self._bound, given, self._puttable(given, out), self._fitting)

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
    def params(self) -> list[HeuristicParams]:
        """The params of the segments, as ``fd.heuristics(inputs)`` gives them."""
        return [piece.params for piece in self._plan.lowered.segmented.segments]

    @property
    def text(self) -> str:
        """The function that a run is, without the look at what it is given."""
        return self._plan.text

    def __repr__(self) -> str:
        names = [step.name for step in self._plan.steps]
        return f"<BoundPlan on {self.device}: {', '.join(names) or 'nothing to launch'}>"

    # -- what the ways in refuse ----------------------------------------------------------------

    def _fitting(self, inputs: Inputs) -> Inputs:
        """The inputs with nested lists opened.

        Raises
        ------
        InputError
            They do not fit.
        """
        given = flat(inputs)
        with placing(self._recording):
            error = self._bound.refusal(given)
            if error is not None:
                raise error
        return given

    def _puttable(
        self, inputs: Inputs, out: Sequence[torch.Tensor | None] | None
    ) -> Sequence[torch.Tensor | None] | None:
        error = None if out is None else self._bound.refusal_of_out(inputs, out)
        if error is not None:
            raise error
        return out

    def _missed(self, inputs: Inputs) -> list[torch.Tensor]:
        """Refuse inputs, or run them and remember that inputs like them fit."""
        given = self._fitting(inputs)
        if given is inputs:
            self._checked = self._bound.checked(given, self._checked)
        return self._plan.run(given)

    def _missed_into(self, inputs: Inputs, out: Any) -> list[torch.Tensor]:
        given = self._fitting(inputs)
        self._puttable(given, out)
        self._into = into = self._bound.into(given, out, self._into)
        return into.run(given, out, refuse_changed)


def bind(
    core: FusionExecutorCache,
    inputs: Inputs,
    recording: Recording,
    *,
    params: Sequence[HeuristicParams] | None = None,
    device: torch.device | None = None,
    products: Products = Products.AUTO,
) -> BoundPlan:
    """The plan of a recorded definition for flat inputs; arguments as for the executor's.

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
    plan = core.plan(inputs, params=params, device=device, products=products)
    return BoundPlan(plan, core.fusion, recording, inputs)
