"""Whether tiles of rows can begin at whole vectors. Returns a reason, or None."""

from __future__ import annotations

from ...heuristics.params import RowTiling
from ...symbolic.index_expr import strip_bounds, substitute
from ...symbolic.queries import assume_less
from ..segments.segment import Segment


def why_not_aligned(
    segment: Segment, tiling: RowTiling, loops_over_rows: bool, parts: int = 1
) -> str | None:
    """None, or why the tiles of a segment's rows cannot begin at vectors of ``tiling.align``.

    Parameters
    ----------
    segment : Segment
        Its rows are contiguous where ``row_start`` says so.
    tiling : RowTiling
        The tiles. The last tail has the elements beside whole vectors.
    loops_over_rows : bool
        Whether a program has more than one row in a loop. They must all begin at the same place of
        a vector.
    parts : int
        Programs that share a row. The tiles are a part of it.
    """
    if not (tiling.can_align and tiling.in_registers):
        return "it does not keep rows"
    if segment.co_reduced or segment.row_start is None:
        return "not most of its tensors have such rows"
    places = segment.shares[0].places if segment.shares else {}
    within = strip_bounds(substitute(segment.row_start, places)).split(tiling.align)[1]
    looped = {*segment.looped_axes, *(axis for at in places.values() for axis in at.axes())}
    if loops_over_rows and within.axes() & looped - {share.part for share in segment.shares}:
        return "the rows of a program begin at different places of a vector"
    return _why_not_held(segment.reduced_extent, tiling, parts)


def _why_not_held(row: int, tiling: RowTiling, parts: int) -> str | None:
    """None, or why tiles do not hold a row: its whole vectors, and up to two beside them."""
    vector, tails = tiling.align, tiling.tails
    held, edges = parts * (tiling.block + sum(tails[:-1])), tails[-1] if tails else 0
    whole = row // vector * vector
    if assume_less(row, vector):
        return f"rows of {row} elements have no whole vector"
    if assume_less(held, whole) or edges < 2 * vector:
        return (
            f"{f'{parts} parts of ' * (parts > 1)}block_r={tiling.block} and tails={tails} "
            f"hold {held} elements in whole vectors and "
            f"{edges} beside them, of {whole} and {2 * vector}"
        )
    return None
