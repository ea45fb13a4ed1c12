"""A pool of worker processes: all jobs are prepared in parallel, then measured one at a time.

Preparing compiles and uses all cores. Measuring starts when all compilation is done, and each
measurement has exclusive use of the GPU.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from .jobs import Job, Message, Outcome, Shared, work
from .lost_device import LOST_DEVICE
from .progress import Progress

PROCESSES = min(12, os.cpu_count() or 1)
Keep = Callable[[Mapping[int, Outcome]], None]
"""Called with the outcomes so far, by index of the job."""

_JOIN_SECONDS = 2.0
"""Seconds that a finished worker may take to exit."""
_PROGRESS_SECONDS = 1.0
"""Seconds between updates of the progress."""
_SAVE_SECONDS = 5.0
"""Seconds between calls of ``keep``."""
_CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_ONE_THREAD = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}


def forget(found: object) -> None:
    """The default of ``keep``: outcomes are not stored."""


@dataclass(frozen=True)
class Limits:
    """Time limits.

    Attributes
    ----------
    prepare : float
        Seconds from the start after which optional preparation is skipped.
    total : float
        Seconds from the start after which workers are terminated.
    each : float
        Seconds that one job may take to be prepared, and never more than a third of ``total``. A
        compiler that is stuck would keep all jobs from being measured: its worker is replaced by
        one that prepares the others again.
    """

    prepare: float = float("inf")
    total: float = float("inf")
    each: float = 240.0


def run_jobs(
    jobs: Sequence[Job],
    processes: int = PROCESSES,
    limits: Limits | None = None,
    *,
    keep: Keep = forget,
    costs: Sequence[float] | None = None,
) -> list[Outcome]:
    """Run jobs on worker processes; returns one outcome per job, in order.

    The outcome of a job is an error if it raises, its worker dies, or it is not done in time.
    Compiled code is cached in new folders, unless environment variables name others.

    Parameters
    ----------
    keep : callable, optional
        Called with the outcomes so far every few seconds, so that a killed run loses little.
    costs : sequence of float, optional
        Relative time to prepare each job. The longest are started first, so that none of them
        runs alone at the end.
    """
    weights = costs or [0.0] * len(jobs)
    places = tuple(sorted(range(len(jobs)), key=lambda place: -weights[place]))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pool = _WorkerPool(jobs, places, limits or Limits(), folder)
        with fresh_caches(folder):
            pool.start(min(processes, len(jobs)))
        try:
            return pool.outcomes(keep)
        finally:
            pool.shut_down()


@contextmanager
def fresh_caches(folder: str) -> Iterator[None]:
    """The environment of workers: empty caches and one thread each."""
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
    """A worker process, and the indices of the jobs that it took and has not finished.

    Attributes
    ----------
    busy : (int, float), optional
        The job that it prepares or measures, and since when.
    """

    process: BaseProcess
    taken: set[int] = field(default_factory=set)
    ready: bool = False
    busy: tuple[int, float] | None = None


class _WorkerPool:
    """The worker processes and the outcomes so far."""

    def __init__(
        self, jobs: Sequence[Job], places: tuple[int, ...], limits: Limits, folder: str
    ) -> None:
        self._jobs = list(jobs)
        self._context = multiprocessing.get_context("spawn")
        begun = time.monotonic()
        self._end = begun + limits.total
        self._each = min(limits.each, limits.total / 3)
        self._shared = Shared(
            str(Path(folder, "gpu.lock")),
            begun + limits.prepare,
            places,
            self._context.Value("i", 0),
            self._context.Event(),
        )
        self._workers: dict[Connection, _Worker] = {}
        self._open: set[Connection] = set()
        self._prepared: set[int] = set()
        self._found: dict[int, Outcome] = {}
        self._held = self._waited = 0.0

    def start(self, processes: int) -> None:
        """Start the workers together: each takes the jobs when it has imported what these need, and
        until then the call that starts it waits."""
        with ThreadPoolExecutor(max(processes, 1)) as threads:
            for started in [threads.submit(self._start_worker) for _ in range(processes)]:
                started.result()

    def _start_worker(self, first: Sequence[int] = ()) -> None:
        parent_end, worker_end = self._context.Pipe(duplex=False)
        target = partial(work, self._jobs, self._shared, worker_end, tuple(first))
        process = self._context.Process(target=target, daemon=True)
        process.start()
        worker_end.close()  # so that the pipe reaches its end when the worker exits
        self._workers[parent_end] = _Worker(process)
        self._open.add(parent_end)

    def outcomes(self, keep: Keep) -> list[Outcome]:
        progress, kept = Progress(2 * len(self._jobs), "step"), time.monotonic()
        while self._open and (left := self._end - time.monotonic()) > 0:
            for pipe in wait(list(self._open), min(left, _PROGRESS_SECONDS)):
                assert isinstance(pipe, Connection)
                if not self._receive(pipe, self._workers[pipe]):
                    self._open.remove(pipe)
            self._replace_stuck()
            self._start_measuring(progress)
            done = len(self._found)
            progress.show(
                len(self._prepared) + done, f"prepared {len(self._prepared)}, done {done}"
            )
            if self._found and time.monotonic() - kept > _SAVE_SECONDS:
                keep(self._found)
                kept = time.monotonic()
        progress.say(f"done {len(self._found)}, {self._of}")
        unfinished = Outcome(error="not done in time")
        return [self._found.get(place, unfinished) for place in range(len(self._jobs))]

    def _replace_stuck(self) -> None:
        """End workers whose job takes too long, and have what they had prepared done by others."""
        for pipe in list(self._open):
            worker = self._workers[pipe]
            # A message that waits may be that the job is prepared.
            if worker.ready or worker.busy is None or pipe.poll():
                continue
            place, begun = worker.busy
            if time.monotonic() - begun < self._each:
                continue
            worker.process.kill()
            self._open.remove(pipe)
            del self._workers[pipe]
            self._found[place] = Outcome(error=f"did not compile in {self._each:.0f} s")
            self._take_place_of(worker, {place})

    def _take_place_of(self, worker: _Worker, done: Container[int]) -> None:
        """Start a worker that prepares again what another had taken, and goes on from there."""
        again = [place for place in sorted(worker.taken) if place not in done]
        self._prepared.difference_update(again)
        if again or self._shared.taken_count.value < len(self._jobs):
            self._start_worker(again)

    @property
    def _of(self) -> str:
        return f"of {len(self._jobs)}"

    def _start_measuring(self, progress: Progress) -> None:
        """Start measuring once all jobs are prepared, and print how the GPU lock was used."""
        start = self._shared.start_measuring
        if start.is_set() or not all(worker.ready for worker in self._workers.values()):
            return
        start.set()
        progress.say(
            f"prepared {len(self._prepared)} {self._of}; workers held the GPU lock for "
            f"{self._held:.0f} s and waited {self._waited:.0f} s for it"
        )

    def shut_down(self) -> None:
        for worker in self._workers.values():
            worker.process.join(_JOIN_SECONDS if not worker.taken else 0)
            if worker.process.is_alive():
                worker.process.terminate()

    def _receive(self, pipe: Connection, worker: _Worker) -> bool:
        """Receive one message; False once the worker has closed its pipe."""
        try:
            message: Message = pipe.recv()
        except EOFError:
            self._record_death(worker)
            return False
        if message.place is None:
            worker.ready = True
            self._held += message.held
            self._waited += message.waited
        elif message.outcome is not None:
            worker.taken.discard(message.place)
            worker.busy = None
            self._found[message.place] = message.outcome
        else:
            worker.taken.add(message.place)
            worker.busy = None if message.prepared else (message.place, time.monotonic())
            if message.prepared:
                self._prepared.add(message.place)
        return True

    def _record_death(self, worker: _Worker) -> None:
        """The job that ended its worker has an error; the worker's others are prepared again."""
        worker.ready = True
        worker.process.join()
        code = worker.process.exitcode
        if not code and worker.busy is None and not worker.taken:
            return
        lost = Outcome(error=f"its process ended with code {code}")
        if worker.busy is not None:
            self._found[worker.busy[0]] = lost
        elif code != LOST_DEVICE:  # nobody knows which of them it was: it may end the next worker
            self._found.update(dict.fromkeys(worker.taken, lost))
        self._take_place_of(worker, self._found)
        worker.taken.clear()
