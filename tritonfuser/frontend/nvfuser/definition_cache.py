"""Caches that share executors between equal definitions, for programs that record them anew."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError
from ...forks import Lock
from ...ir import Fusion as Graph
from ...pickling import Unpicklable
from ..definition import FusionDefinition
from ..record.sharding import Shardings
from ..run.executors import FusionExecutorCache
from ..run.fusion import Fusion
from ..vocabulary.argument_types import expect

Key = tuple[Graph, Shardings]


def check_limit(what: str, max_fusions: object) -> None:
    """Refuse a number of fusions that no cache can keep."""
    if not isinstance(max_fusions, int) or isinstance(max_fusions, bool) or max_fusions < 1:
        raise ArgumentError(f"{what}: max_fusions must be an int of 1 or more, got {max_fusions!r}")


class _Entry:
    """An executor cache and its hits."""

    def __init__(self, cache: FusionExecutorCache) -> None:
        self.cache = cache
        self.hits = 0


class LRUCache(Unpicklable):
    """Executor caches of the fusions used last.

    Equal definitions share one: inputs and their order, ops, constants, dims, dtypes, static
    sizes and contiguity decide; who recorded them does not.

    Parameters
    ----------
    max_fusions : int
        Fusions kept; the least recently used is dropped first.
    """

    send_instead = "Send the definitions, and make an LRUCache where they arrive."

    def __init__(self, max_fusions: int) -> None:
        check_limit("LRUCache", max_fusions)
        self._max = max_fusions
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._lock = Lock()
        self._compiled = 0
        self._lookups = 0
        self._hits = 0

    def cache_compile(self, fusion: Fusion) -> FusionExecutorCache:
        """The executor cache of a fusion, shared with all equal ones."""
        expect("cache_compile", Fusion, fusion)
        key = fusion.ir, fusion.shardings
        with self._lock:
            self._lookups += 1
            found = self._entries.get(key)
            if found is not None:
                self._hits += 1
                found.hits += 1
            else:
                found = self._entries[key] = _Entry(FusionExecutorCache(fusion))
                self._compiled += 1
            self._entries.move_to_end(key)
            if len(self._entries) > self._max:
                self._entries.popitem(last=False)
            return found.cache

    def knows(self, fusion: Fusion) -> bool:
        """Whether an equal fusion is kept."""
        return (fusion.ir, fusion.shardings) in self._entries

    def fusions(self) -> list[Fusion]:
        """The fusions that are kept, the least recently used first."""
        with self._lock:
            return [entry.cache.fusion() for entry in self._entries.values()]

    def num_fusions(self) -> int:
        """How many fusions are kept."""
        return len(self._entries)

    def stats(self) -> str:
        """Counts of fusions, look-ups and hits, as text."""
        with self._lock:
            lines = [f"Max Fusions Allowed: {self._max}"]
            if not self._entries:
                return "\n".join([*lines, "The fusion cache is empty."]) + "\n"
            lines += [
                f"Total Fusions in Cache: {len(self._entries)}",
                f"Total Unique Fusions Compiled: {self._compiled}",
                "Cache Hits by LRU ordering:",
            ]
            recent_first = reversed(self._entries.values())
            lines += [f"\t{place} -> {e.hits} hits" for place, e in enumerate(recent_first)]
            rate = 100 * self._hits / self._lookups
            lines += [
                f"Cache Lookups: {self._lookups}",
                f"Cache Hits: {self._hits}",
                f"Hit Rate: {rate:g}%",
            ]
            return "\n".join(lines) + "\n"


class LruFusionCache:
    """Decorates a function that returns a FusionDefinition: equal ones share what is compiled.

    The decorated function has ``stats()`` and ``num_fusions()``.

    Parameters
    ----------
    max_fusions : int
        Fusions kept.

    Examples
    --------
    >>> @LruFusionCache(max_fusions=64)
    ... def gelu(x):
    ...     with FusionDefinition() as fd: ...
    ...     return fd
    """

    def __init__(self, max_fusions: int = 16384) -> None:
        check_limit("LruFusionCache", max_fusions)
        self._cache = LRUCache(max_fusions)

    def __call__(self, function: Callable[..., FusionDefinition]) -> Any:
        if not callable(function):
            raise ArgumentError(f"LruFusionCache: expected a function, got {function!r}")
        cache = self._cache

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> FusionDefinition:
            fd = function(*args, **kwargs)
            expect("LruFusionCache", FusionDefinition, fd)
            fd.fec = cache.cache_compile(fd.fusion)
            del fd._fusion
            return fd

        wrapper.stats = cache.stats  # type: ignore[attr-defined]
        wrapper.num_fusions = cache.num_fusions  # type: ignore[attr-defined]
        return wrapper
