"""What lowerings of one fusion have in common, made once.

A tuner lowers a fusion under hundreds of schedules, which differ in the params of a kernel or two.
All that comes before params, and each kernel that is the same, is kept by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

Keep = Callable[[Hashable, Callable[[], Any]], Any]
"""``keep(key, make)`` is what ``make()`` gives, or has given for an equal key."""


def anew(key: Hashable, make: Callable[[], T]) -> T:
    """A ``Keep`` that keeps nothing."""
    return make()
