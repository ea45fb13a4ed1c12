"""One process at a time: who has the GPU to itself."""

from __future__ import annotations

import time

from filelock import FileLock

OFTEN = 0.002
"""Seconds between two looks of a process that waits: filelock's own 50 ms add up over a suite."""


class Turn:
    """A lock of several processes, each with an object of its own for the same file.

    The holder may enter it again; it is let go when its holder dies.

    Attributes
    ----------
    held, waited : float
        Seconds that this process had it, and that it waited for it.
    """

    def __init__(self, path: str) -> None:
        self.held = self.waited = 0.0
        self._lock = FileLock(path)
        self._since = 0.0

    def __enter__(self) -> Turn:
        begun = time.perf_counter()
        free = not self._lock.is_locked
        self._lock.acquire(poll_interval=OFTEN)
        if free:
            self._since = time.perf_counter()
            self.waited += self._since - begun
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        if not self._lock.is_locked:
            self.held += time.perf_counter() - self._since
