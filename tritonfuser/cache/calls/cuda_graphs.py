"""A run of a plan captured as a CUDA graph: replayed for the price of one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import torch

from ...errors import CaptureError, InputError
from ..plan.copies import copied, memory_of
from .binding import Bound
from .memory_overlap import share

Outs = Sequence["torch.Tensor | None"]
Look = Callable[[Sequence[Any]], Sequence[Any]]


class CapturedGraph:
    """A plan's run on tensors that stay where they are; ``plan.graph(inputs)`` makes one.

    Attributes
    ----------
    inputs : tuple
        The tensors and numbers it was captured with: what is written into the tensors is what the
        next replay reads.
    outputs : list of Tensor
        The results; each replay writes them anew.
    """

    def __init__(self, inputs: Sequence[Any], static: Sequence[Any], look: Look) -> None:
        self.inputs = tuple(inputs)
        self.outputs: list[torch.Tensor] = []
        self.graph = torch.cuda.CUDAGraph()
        self._static = tuple(static)
        self._look = look
        self._shared = _sharing(static)
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
        pairs = list(zip(self.inputs, self._static, self._look(inputs), strict=True))
        for place, (own, _, given) in enumerate(pairs):
            if not isinstance(own, torch.Tensor) and not same_number(own, given):
                raise InputError(
                    f"input {place} was {own} when the graph was captured, got {given}",
                    hint="Numbers stay as they were: capture another graph for these.",
                )
        moved = [(at, given) for own, at, given in pairs if given is not at and _is_tensor(own)]
        if moved and self._shared is not None:
            raise InputError(
                f"inputs {self._shared[0]} and {self._shared[1]} of the graph share memory, so "
                "nothing can be copied into them",
                hint="Write into graph.inputs and call graph(), or capture with other tensors.",
            )
        # What lies where another is copied to is read before.
        read = [(at, self._apart(memory_of(given))) for at, given in moved]
        for at, given in read:
            memory_of(at).copy_(given, non_blocking=True)

    def _apart(self, given: torch.Tensor) -> torch.Tensor:
        return given.clone() if _storage(given) in self._storages else given


def capture(bound: Bound, inputs: Sequence[Any], out: Outs | None, look: Look) -> CapturedGraph:
    """Capture a run of a plan on inputs and into outputs that fit it.

    Parameters
    ----------
    look : callable
        Gives the flat inputs of a later call, or raises.

    Raises
    ------
    CaptureError
        It cannot be: see ``BoundPlan.graph``.
    """
    plan = bound.plan
    _refuse(bound)
    with torch.cuda.device(plan.device):
        # Kernels read what was on the CPU from copies, whose memory the graph can count on.
        static = [x.to(plan.device) if _is_tensor(x) and x.is_cpu else x for x in inputs]
        if any(step.source is None for step in plan.steps):
            _warm_up(bound, static)
        found = CapturedGraph(inputs, static, look)
        # A stream of this device: torch keeps one for all devices. Other threads may go on.
        with torch.cuda.graph(found.graph, None, _stream(plan.device), "thread_local"):
            made = plan.plain(static) if out is None else bound.put(static, out)
    given = {id(at): own for own, at in zip(inputs, static, strict=True)}
    found.outputs = [given.get(id(tensor), tensor) for tensor in made]
    return found


def _refuse(bound: Bound) -> None:
    device = bound.plan.device
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
    if bound.writes_to_cpu:
        raise CaptureError(
            "an output is written into a 0-dim tensor on the CPU, which no graph can do",
            hint="Have that input on the GPU.",
        )


def _warm_up(bound: Bound, inputs: Sequence[Any]) -> None:
    """Let torch make handles and workspaces, with nothing to be seen of it."""
    plan = bound.plan
    with torch.random.fork_rng(devices=[plan.device], device_type=plan.device.type):
        plan.plain(copied(inputs) if bound.writes_inputs else inputs)
    torch.cuda.synchronize(plan.device)


def same_number(one: Any, other: Any) -> bool:
    """Whether a kernel is given the same for both: nan is nan, and zeros have signs."""
    return type(one) is type(other) and repr(one) == repr(other)


def _sharing(inputs: Sequence[Any]) -> tuple[int, int] | None:
    """The first two tensors that share memory."""
    tensors = [(place, x) for place, x in enumerate(inputs) if _is_tensor(x)]
    for (one, x), (other, y) in combinations(tensors, 2):
        if share(x, y):
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
