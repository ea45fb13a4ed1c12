"""Integer arithmetic of tiles: powers of two, rounded quotients, divisors, numbers of warps."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

from ..device import NVIDIA_WARP_SIZE


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least ``n`` and at least 1."""
    return 1 << max(n - 1, 0).bit_length()


def floor_power_of_2(n: int) -> int:
    """The largest power of two that is at most ``n``, which is 1 or more."""
    return 1 << n.bit_length() - 1


def is_power_of_two(n: int) -> bool:
    """Whether a number is 1, 2, 4, ..."""
    return n > 0 and n & (n - 1) == 0


def ceil_div(a: int, b: int) -> int:
    """``a / b`` rounded up."""
    return -(-a // b)


def halved(size: int, least: int, fits: Callable[[int], bool]) -> int:
    """A power of two, halved until it fits or is ``least``."""
    while size > least and not fits(size):
        size //= 2
    return size


def divisors(n: int) -> list[int]:
    """All divisors of a number, the smallest first."""
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


TUNED_WARP_SIZE = NVIDIA_WARP_SIZE
"""Threads that the rules for tiles count for a warp, on every device.

They were measured on NVIDIA GPUs. A wavefront of AMD has twice the threads, so a thread there has
half of the elements that a rule says."""


def warps_for(elements: int, per_thread: int, most: int, least: int = 1) -> int:
    """Warps for a tile, with about ``per_thread`` elements in each thread: a power of two.

    A tile of a block and tails has no power of two of elements.
    """
    wanted = max(elements // (TUNED_WARP_SIZE * per_thread), 1)
    return max(least, min(most, floor_power_of_2(wanted)))
