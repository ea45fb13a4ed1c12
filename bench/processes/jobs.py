"""Pieces of work for processes: what a job is, and how a worker goes through its share of them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Protocol

from .gpu_lock import Turn


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
class Message:
    """From a worker: it took a job, or prepared it, or its outcome; of no job: all are prepared.

    ``held`` and ``waited`` are seconds of ``Shop.alone``.
    """

    place: int | None = None
    outcome: Outcome | None = None
    prepared: bool = False
    held: float = 0.0
    waited: float = 0.0


@dataclass(frozen=True)
class Shared:
    """What the workers share.

    Attributes
    ----------
    lock : str
        The file behind ``Shop.alone``.
    deadline : float
        As a shop has it.
    places : tuple of int
        The jobs in the order in which they are prepared.
    following, go
        How many are taken, and the sign to measure.
    """

    lock: str
    deadline: float
    places: tuple[int, ...]
    following: Any
    go: Any

    def take(self) -> int | None:
        """The next job's place, which is then nobody else's; None where all are taken."""
        with self.following.get_lock():
            number = int(self.following.value)
            self.following.value += 1
        return self.places[number] if number < len(self.places) else None


def work(jobs: Sequence[Job], shared: Shared, pipe: Connection) -> None:
    """What a worker does: prepare jobs while there are any, then measure those, in turns."""
    _end_with_parent()
    alone = Turn(shared.lock)
    shop = Shop(alone, shared.deadline)
    prepared: list[int] = []
    while (place := shared.take()) is not None:
        pipe.send(Message(place))
        outcome = _attempt(partial(jobs[place].prepare, shop))
        _settle()
        if outcome.error is None:
            prepared.append(place)
            pipe.send(Message(place, prepared=True))
        else:
            pipe.send(Message(place, outcome))
    pipe.send(Message(held=alone.held, waited=alone.waited))
    shared.go.wait()
    for place in prepared:
        with alone:
            outcome = _attempt(jobs[place].measure)
        pipe.send(Message(place, outcome))


def _settle() -> None:
    """Keep what has been compiled out of later collections of garbage, while the GPU waits.

    A compiler leaves half a million objects behind that stay for as long as the process.
    """
    gc.collect()
    gc.freeze()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for a sign for ever, and hold its memory."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _attempt(step: Callable[[], Any]) -> Outcome:
    """Any exception is an outcome: the run goes on."""
    try:
        return Outcome(step())
    except Exception as error:
        last = traceback.format_exception_only(error)[-1].strip()
        return Outcome(error=last or type(error).__name__)
