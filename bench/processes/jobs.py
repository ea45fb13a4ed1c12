"""Jobs of worker processes: the interface of a job, and the loop of a worker."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any, Protocol

from .gpu_lock import GpuLock
from .lost_device import LOST_DEVICE, is_device_lost


@dataclass(frozen=True)
class JobContext:
    """What a job is given while it is prepared.

    Attributes
    ----------
    gpu_lock : context manager
        Lock for exclusive use of the GPU, held by autotuning while it times kernels.
    deadline : float
        ``time.monotonic()`` after which optional preparation is skipped. On Linux all processes
        of a machine have that clock in common, and nobody sets it.
    """

    gpu_lock: AbstractContextManager[Any]
    deadline: float = float("inf")

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed, so that optional work is skipped."""
        return time.monotonic() > self.deadline


class Job(Protocol):
    """One unit of work. It is pickled to a worker before ``prepare``, and not afterwards."""

    def prepare(self, context: JobContext) -> None:
        """Compile, and keep in the object what ``measure`` needs."""

    def measure(self) -> Any:
        """Measure; the result is pickled and sent to the parent."""


@dataclass(frozen=True)
class Outcome:
    """The result of a job, or the text of its error."""

    result: Any = None
    error: str | None = None


@dataclass(frozen=True)
class Message:
    """A message from a worker to the parent.

    Attributes
    ----------
    place : int, optional
        Index of the job; None once the worker has prepared all its jobs.
    outcome : Outcome, optional
        The job's outcome, once it is measured or has failed.
    prepared : bool
        Whether the job was prepared. Without it and an outcome the worker begins to prepare or to
        measure the job.
    held, waited : float
        Seconds that the worker held the GPU lock and waited for it, while preparing.
    """

    place: int | None = None
    outcome: Outcome | None = None
    prepared: bool = False
    held: float = 0.0
    waited: float = 0.0


@dataclass(frozen=True)
class Shared:
    """State shared by the workers.

    Attributes
    ----------
    lock : str
        Path of the file of the GPU lock.
    deadline : float
        Deadline of the ``JobContext``.
    places : tuple of int
        Indices of the jobs in the order in which they are prepared.
    taken_count : multiprocessing.Value
        Number of jobs that workers have taken.
    start_measuring : multiprocessing.Event
        Set when all jobs are prepared.
    """

    lock: str
    deadline: float
    places: tuple[int, ...]
    taken_count: Any
    start_measuring: Any

    def take(self) -> int | None:
        """Take the next job and return its index; None when all are taken."""
        with self.taken_count.get_lock():
            number = int(self.taken_count.value)
            self.taken_count.value += 1
        return self.places[number] if number < len(self.places) else None


def work(jobs: Sequence[Job], shared: Shared, pipe: Connection, first: Sequence[int] = ()) -> None:
    """The loop of a worker: prepare jobs until none is left, then measure its jobs.

    A worker that has lost its device ends behind the outcome of the job that lost it.

    Parameters
    ----------
    first : sequence of int
        Indices of jobs that a worker had prepared which was ended.
    """
    _exit_with_parent()
    gpu_lock = GpuLock(shared.lock)
    context = JobContext(gpu_lock, shared.deadline)
    prepared: list[int] = []
    for place in chain(first, iter(shared.take, None)):
        # A worker that takes another's place may start when others measure.
        with gpu_lock if shared.start_measuring.is_set() else nullcontext():
            pipe.send(Message(place))
            outcome = _attempt(partial(jobs[place].prepare, context))
        _freeze_garbage()
        if outcome.error is None:
            prepared.append(place)
            pipe.send(Message(place, prepared=True))
        else:
            pipe.send(Message(place, outcome))
            _end_if_lost()
    pipe.send(Message(held=gpu_lock.held, waited=gpu_lock.waited))
    shared.start_measuring.wait()
    for place in prepared:
        with gpu_lock:
            pipe.send(Message(place))
            outcome = _attempt(jobs[place].measure)
        pipe.send(Message(place, outcome))
        _end_if_lost()


def _end_if_lost() -> None:
    if is_device_lost():
        os._exit(LOST_DEVICE)  # what the interpreter frees at its end would raise


def _freeze_garbage() -> None:
    """Exclude objects that the compiler left from later garbage collections.

    A compilation leaves about half a million objects that live as long as the process.
    """
    gc.collect()
    gc.freeze()


def _exit_with_parent() -> None:
    """Exit when the parent dies; the worker would otherwise wait for it forever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _attempt(step: Callable[[], Any]) -> Outcome:
    """Run a step; an exception becomes the outcome's error, and so does a fault of its kernels."""
    try:
        result = step()
        if is_device_lost():
            return Outcome(error="a kernel had a fault, which has ended the use of the device")
        return Outcome(result)
    except Exception as error:
        last = traceback.format_exception_only(error)[-1].strip()
        return Outcome(error=last or type(error).__name__)
