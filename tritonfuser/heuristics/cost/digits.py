"""Instructions of index arithmetic: quotients and remainders of the positions of a tile.

The position along a side of a tile is one number, even if the side consists of several axes. A
tensor whose offset is linear in it needs no index arithmetic. Others need the position along each
axis: its *digits*, in a mixed-radix number system whose bases are the extents. Loads at the same
positions share them.

Digits are counted along rows only. In flat kernels a vector has one position, whose digits are part
of the cost of an access. H200, two random definitions whose flat kernels would have tiles of two
sides to save digits took 1.06 and 1.07 times as long.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from ..streams import Stream

QUOTIENT = 3.0
"""Instructions of a quotient by a constant on sm_90: a wide multiply, a shift, and one for the
sign.
"""

SHIFT = 1.0
"""Instructions of a quotient by a power of two."""

REMAINDER = 1.0
"""Instructions of a remainder, once the quotient is known."""


Digit = tuple[int, int]
"""(div, extent): the digit ``position // div % extent``."""


def index_instructions(
    axes: Sequence[int], places: Sequence[int], digits: Collection[Digit]
) -> float:
    """Instructions to compute some digits of one position.

    Parameters
    ----------
    axes : sequence of int
        The extents of all axes.
    places : sequence of int
        The axes of the side, outermost first.
    digits : collection of Digit
        Each of them once.
    """
    if not digits:
        return 0.0
    whole = prod(axes[place] for place in places)
    bases = {div for div, _ in digits} | {div * extent for div, extent in digits}
    quotients = sum(SHIFT if n & (n - 1) == 0 else QUOTIENT for n in bases if 1 < n < whole)
    return quotients + REMAINDER * sum(div * extent < whole for div, extent in digits)


def digits_of(axes: Sequence[int], places: Sequence[int], stream: Stream) -> list[Digit]:
    """The digits of a position along a side that the offset of a tensor needs. None if the offset
    is linear in the position, or the tensor does not run along the side."""
    here = [term for term in stream.stride_terms if term.axis in places and term.extent > 1]
    if not here or (len(places) == 1 and here[0].div == 1 and here[0].extent == axes[places[0]]):
        return []
    inside, each = dict[int, int](), 1
    for place in reversed(places):
        inside[place], each = each, each * max(axes[place], 1)
    terms = sorted((term.div * inside[term.axis], term.extent, term.step) for term in here)
    merged: list[tuple[int, int, int]] = []
    for div, extent, step in terms:
        if merged and (div, step) == (merged[-1][0] * merged[-1][1], merged[-1][2] * merged[-1][1]):
            merged[-1] = merged[-1][0], merged[-1][1] * extent, merged[-1][2]
        else:
            merged.append((div, extent, step))
    if not merged or (len(merged) == 1 and merged[0][:2] == (1, each)):
        return []
    return [(div, extent) for div, extent, _ in merged]
