"""Jobs shared out over processes: all prepared side by side, then measured one at a time.

For a machine whose time is short. Compiling takes cores and is spread over them; a measurement has
the GPU to itself, and begins when nothing is compiled any more.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from .jobs import Job, Message, Outcome, Shared, work
from .progress import Progress

PROCESSES = min(12, os.cpu_count() or 1)
Keep = Callable[[Mapping[int, Outcome]], None]
"""Takes the outcomes so far, by the places of their jobs."""

_PATIENCE = 2.0
"""Seconds that a worker which has said all may take to end."""
_MOMENT = 1.0
"""Seconds of waiting before the progress is looked at again."""
_SELDOM = 5.0
"""Seconds between two times that outcomes are handed on."""
_CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_ONE_THREAD = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}


def forget(found: object) -> None:
    """Keep nothing."""


@dataclass(frozen=True)
class Limits:
    """Seconds from the start: when preparing is late, and when workers are ended."""

    prepare: float = float("inf")
    total: float = float("inf")


def run_jobs(
    jobs: Sequence[Job],
    processes: int = PROCESSES,
    limits: Limits | None = None,
    *,
    keep: Keep = forget,
    costs: Sequence[float] | None = None,
) -> list[Outcome]:
    """One outcome for each job, in their order.

    A job that raises, whose worker dies or that is not done in time has an error for its outcome.
    Compiled code is kept in new folders, unless the environment names some.

    Parameters
    ----------
    keep : callable, optional
        Given the outcomes so far every few seconds, for a run that may be killed.
    costs : sequence of float, optional
        How long preparing each takes beside the others: the longest are begun first, so that no
        long one is left when the other workers are done.
    """
    weights = costs or [0.0] * len(jobs)
    places = tuple(sorted(range(len(jobs)), key=lambda place: -weights[place]))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        crew = _Crew(jobs, places, limits or Limits(), folder)
        with _environment(folder):
            crew.start(min(processes, len(jobs)))
        try:
            return crew.outcomes(keep)
        finally:
            crew.dismiss()


@contextmanager
def _environment(folder: str) -> Iterator[None]:
    """What workers inherit: caches that are empty, one thread each."""
    before = dict(os.environ)
    caches = {name: str(Path(folder, name.lower())) for name in _CACHES}
    os.environ.update({**caches, **_ONE_THREAD, **before})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@dataclass
class _Worker:
    """A process, and the jobs that it has taken and not finished."""

    process: BaseProcess
    taken: set[int] = field(default_factory=set)
    ready: bool = False


class _Crew:
    """The workers, and what came of the jobs so far."""

    def __init__(
        self, jobs: Sequence[Job], places: tuple[int, ...], limits: Limits, folder: str
    ) -> None:
        self._jobs = list(jobs)
        self._context = multiprocessing.get_context("spawn")
        begun = time.time()
        self._end = begun + limits.total
        self._shared = Shared(
            str(Path(folder, "alone.lock")),
            begun + limits.prepare,
            places,
            self._context.Value("i", 0),
            self._context.Event(),
        )
        self._workers: dict[Connection, _Worker] = {}
        self._prepared: set[int] = set()
        self._found: dict[int, Outcome] = {}
        self._held = self._waited = 0.0

    def start(self, processes: int) -> None:
        for _ in range(processes):
            ours, theirs = self._context.Pipe(duplex=False)
            target = partial(work, self._jobs, self._shared, theirs)
            process = self._context.Process(target=target, daemon=True)
            process.start()
            theirs.close()  # so that the end of the process is the end of the pipe
            self._workers[ours] = _Worker(process)

    def outcomes(self, keep: Keep) -> list[Outcome]:
        speaking = dict(self._workers)
        progress, kept = Progress(2 * len(self._jobs), "step"), time.time()
        while speaking and (left := self._end - time.time()) > 0:
            for pipe in wait(list(speaking), min(left, _MOMENT)):
                assert isinstance(pipe, Connection)
                if not self._listen(pipe, speaking[pipe]):
                    del speaking[pipe]
            self._perhaps_go(progress)
            done = len(self._found)
            progress.show(
                len(self._prepared) + done, f"prepared {len(self._prepared)}, done {done}"
            )
            if self._found and time.time() - kept > _SELDOM:
                keep(self._found)
                kept = time.time()
        progress.say(f"done {len(self._found)}, {self._of}")
        late = Outcome(error="not done in time")
        return [self._found.get(place, late) for place in range(len(self._jobs))]

    @property
    def _of(self) -> str:
        return f"of {len(self._jobs)}"

    def _perhaps_go(self, progress: Progress) -> None:
        """Give the sign to measure once nothing is compiled any more, and say what that took."""
        if self._shared.go.is_set() or not all(w.ready for w in self._workers.values()):
            return
        self._shared.go.set()
        progress.say(
            f"prepared {len(self._prepared)} {self._of}; the GPU was one worker's alone for "
            f"{self._held:.0f} s, waits for it add up to {self._waited:.0f} s"
        )

    def dismiss(self) -> None:
        for worker in self._workers.values():
            worker.process.join(_PATIENCE if not worker.taken else 0)
            if worker.process.is_alive():
                worker.process.terminate()

    def _listen(self, pipe: Connection, worker: _Worker) -> bool:
        """Take in one message; False where the worker has no more to say."""
        try:
            message: Message = pipe.recv()
        except EOFError:
            self._mourn(worker)
            return False
        if message.place is None:
            worker.ready = True
            self._held += message.held
            self._waited += message.waited
        elif message.outcome is not None:
            worker.taken.discard(message.place)
            self._found[message.place] = message.outcome
        else:
            worker.taken.add(message.place)
            if message.prepared:
                self._prepared.add(message.place)
        return True

    def _mourn(self, worker: _Worker) -> None:
        """What a dead worker had taken does not come back, and nobody need wait for it."""
        worker.ready = True
        worker.process.join()
        lost = Outcome(error=f"its process ended with code {worker.process.exitcode}")
        self._found.update(dict.fromkeys(worker.taken, lost))
        worker.taken.clear()
