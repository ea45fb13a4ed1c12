"""A file lock that gives one process at a time exclusive use of the GPU."""

from __future__ import annotations

import time

from filelock import FileLock

POLL_SECONDS = 0.002
"""Polling interval of a waiting process; filelock's default of 50 ms adds up over a suite."""


class GpuLock:
    """A reentrant lock between processes; each process has its own object for the same file.

    The operating system releases the lock when its holder dies.

    Attributes
    ----------
    held : float
        Seconds that this process held the lock.
    waited : float
        Seconds that this process waited for the lock.
    """

    def __init__(self, path: str) -> None:
        self.held = self.waited = 0.0
        self._lock = FileLock(path)
        self._since = 0.0

    def __enter__(self) -> GpuLock:
        begun = time.perf_counter()
        free = not self._lock.is_locked
        self._lock.acquire(poll_interval=POLL_SECONDS)
        if free:
            self._since = time.perf_counter()
            self.waited += self._since - begun
        return self

    def __exit__(self, *error: object) -> None:
        # Before another thread has the lock, and its time.
        if self._lock.lock_counter == 1:
            self.held += time.perf_counter() - self._since
        self._lock.release()
