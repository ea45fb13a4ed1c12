"""Locks and other state that threads hold, reset in a forked child.

A fork copies the memory and only the thread that forks. A lock that another thread held stays
locked in the child, and what that thread was making is never finished: who waits for it hangs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, TypeAlias
from weakref import WeakSet


class ThreadState(Protocol):
    """An object whose state depends on threads: locks, work in progress."""

    def reset_after_fork(self) -> None:
        """Return to the state in which no thread holds anything."""


_REGISTERED: WeakSet[ThreadState] = WeakSet()


def reset_in_forked_children(state: ThreadState) -> None:
    """Call ``state.reset_after_fork()`` in every forked child, as long as ``state`` is alive."""
    _REGISTERED.add(state)


_Leave: TypeAlias = Callable[
    [type[BaseException] | None, BaseException | None, TracebackType | None], None
]


class Lock:
    """``threading.Lock`` that is free in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        reset_in_forked_children(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()

    # A with statement calls these methods of the lock itself: between acquiring it and entering the
    # body, or leaving that and releasing it, nothing can interrupt the thread.

    @property
    def __enter__(self) -> Callable[[], bool]:
        return self._lock.__enter__

    @property
    def __exit__(self) -> _Leave:
        return self._lock.__exit__

    def try_acquire(self) -> bool:
        """Acquire the lock, unless it is held; whether it was acquired. Ends with ``release``."""
        return self._lock.acquire(blocking=False)

    def release(self) -> None:
        """Release what ``try_acquire`` acquired."""
        self._lock.release()


def _reset_all() -> None:
    for state in list(_REGISTERED):
        state.reset_after_fork()


os.register_at_fork(after_in_child=_reset_all)
