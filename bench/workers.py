"""Jobs shared out over processes: all prepared side by side, then measured one at a time.

For a machine whose time is short. Compiling takes cores and is spread over them; a measurement has
the GPU to itself, and begins when nothing is compiled any more.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock
from tqdm import tqdm

PROCESSES = 12
_PATIENCE = 2.0
"""Seconds that a worker which has said all may take to end."""
_LONG = 60.0
"""Seconds of waiting that any system can count."""
_CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_ONE_THREAD = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Shop:
    """What a job may need to know while it is prepared.

    Attributes
    ----------
    alone : context manager
        Held while the GPU has to be this job's alone: by what times kernels as it compiles.
    deadline : float
        When preparing should come to an end, by ``time.time``.
    """

    alone: AbstractContextManager[Any]
    deadline: float = float("inf")

    @property
    def late(self) -> bool:
        """Whether what can be left out should be."""
        return time.time() > self.deadline


class Job(Protocol):
    """One piece of work; picklable until it is prepared, which happens in a worker."""

    def prepare(self, shop: Shop) -> None:
        """Compile; what the measurement needs is kept in the object."""

    def measure(self) -> Any:
        """The result, which is sent back."""


@dataclass(frozen=True)
class Outcome:
    """What became of a job: its result, or the text of its error."""

    result: Any = None
    error: str | None = None


@dataclass(frozen=True)
class Limits:
    """Seconds from the start: when preparing is late, and when workers are ended."""

    prepare: float = float("inf")
    total: float = float("inf")


def run_jobs(
    jobs: Sequence[Job], processes: int = PROCESSES, limits: Limits | None = None
) -> list[Outcome]:
    """One outcome for each job, in their order.

    A job that raises, whose worker dies or that is not done in time has an error for its outcome.
    Compiled code is kept in new folders, unless the environment names some.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        crew = _Crew(jobs, limits or Limits(), folder)
        with _environment(folder):
            crew.start(min(processes, len(jobs)))
        try:
            return crew.outcomes()
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


# --- in the process that waits -------------------------------------------------------------------


@dataclass(frozen=True)
class _Message:
    """From a worker: it took a job, or prepared it, or its outcome; of no job: all are prepared."""

    place: int | None = None
    outcome: Outcome | None = None
    prepared: bool = False


@dataclass
class _Worker:
    """A process, and the jobs that it has taken and not finished."""

    process: BaseProcess
    taken: set[int] = field(default_factory=set)
    ready: bool = False


class _Crew:
    """The workers, and what came of the jobs so far."""

    def __init__(self, jobs: Sequence[Job], limits: Limits, folder: str) -> None:
        self._jobs = list(jobs)
        self._context = multiprocessing.get_context("spawn")
        begun = time.time()
        self._end = begun + limits.total
        self._shared = _Shared(
            str(Path(folder, "alone.lock")),
            begun + limits.prepare,
            self._context.Value("i", 0),
            self._context.Event(),
        )
        self._workers: dict[Connection, _Worker] = {}
        self._prepared: set[int] = set()
        self._found: dict[int, Outcome] = {}

    def start(self, processes: int) -> None:
        for _ in range(processes):
            ours, theirs = self._context.Pipe(duplex=False)
            target = partial(_work, self._jobs, self._shared, theirs)
            process = self._context.Process(target=target, daemon=True)
            process.start()
            theirs.close()  # so that the end of the process is the end of the pipe
            self._workers[ours] = _Worker(process)

    def outcomes(self) -> list[Outcome]:
        speaking = dict(self._workers)
        with tqdm(total=2 * len(self._jobs), unit="step", leave=False) as bar:
            while speaking and (left := self._end - time.time()) > 0:
                for pipe in wait(list(speaking), min(left, _LONG)):
                    assert isinstance(pipe, Connection)
                    if not self._listen(pipe, speaking[pipe]):
                        del speaking[pipe]
                if all(worker.ready for worker in self._workers.values()):
                    self._shared.go.set()
                bar.update(len(self._prepared | self._found.keys()) + len(self._found) - bar.n)
        late = Outcome(error="not done in time")
        return [self._found.get(place, late) for place in range(len(self._jobs))]

    def dismiss(self) -> None:
        for worker in self._workers.values():
            worker.process.join(_PATIENCE if not worker.taken else 0)
            if worker.process.is_alive():
                worker.process.terminate()

    def _listen(self, pipe: Connection, worker: _Worker) -> bool:
        """Take in one message; False where the worker has no more to say."""
        try:
            message: _Message = pipe.recv()
        except EOFError:
            self._mourn(worker)
            return False
        if message.place is None:
            worker.ready = True
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


# --- in a worker ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shared:
    """What the workers share: the lock's file, the next job's number, the sign to measure."""

    lock: str
    deadline: float
    following: Any
    go: Any

    def take(self) -> int:
        """The next job's place, which is then nobody else's."""
        with self.following.get_lock():
            self.following.value += 1
            return int(self.following.value) - 1


def _work(jobs: Sequence[Job], shared: _Shared, pipe: Connection) -> None:
    alone = FileLock(shared.lock)
    shop = Shop(alone, shared.deadline)
    prepared: list[int] = []
    while (place := shared.take()) < len(jobs):
        pipe.send(_Message(place))
        outcome = _attempt(partial(jobs[place].prepare, shop))
        if outcome.error is None:
            prepared.append(place)
            pipe.send(_Message(place, prepared=True))
        else:
            pipe.send(_Message(place, outcome))
    pipe.send(_Message())
    shared.go.wait()
    for place in prepared:
        with alone:
            outcome = _attempt(jobs[place].measure)
        pipe.send(_Message(place, outcome))


def _attempt(step: Callable[[], Any]) -> Outcome:
    """Any exception is an outcome: the run goes on."""
    try:
        return Outcome(step())
    except Exception as error:
        last = traceback.format_exception_only(error)[-1].strip()
        return Outcome(error=last or type(error).__name__)
