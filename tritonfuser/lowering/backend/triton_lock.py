"""The lock between Triton's compiler and its interpreter.

The interpreter works by replacing functions of ``triton.language`` while it runs, so nothing may
be compiled meanwhile and only one kernel can be interpreted at a time. Compilations do not
disturb one another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from ...forks import reset_in_forked_children


class SharedLock:
    """Held by many at once (``shared``), or by one alone (``exclusive``); not reentrant.

    Whoever shares it holds a lock of its own, and whoever is alone waits for each of these. They
    are held by ``with`` statements, so that a thread leaves them wherever it is interrupted.
    """

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_forked_children(self)

    def reset_after_fork(self) -> None:
        """Return to the state in which nobody holds the lock."""
        self._alone = threading.Lock()
        self._changing = threading.Lock()
        self._shares: WeakSet[threading.Lock] = WeakSet()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """A context that several threads may be in at a time, while none is in ``exclusive``."""
        while True:
            own = self._new_share()
            with own:
                # Whoever is alone from now on waits for ``own``.
                if not self._alone.locked():
                    yield
                    return
            with self._alone:
                pass

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """A context that one thread is in, while none is in ``shared``."""
        with self._alone:
            for share in self._held_shares():
                with share:
                    pass
            yield

    def _new_share(self) -> threading.Lock:
        own = threading.Lock()
        with self._changing:
            self._shares.add(own)
        return own

    def _held_shares(self) -> list[threading.Lock]:
        with self._changing:
            return [share for share in self._shares if share.locked()]


LANGUAGE = SharedLock()
"""Who uses ``triton.language`` as it is holds it shared; who patches it, exclusively."""
