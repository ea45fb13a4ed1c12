"""Whether tiles of rows can begin at whole vectors. A reason is the answer, or None."""

from __future__ import annotations

from ...heuristics.params import RowTiling
from ...symbolic.queries import assume_less
from ..segments import Segment


def why_not_aligned(segment: Segment, tiling: RowTiling, loops_over_rows: bool) -> str | None:
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
    """
    if not (tiling.can_align and tiling.in_registers):
        return "it does not keep rows"
    if segment.co_reduced or segment.row_start is None:
        return "not most of its tensors have such rows"
    within = segment.row_start.split(tiling.align)[1]
    if loops_over_rows and within.axes() & set(segment.looped_axes):
        return "the rows of a program begin at different places of a vector"
    return _why_not_held(segment.reduced_extent, tiling)


def _why_not_held(row: int, tiling: RowTiling) -> str | None:
    """None, or why tiles do not hold a row: its whole vectors, and up to two beside them."""
    vector, tails = tiling.align, tiling.tails
    held, edges = tiling.block + sum(tails[:-1]), tails[-1] if tails else 0
    whole = row // vector * vector
    if assume_less(row, vector):
        return f"rows of {row} elements have no whole vector"
    if assume_less(held, whole) or edges < 2 * vector:
        return (
            f"block_r={tiling.block} and tails={tails} hold {held} elements in whole vectors and "
            f"{edges} beside them, of {whole} and {2 * vector}"
        )
    return None
