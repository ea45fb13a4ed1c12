"""What threads hold is let go in a forked child, which has none of them.

A fork copies the memory and the thread that forks alone. A lock that another thread held stays
locked in the child, and what that thread was making is never done: who waits for it hangs.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Protocol
from weakref import WeakSet


class Held(Protocol):
    """An object with a state that threads hold."""

    def let_go(self) -> None:
        """Be as if no thread had ever held it."""


_HELD: WeakSet[Held] = WeakSet()


def let_go_in_children(held: Held) -> None:
    """Have an object's ``let_go`` called in forked children, as long as something else keeps it."""
    _HELD.add(held)


class Lock:
    """``threading.Lock`` that is free in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        let_go_in_children(self)

    def let_go(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def try_to_hold(self) -> bool:
        """Hold it, to be let go by ``release``, unless somebody holds it."""
        return self._lock.acquire(blocking=False)

    def release(self) -> None:
        """Let go what ``try_to_hold`` holds."""
        self._lock.release()


def _let_go() -> None:
    for held in list(_HELD):
        held.let_go()


os.register_at_fork(after_in_child=_let_go)
