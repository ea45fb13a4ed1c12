"""A bounded LRU mapping that makes each entry once, even when several threads ask for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from ..forks import reset_in_forked_children

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRU(Generic[K, V]):
    """Least-recently-used mapping with single-flight creation of entries.

    Parameters
    ----------
    capacity : int
        Entries kept; the least recently used is dropped first.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a cache holds at least one entry, not {capacity}")
        self.capacity = capacity
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._making: dict[K, Future[V | None]] = {}
        self._lock = threading.Lock()
        reset_in_forked_children(self)

    def reset_after_fork(self) -> None:
        """In a forked child nobody makes an entry that another thread of the parent was making."""
        self._lock = threading.Lock()
        self._making = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def newest(self) -> V | None:
        """The entry used last."""
        with self._lock:
            key = next(reversed(self._entries), None)
            return None if key is None else self._entries[key]

    def peek(self, key: K) -> V | None:
        """The entry, which does not become the most recently used, or None."""
        return self._entries.get(key)

    def get(self, key: K) -> V | None:
        """The entry, now the most recently used, or None."""
        found = self._entries.get(key)
        if found is not None:
            try:
                self._entries.move_to_end(key)
            except KeyError:  # another thread has just dropped it; it is still valid
                return found
        return found

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The entry, made by one thread if it is not there; an error is not kept.

        Threads that wait share the error. What interrupts a thread, as ``KeyboardInterrupt``, is
        its own: another one makes the entry.
        """
        while True:
            pending, mine = None, False
            try:
                with self._lock:
                    found = self.get(key)
                    if found is not None:
                        return found
                    pending = self._making.get(key)
                    mine = pending is None
                    if pending is None:
                        pending = self._making[key] = Future()
                if mine:
                    return self._make(key, pending, make)
            except BaseException as error:
                if mine and pending is not None:
                    self._give_up(key, pending, error)
                raise
            made = pending.result()
            if made is not None:
                return made

    def _make(self, key: K, pending: Future[V | None], make: Callable[[], V]) -> V:
        """Make an entry on this thread. ``pending`` gets it, for other threads."""
        made = make()
        with self._lock:
            self._entries[key] = made
            if len(self._entries) > self.capacity:
                self._entries.popitem(last=False)
            del self._making[key]
        pending.set_result(made)
        return made

    def _give_up(self, key: K, pending: Future[V | None], error: BaseException) -> None:
        """Nobody waits for this thread any more, wherever in making an entry it was interrupted."""
        with self._lock:
            if self._making.get(key) is pending:
                del self._making[key]
        if pending.done():
            return
        if isinstance(error, Exception):
            pending.set_exception(error)
        else:
            pending.set_result(None)

    def replace(self, key: K, old: V, new: V) -> None:
        """Have a new entry in the place of an old one, unless that is no longer there."""
        with self._lock:
            if self._entries.get(key) is old:
                self._entries[key] = new

    def values(self) -> list[V]:
        """All entries, the one used last at the end."""
        with self._lock:
            return list(self._entries.values())

    def drop(self, key: K) -> None:
        """Forget the entry, if it is there."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._entries.clear()
