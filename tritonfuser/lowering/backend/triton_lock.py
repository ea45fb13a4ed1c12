"""The lock between Triton's compiler and its interpreter.

The interpreter works by replacing functions of ``triton.language`` while it runs, so nothing may
be compiled meanwhile and only one kernel can be interpreted at a time. Compilations do not
disturb one another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ...forks import reset_in_forked_children


class SharedLock:
    """Held by many at once (``shared``), or by one alone (``exclusive``); not reentrant."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_forked_children(self)

    def reset_after_fork(self) -> None:
        """Return to the state in which nobody holds the lock."""
        self._changed = threading.Condition()
        self._holders = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._holders += 1
        try:
            yield
        finally:
            with self._changed:
                self._holders -= 1
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and self._holders == 0)
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


LANGUAGE = SharedLock()
"""Who uses ``triton.language`` as it is holds it shared; who patches it, exclusively."""
