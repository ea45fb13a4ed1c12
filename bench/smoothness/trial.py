"""One point: compiled in ``prepare``, its sizes and torch.compile timed together in ``measure``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from tritonfuser import FusionDefinition

from ..cases import Inputs, Run
from ..measure.inductor import tune_exclusively
from ..measure.least_time import least_time
from ..measure.timing import free, interleaved, synchronize
from ..processes.jobs import JobContext
from ..suite.contenders import Contender, contenders
from ..tables.records import SKIPPED
from .points import Point
from .results import NAMES, Found, is_suspect

ROUNDS = 25
"""Of a second timing."""


@dataclass
class Trial:
    """A job for a worker: ``prepare`` compiles, ``measure`` returns a ``Found`` as plain data.

    Attributes
    ----------
    point : Point
        What to time.
    bandwidth : float
        Bandwidth of a copy on this machine, in bytes per second.
    peer : bool
        Whether torch.compile is timed beside the point itself.
    device : str
        ``"cuda"``, or ``"cpu"`` for the interpreter in tests.
    """

    point: Point
    bandwidth: float
    peer: bool = True
    device: str = "cuda"
    failures: dict[str, str] = field(default_factory=dict)
    _ready: list[tuple[int, str, FusionDefinition, Contender]] = field(
        default_factory=list, repr=False
    )

    def prepare(self, context: JobContext) -> None:
        """Compile each size of ours, and the peer of the point, by running each once."""
        if self.device == "cuda":
            tune_exclusively(context.gpu_lock)
        for place, name in enumerate(NAMES):
            fd = self.point.case.record(self.point.sizes[place], self.point.torch_dtype)
            ours, *peers = contenders(self.point.case, fd, ("compile",) if not place else ())
            with self._given(place, 1, context) as inputs:
                self._try(place, name, fd, ours, inputs)
                for peer in peers if self.peer else ():
                    if context.is_late:
                        self.failures[peer.name] = SKIPPED
                    else:
                        self._try(place, peer.name, fd, peer, inputs)

    def _try(
        self, place: int, name: str, fd: FusionDefinition, contender: Contender, inputs: Inputs
    ) -> None:
        try:
            contender.bind(inputs)()
            synchronize(self.device)
        except Exception as error:
            self.failures[name] = f"{type(error).__name__}: {error}".splitlines()[0]
            return
        self._ready.append((place, name, fd, contender))

    @contextmanager
    def _given(self, place: int, seed: int, context: JobContext) -> Iterator[Inputs]:
        with context.gpu_lock:
            inputs = self._inputs(place, seed)
            synchronize(self.device)
        yield inputs
        inputs.clear()
        free(self.device)

    def _inputs(self, place: int, seed: int) -> Inputs:
        size, dtype = self.point.sizes[place], self.point.torch_dtype
        return self.point.case.inputs(size, dtype, self.device, seed)

    def measure(self) -> dict[str, Any]:
        """Time all that compiled in the same rounds; what looks slow a second time."""
        given = {place: self._inputs(place, 2) for place in range(len(NAMES))}
        runs: dict[str, Run] = {}
        for place, name, _, contender in self._ready:
            run = contender.bind(given[place])
            for _ in range(2):
                run()
            runs[name] = run
        synchronize(self.device)
        found = self._found(self._medians(runs), given)
        if is_suspect(found):
            found = self._found(self._medians(runs, ROUNDS), given, found.seconds)
        runs.clear()
        given.clear()
        self._ready.clear()
        free(self.device)
        return asdict(found)

    def _medians(self, runs: dict[str, Run], rounds: int | None = None) -> dict[str, float]:
        return {n: t.median for n, t in interleaved(runs, self.device, rounds).items()}

    def _found(
        self,
        seconds: dict[str, float],
        given: dict[int, Inputs],
        first: dict[str, float] | None = None,
    ) -> Found:
        sizes, least = {}, {}
        for place, name, fd, _ in self._ready:
            if name == NAMES[place]:
                size, dtype = self.point.sizes[place], self.point.torch_dtype
                sizes[name] = self.point.case.bytes(fd, size, dtype)
                cut = fd.segments(given[place])
                bound = least_time(cut, sizes[name], self.bandwidth, self.device)
                least[name] = bound.seconds
        return Found(
            op=self.point.op,
            dtype=self.point.dtype,
            sizes=[[*size] for size in self.point.sizes],
            bytes=sizes,
            least=least,
            seconds=seconds,
            first=first,
            failures=self.failures,
        )
