"""Whether tiles of rows can begin at whole vectors. Returns a reason, or None."""

from __future__ import annotations

from ...heuristics.params import RowTiling
from ...symbolic.queries import assume_at_most, assume_less
from ...symbolic.substitution import strip_bounds, substitute
from ..segments.segment import Segment
from ..tile.tiling import whole_elements


def why_not_aligned(
    segment: Segment, tiling: RowTiling, loops_over_rows: bool, parts: int = 1
) -> str | None:
    """None, or why the tiles of a segment's rows cannot begin at vectors of ``tiling.align``.

    Parameters
    ----------
    segment : Segment
        It has contiguous rows if it has a ``row_start``.
    tiling : RowTiling
        The tiles. The last tail has the row's edges: the elements outside of whole vectors.
    loops_over_rows : bool
        Whether a program loops over rows. They must all begin at the same offset in a vector.
    parts : int
        Programs that share a row. The tiles are those of one part.
    """
    if not tiling.can_align:
        return "kernels of its scheduler have none"
    if segment.co_reduced or segment.row_start is None:
        return "not most of its tensors have such rows"
    places = segment.shares[0].places if segment.shares else {}
    within = strip_bounds(substitute(segment.row_start, places)).split(tiling.align)[1]
    looped = {*segment.looped_axes, *(axis for at in places.values() for axis in at.axes())}
    if loops_over_rows and within.axes() & looped - {share.part for share in segment.shares}:
        return "the rows of a program begin at different places of a vector"
    return _why_not_held(segment.reduced_extent, tiling, parts)


def _why_not_held(row: int, tiling: RowTiling, parts: int) -> str | None:
    """None, or why tiles do not hold a row: its whole vectors, and edges of up to two vectors."""
    vector, tails = tiling.align, tiling.tails
    edges = tails[-1] if tails else 0
    if assume_less(row, vector):
        return f"rows of {row} elements have no whole vector"
    if not tiling.in_registers and tiling.block < vector:
        return f"steps of block_r={tiling.block} hold no vector"
    if not tiling.in_registers and edges >= 2 * vector:
        return _why_not_behind_blocks(row, tiling)
    held, (_, whole) = parts * (tiling.block + sum(tails[:-1])), whole_elements(row, vector)
    if (tiling.in_registers and assume_less(held, whole)) or edges < 2 * vector:
        return (
            f"{f'{parts} parts of ' * (parts > 1)}block_r={tiling.block} and tails={tails} "
            f"hold {held} elements in whole vectors and "
            f"{edges} beside them, of {whole} and {2 * vector}"
        )
    return None


def _why_not_behind_blocks(row: int, tiling: RowTiling) -> str | None:
    """None, or why tails do not hold the whole vectors that remain after the loop. The loop has the
    number of blocks that every row has, wherever it begins. Without such tails its last block is
    masked."""
    least, most = whole_elements(row, tiling.align)
    behind = sum(tiling.tails[:-1])
    if not 0 < behind < tiling.block or assume_at_most(most, tiling.block + behind):
        return None
    left = most - least // tiling.block * tiling.block
    if not assume_less(behind, left):
        return None
    return (
        f"blocks of {tiling.block} leave {left} elements in whole vectors, "
        f"of which tails={tiling.tails} hold {behind}"
    )
