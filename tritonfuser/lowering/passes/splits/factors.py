"""Factorizations of extents: which factor of each dim the second step reduces."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from ....heuristics.integers import divisors
from ....symbolic.queries import assume_less, is_known_equal, known_divisor

MAX_SHORTFALL = 2
"""A split into fewer parts than wanted, by more than this factor, is not worth a second step."""


def contiguous_factors(
    extents: tuple[int, ...], parts: int, known: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """The factor of each reduced extent that the second step reduces, from the outermost on.

    Their product is at most ``parts``, and near it: ``(4, 512), 128 -> (4, 32)``. A dim has parts
    where those outside it are cut into single positions, so that each part is whole along the dims
    inside its own: ``(15221, 10), 10 -> (1, 1)``, where parts of the 10 would be one element of
    each run. All are 1 where no divisor gives two parts, or where nothing would be left for the
    first step.

    Parameters
    ----------
    known : tuple of int, optional
        What divides each extent at all sizes; by default that is asked of the extents.
    """
    factors: list[int] = []
    left = parts
    for extent, number in zip(extents, known or known_divisors(extents), strict=True):
        factors.append(max(d for d in divisors(number) if d <= left))
        left = left // factors[-1] if is_known_equal(factors[-1], extent) else 1
    return _unless_whole(factors, extents)


def factors_of_any(
    extents: tuple[int, ...], parts: int, known: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """As ``contiguous_factors``, of all dims: ``(97, 4096), 64 -> (1, 64)``.

    For parts that are several pieces of memory anyhow, or where padding costs more than pieces.
    """
    factors: list[int] = []
    left = parts
    for number in known or known_divisors(extents):
        factors.append(max(d for d in divisors(number) if d <= left))
        left //= factors[-1]
    return _unless_whole(factors, extents)


def interleaved_factors(
    extents: tuple[int, ...], parts: int, multiple_of: int, known: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """As ``factors_of_any`` for interleaved parts: from the innermost extent on.

    ``(4, 510), 128, 2 -> (1, 102)``.

    Parameters
    ----------
    multiple_of : int
        The number of parts should be a multiple of this.
    """
    factors: list[int] = []
    left, multiple = parts, multiple_of
    for number in reversed(known or known_divisors(extents)):
        fitting = [d for d in divisors(number) if d <= left]
        factors.append(max(fitting, key=lambda d: (gcd(d, multiple), d)))
        left, multiple = left // factors[-1], multiple // gcd(factors[-1], multiple)
    return _unless_whole(factors[::-1], extents)


def known_divisors(extents: tuple[int, ...]) -> tuple[int, ...]:
    """What divides each extent at all sizes."""
    return tuple(known_divisor(size) for size in extents)


def _unless_whole(factors: Sequence[int], extents: tuple[int, ...]) -> tuple[int, ...]:
    """The factors, or all 1 where they are the whole extents."""
    fewer = assume_less(prod(factors), prod(extents))
    return tuple(factors) if fewer else (1,) * len(extents)


def splits_well(extents: tuple[int, ...], parts: int, known: tuple[int, ...] | None = None) -> bool:
    """Whether the extents have divisors for about as many contiguous parts as wanted."""
    return is_near(prod(contiguous_factors(extents, parts, known)), parts)


def is_near(found: int, parts: int) -> bool:
    """Whether the parts that divisors give are about as many as wanted; one is no split."""
    return MAX_SHORTFALL * found >= parts and (found > 1 or parts == 1)
