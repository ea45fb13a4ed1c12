"""The job of one recorded definition: tritonfuser, its torch function in eager, and compiled."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from tritonfuser import FusionDefinition
from tritonfuser.frontend.inspect.oracle import Evaluation, NoReferenceError
from tritonfuser.frontend.inspect.tolerances import ValidationError
from tritonfuser.ir import Fusion
from tritonfuser.ops import registry
from tritonfuser.ops.forms import Random

from ..functions import TorchFunction, write
from ..measure.errors import max_error
from ..measure.inductor import compiled, tune_exclusively
from ..measure.kernel_times import KernelTimes, all_kernel_times, warm_up
from ..measure.least_time import least_time
from ..measure.timing import free
from ..processes.jobs import JobContext
from ..processes.lost_device import is_device_lost
from ..tables.records import OURS, SKIPPED
from .definition_outline import outline
from .definition_results import COMPILED, EAGER, TOLERATED, Result
from .definitions import RecordedDefinition, make_inputs, record

DOUBLE = "float64"
"""Who fails where the function does not fit into memory in float64."""
_LONGEST = 300
"""Most characters of an error text."""
Run = Callable[..., list[torch.Tensor]]


@dataclass
class DefinitionJob:
    """A job for a worker: ``prepare`` compiles, ``measure`` returns the ``Result``.

    Attributes
    ----------
    entry : RecordedDefinition
        The definition to measure.
    bandwidth : float
        Bandwidth of a copy on this machine, in bytes per second.
    reduced : bool
        Whether the definition was shrunk.
    device : str
        ``"cuda"``, or ``"cpu"`` for the interpreter in tests.
    clock : callable
        Measures the kernels of each contender's calls.
    peers : tuple of str
        Who is measured beside tritonfuser.
    checked : bool
        Whether results are compared with float64.
    """

    entry: RecordedDefinition
    bandwidth: float
    reduced: bool = False
    device: str = "cuda"
    clock: Callable[[Mapping[str, Callable[[], Any]]], dict[str, KernelTimes]] = all_kernel_times
    peers: tuple[str, ...] = (EAGER, COMPILED)
    checked: bool = True
    _fd: FusionDefinition | None = field(default=None, repr=False)
    _written: TorchFunction | None = field(default=None, repr=False)
    _runs: dict[str, Run] = field(default_factory=dict, repr=False)
    _failures: dict[str, str] = field(default_factory=dict, repr=False)
    _first: dict[str, float] = field(default_factory=dict, repr=False)

    def prepare(self, context: JobContext) -> None:
        """Compile tritonfuser and torch.compile, by a run; eager runs where it is measured."""
        if self.device == "cuda":
            tune_exclusively(context.gpu_lock)
        self._fd = fd = record(self.entry)
        self._timed(OURS, partial(fd.run, self._inputs()))
        self._runs[OURS] = lambda *inputs: fd.run(inputs)
        if EAGER in self.peers:
            self._try(EAGER, lambda function: function, run_now=False)
        if COMPILED not in self.peers:
            pass
        elif context.is_late:
            self._failures[COMPILED] = SKIPPED
        else:
            self._try(COMPILED, partial(compiled, mode=None))
        if self.device == "cuda":
            warm_up()
        free(self.device)

    def _try(self, who: str, make: Callable[[Run], Run], *, run_now: bool = True) -> None:
        """Store the function that ``make`` returns, or the error of running it."""
        assert self._fd is not None
        ir = self._fd.fusion.ir
        try:
            self._written = self._written or write(ir, self.device)
            run = make(self._written.load(self.entry.name))
            if run_now:
                self._timed(who, partial(run, *self._written.arguments(self._inputs())))
            self._runs[who] = run
        except Exception as error:
            if is_device_lost():
                raise RuntimeError(f"{who}: {brief(error)}") from error
            self._failures[who] = brief(error)

    def _timed(self, who: str, call: Callable[[], Any]) -> None:
        """Keep the seconds of a first call, whose kernels may still run, and wait for these."""
        begun = time.perf_counter()
        call()
        self._first[who] = time.perf_counter() - begun
        if self.device == "cuda":
            torch.cuda.synchronize()  # a fault is raised here, where it is known whose it is

    def measure(self) -> Result:
        """Check tritonfuser and the compiled function, then measure the kernels of all three."""
        assert self._fd is not None
        ir = self._fd.fusion.ir
        inputs = self._inputs()
        cut = self._fd.segments(inputs)
        errors = self._errors(ir) if self.checked else {}
        times = self._times(inputs)
        kernels = len(self._fd.kernels(inputs))
        del inputs
        free(self.device)
        known = outline(self.entry, ir, cut, reduced=self.reduced)
        least = least_time(cut, known["least"], self.bandwidth, self.device, launches=0)
        return Result(
            **known,
            kernels=kernels,
            bandwidth=self.bandwidth,
            bound=least.seconds,
            limit=least.limit,
            error=errors.get(OURS),
            compiled_error=errors.get(COMPILED),
            explained=self._explained(errors.get(OURS)),
            times=times,
            failures=self._failures,
            first_calls=self._first,
        )

    def _times(self, inputs: Sequence[Any]) -> dict[str, KernelTimes]:
        calls: dict[str, Callable[[], Any]] = {}
        for who, run in self._runs.items():
            call = partial(run, *self._arguments(who, inputs))
            try:
                call()
                calls[who] = call
            except Exception as error:
                self._failures[who] = brief(error)
        return self.clock(calls) if calls else {}

    def _arguments(self, who: str, inputs: Sequence[Any]) -> Sequence[Any]:
        if who == OURS:
            return inputs
        assert self._written is not None
        return self._written.arguments(inputs)

    def _errors(self, ir: Fusion) -> dict[str, float]:
        """The largest error of each contender; torch.compile draws other random numbers."""
        try:
            evaluated = Evaluation(ir, self._inputs(), double=True).outputs
            expected = [x.to(self.device) for x in evaluated]  # made on a CPU without inputs
        except torch.OutOfMemoryError as error:
            self._failures[DOUBLE] = brief(error)
            return {}
        drawn = any(isinstance(registry.get(node.op).form, Random) for node in ir.nodes)
        found: dict[str, float] = {}
        for who in (OURS, COMPILED):
            if who in self._runs and (who == OURS or not drawn):
                actual = self._runs[who](*self._arguments(who, self._inputs()))
                self._judge(who, actual, shown(ir, expected), found)
        return found

    def _judge(
        self, who: str, actual: Sequence[Any], expected: Sequence[Any], found: dict[str, float]
    ) -> None:
        """Keep the error of a contender. One whose results have other shapes is not timed."""
        try:
            found[who] = max_error(actual, expected)
        except ValueError as error:
            self._failures[who] = brief(error)
            del self._runs[who]

    def _explained(self, error: float | None) -> bool | None:
        """Whether rounding explains a large error; None for a small one, or without memory.

        Of a comparison either side of rounding gives another element: of ``u < 0.9`` where ``u`` is
        0.9 in float32, float32 and float64 differ.
        """
        assert self._fd is not None
        if error is None or error <= TOLERATED:
            return None
        try:
            self._fd.validate(self._inputs())
        except ValidationError:
            return False
        except (NoReferenceError, torch.OutOfMemoryError):
            return None
        finally:
            free(self.device)  # other processes' definitions need the memory
        return True

    def _inputs(self) -> list[Any]:
        """Fresh inputs, since some definitions write into them."""
        assert self._fd is not None
        return make_inputs(self.entry, self._fd.fusion.ir, self.device)


def brief(error: Exception) -> str:
    """The type and the shortened text of an error."""
    return f"{type(error).__name__}: {error}"[:_LONGEST]


def shown(ir: Fusion, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs that a run returns: those that are not hidden."""
    return [x for x, out in zip(outputs, ir.outputs, strict=True) if not out.hidden]
