"""A run of a plan captured as a CUDA graph, which replays with one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import torch

from ...errors import CaptureError, InputError
from ...pickling import Unpicklable
from ..plan.copies import copied, without_stride_0
from ..plan.memory_overlap import tensors_overlap
from .binding import Binding

Outs = Sequence["torch.Tensor | None"]
Check = Callable[[Sequence[Any]], Sequence[Any]]
"""Inputs of a replay -> the same, flat; raises where they do not fit."""


class CapturedGraph(Unpicklable):
    """A captured run on fixed tensors; ``plan.graph(inputs)`` makes one.

    Attributes
    ----------
    inputs : tuple
        The tensors and numbers it was captured with. A replay reads what is in the tensors then.
    outputs : list of Tensor
        The results. Each replay overwrites them.
    """

    send_instead = "Send the definition, and capture there: fd.plan(inputs).graph(inputs)."

    def __init__(self, inputs: Sequence[Any], static: Sequence[Any], check: Check) -> None:
        self.inputs = tuple(inputs)
        self.outputs: list[torch.Tensor] = []
        self.graph = torch.cuda.CUDAGraph()
        self._static = tuple(static)
        self._check = check
        self._overlapping = _first_overlap(static)
        self._storages = {_storage(x) for x in static if _is_tensor(x)}

    def __call__(self, inputs: Sequence[Any] | None = None) -> list[torch.Tensor]:
        """Run it on what is in the captured tensors, or copy others into them first.

        Raises
        ------
        InputError
            ``inputs`` differ in shape, strides, dtype or device from those captured, or in a
            number; nothing was run.
        """
        if inputs is not None:
            self._copy(inputs)
        self.graph.replay()
        return self.outputs

    def replay(self) -> None:
        """Run it on what is in the captured tensors."""
        self.graph.replay()

    def _copy(self, inputs: Sequence[Any]) -> None:
        pairs = list(zip(self.inputs, self._static, self._check(inputs), strict=True))
        for place, (own, _, given) in enumerate(pairs):
            if not isinstance(own, torch.Tensor) and not same_number(own, given):
                raise InputError(
                    f"input {place} was {own} when the graph was captured, got {given}",
                    hint="Numbers stay as they were: capture another graph for these.",
                )
        moved = [(at, given) for own, at, given in pairs if given is not at and _is_tensor(own)]
        if moved and self._overlapping is not None:
            one, other = self._overlapping
            raise InputError(
                f"inputs {one} and {other} of the graph share memory, so "
                "nothing can be copied into them",
                hint="Write into graph.inputs and call graph(), or capture with other tensors.",
            )
        # An input that lies in a captured tensor is read before that is overwritten.
        read = [(at, self._unshared(without_stride_0(given))) for at, given in moved]
        for at, given in read:
            without_stride_0(at).copy_(given, non_blocking=True)

    def _unshared(self, given: torch.Tensor) -> torch.Tensor:
        return given.clone() if _storage(given) in self._storages else given


def capture(
    binding: Binding, inputs: Sequence[Any], out: Outs | None, check: Check
) -> CapturedGraph:
    """Capture a run of a plan on inputs and into outputs that fit it.

    Parameters
    ----------
    check : callable
        Returns the flat inputs of a later call, or raises.

    Raises
    ------
    CaptureError
        It cannot be captured; see ``BoundPlan.graph``.
    """
    plan = binding.plan
    _refuse(binding)
    with torch.cuda.device(plan.device):
        # Kernels read what was on the CPU from copies, whose memory the graph can count on.
        static = [x.to(plan.device) if _is_tensor(x) and x.is_cpu else x for x in inputs]
        if any(step.source is None for step in plan.steps):
            _warm_up(binding, static)
        found = CapturedGraph(inputs, static, check)
        # A stream of this device: torch keeps one for all devices. Other threads may go on.
        with torch.cuda.graph(found.graph, None, _stream(plan.device), "thread_local"):
            made = plan.plain(static) if out is None else binding.run_into(static, out)
    given = {id(at): own for own, at in zip(inputs, static, strict=True)}
    found.outputs = [given.get(id(tensor), tensor) for tensor in made]
    return found


def _refuse(binding: Binding) -> None:
    device = binding.plan.device
    if device.type == "cpu":
        raise CaptureError(
            f"a plan that runs on {device} cannot be captured as a CUDA graph",
            hint="Make the plan of inputs on a GPU.",
        )
    if torch.cuda.is_current_stream_capturing():
        raise CaptureError(
            "plan.graph() was called inside the capture of a CUDA graph",
            hint="Call the plan itself there: what it does becomes a part of that graph.",
        )
    if binding.writes_to_cpu:
        raise CaptureError(
            "an output is written into a 0-dim tensor on the CPU, which no graph can do",
            hint="Have that input on the GPU.",
        )


def _warm_up(binding: Binding, inputs: Sequence[Any]) -> None:
    """Have torch create its handles and workspaces before the capture; no input is changed."""
    plan = binding.plan
    with torch.random.fork_rng(devices=[plan.device], device_type=plan.device.type):
        plan.plain(copied(inputs) if binding.writes_inputs else inputs)
    torch.cuda.synchronize(plan.device)


def same_number(one: Any, other: Any) -> bool:
    """Whether a kernel takes both numbers for the same: nan equals nan, 0.0 differs from -0.0."""
    return type(one) is type(other) and repr(one) == repr(other)


def _first_overlap(inputs: Sequence[Any]) -> tuple[int, int] | None:
    """The places of the first two tensors that share memory."""
    tensors = [(place, x) for place, x in enumerate(inputs) if _is_tensor(x)]
    for (one, x), (other, y) in combinations(tensors, 2):
        if tensors_overlap(x, y):
            return one, other
    return None


def _stream(device: torch.device) -> torch.cuda.Stream:
    made: Any = torch.cuda.Stream
    stream: torch.cuda.Stream = made(device)
    return stream


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _is_tensor(item: object) -> bool:
    return isinstance(item, torch.Tensor)
