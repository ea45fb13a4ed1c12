"""Memoization of what several lowerings of one fusion have in common.

A tuner lowers a fusion under hundreds of schedules, most of which differ in the params of one or
two kernels. All stages before params, and all kernels that are equal, are computed once and kept by
the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

Memo = Callable[[Hashable, Callable[[], Any]], Any]
"""``memo(key, make)`` returns ``make()``, or the earlier result for an equal key."""


def no_memo(key: Hashable, make: Callable[[], T]) -> T:
    """A ``Memo`` that computes everything anew."""
    return make()
