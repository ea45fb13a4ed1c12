"""Which random numbers take a Philox counter of their own, under any params of a kernel."""

from __future__ import annotations

from collections.abc import Collection

from ...heuristics.cost.draws import RANDOM_WORDS
from ...symbolic.index_expr import Affine, Axis
from ...symbolic.row_major import linear
from ...symbolic.sizes import hint
from ...symbolic.substitution import strip_bounds
from .reads import Read


def is_drawn_alone(read: Read, rows: Collection[Axis], row: Collection[Axis]) -> bool:
    """Whether no neighbours of a kernel share a counter of the random numbers that it reads.

    Neighbours do where their positions in the random tensor grow one by one, from a multiple of
    four: those of a whole tile, or of a dim of it. Those along rows may begin anywhere, those of
    successive rows share none.

    Parameters
    ----------
    read : Read
        Of the result of a random op.
    rows, row : collection of Axis
        The axes of rows, and those along rows.
    """
    position = strip_bounds(linear(read.index, read.value.tensor.sizes))
    inner = next((d for d, step in position.terms if hint(step) == hint(d.div) == 1), None)
    if inner is None or not isinstance(inner.base, Axis) or position.loaded():
        return True
    if row:
        return inner.base not in row
    if _is_row_major(position, rows):
        return False
    length = inner.base.extent if inner.mod is None else inner.mod
    starts = (position.const, length, *(step for d, step in position.terms if d != inner))
    return any(hint(start) % RANDOM_WORDS for start in starts)


def _is_row_major(position: Affine, axes: Collection[Axis]) -> bool:
    """Whether a position numbers all of the loop nest: a tile that runs over all axes has it."""
    long = {axis for axis in axes if hint(axis.extent) > 1}
    found = 1
    for digit, step in sorted(position.terms, key=lambda term: hint(term[1])):
        axis = digit.base
        if not isinstance(axis, Axis) or axis not in long or hint(step) != found:
            return False
        long.remove(axis)
        found *= hint(axis.extent)
    return not long and not hint(position.const)
