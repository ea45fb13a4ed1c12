"""``cached_property`` without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class cached_property(Generic[T]):
    """``functools.cached_property`` without its lock, which Python 3.12 has dropped as well.

    Threads that read an attribute at the same time may compute it twice: it is for values that are
    the same each time. Lowering the recorded definitions computes some 10^5 of them.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> T:
        if instance is None:  # read from the class, as tools for documentation do
            return self  # type: ignore[return-value]
        found = self._compute(instance)
        instance.__dict__[self._name] = found
        return found
