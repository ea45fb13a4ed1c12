"""The job of one row: compile every contender, check tritonfuser, time all interleaved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from tritonfuser import FusionDefinition

from ..cases import Inputs, Run, size_name
from ..measure.errors import flat, max_error
from ..measure.inductor import tune_exclusively
from ..measure.least_time import least_time
from ..measure.timing import free, interleaved, synchronize
from ..processes.jobs import JobContext
from ..tables.records import OURS, PEERS, SKIPPED, Record
from .contenders import MODES, Contender, contenders
from .selection import Row

T = TypeVar("T")
SEED = 2
"""Seed of the measured inputs; compilation uses inputs of another seed."""


@dataclass
class Measurement:
    """A job for a worker: ``prepare`` compiles, ``measure`` returns the ``Record``.

    Attributes
    ----------
    row : Row
        The row to measure.
    bandwidth : float
        Bandwidth of a copy on this machine, in bytes per second.
    vs : tuple of str
        Names of the peers.
    check : bool
        Whether tritonfuser is compared with eager torch in float64.
    device : str
        ``"cuda"``, or ``"cpu"`` for the interpreter in tests.
    """

    row: Row
    bandwidth: float
    vs: tuple[str, ...] = PEERS
    check: bool = True
    device: str = "cuda"
    _fd: FusionDefinition | None = field(default=None, repr=False)
    _ready: list[Contender] = field(default_factory=list, repr=False)
    _failures: dict[str, str] = field(default_factory=dict, repr=False)

    def prepare(self, context: JobContext) -> None:
        """Compile all contenders by running each once."""
        if self.device == "cuda" and any(name in MODES for name in self.vs):
            tune_exclusively(context.gpu_lock)
        case, dtype = self.row.of, self.row.torch_dtype
        with self._given(1, context.gpu_lock) as inputs:
            self._fd = case.record(self.row.size, dtype)
            for contender in contenders(case, self._fd, self.vs):
                if contender.peer and context.is_late:
                    self._failures[contender.name] = SKIPPED
                elif contender.name == "eager" or self._try(contender, inputs) is not None:
                    self._ready.append(contender)

    def measure(self) -> Record:
        """Check tritonfuser against float64, then time all contenders that compiled."""
        assert self._fd is not None
        case = self.row.of
        with self._given(SEED, nullcontext()) as inputs:
            checked = self._checked(self._fd, inputs)
            times = interleaved(self._warm(inputs), self.device)
        record = Record(
            case=case.name,
            suite=case.suite,
            size=size_name(self.row.size),
            dtype=self.row.dtype,
            bytes=self._moved(),
            bandwidth=self.bandwidth,
            times=times,
            failures=self._failures,
            **checked,
        )
        self._fd, self._ready = None, []
        return record

    def _moved(self) -> int:
        assert self._fd is not None
        return self.row.of.bytes(self._fd, self.row.size, self.row.torch_dtype)

    @contextmanager
    def _given(self, seed: int, gpu_lock: AbstractContextManager[Any]) -> Iterator[Inputs]:
        """Context with the inputs of a seed; memory is released afterwards."""
        with gpu_lock:
            inputs = self.row.of.inputs(self.row.size, self.row.torch_dtype, self.device, seed)
            synchronize(self.device)
        yield inputs
        inputs.clear()  # the caller holds the list too
        free(self.device)

    def _checked(self, fd: FusionDefinition, inputs: Inputs) -> dict[str, Any]:
        """Number of launches, least time, bitwise determinism, and errors of tritonfuser."""
        found: dict[str, Any] = {}
        if any(contender.name == OURS for contender in self._ready):
            ours, again = (fd.run(_apart(fd, inputs)) for _ in range(2))
            found["launches"] = len(fd.kernels(inputs))
            least = least_time(fd.segments(inputs), self._moved(), self.bandwidth, self.device)
            found |= {"least": least.seconds, "limit": least.limit}
            found["deterministic"] = all(map(_same_bits, ours, again))
            del again
            found |= self._errors(ours, inputs) if self.check else {}
        free(self.device)
        return found

    def _errors(self, ours: list[torch.Tensor], inputs: Inputs) -> dict[str, Any]:
        """Errors against float64; running out of memory is recorded as a failure."""
        case = self.row.of
        expected = self._attempt("reference", lambda: flat(case.reference(inputs)))
        if expected is None:
            return {}
        found = {"error": self._attempt("reference", lambda: _error(ours, expected))}
        if case.oracle is None:
            # With an oracle, eager draws other random numbers.
            found["eager_error"] = self._attempt(
                "eager's error",
                lambda: _error(flat(case.eager(*case.peer_inputs(inputs)))[: len(ours)], expected),
            )
        return found

    def _warm(self, inputs: Inputs) -> dict[str, Run]:
        """Warm calls by contender; a contender that fails is dropped."""
        runs = {c.name: self._try(c, inputs) for c in self._ready}
        return {name: run for name, run in runs.items() if run is not None}

    def _try(self, contender: Contender, inputs: Inputs) -> Run | None:
        """Bind a contender, run it once and return the call."""

        def warm() -> Run:
            run = contender.bind(inputs)
            for _ in range(2):
                run()
            synchronize(self.device)
            return run

        return self._attempt(contender.name, warm)

    def _attempt(self, who: str, step: Callable[[], T]) -> T | None:
        """The result of a step; None if it fails, with the error stored in the failures."""
        try:
            return step()
        except Exception as error:
            self._failures[who] = _text(error)
        free(self.device)
        return None


def _error(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """The error against the reference, which may have more outputs and kept dims."""
    return max_error(actual, [e.reshape(a.shape) for a, e in zip(actual, expected, strict=False)])


def _apart(fd: FusionDefinition, inputs: Inputs) -> Inputs:
    """The inputs; copies where the definition replaces some."""
    if all(out.alias_of is None for out in fd.fusion.ir.outputs):
        return inputs
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors are bitwise equal: nan equals nan, -0.0 differs from 0.0."""
    return torch.equal(*(t.contiguous().reshape(-1).view(torch.uint8) for t in (left, right)))


def _text(error: Exception) -> str:
    """The type of an error and its first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
