"""Whether a segment may have given params. A reason is the answer, or None."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...heuristics.params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    MatmulParams,
    RowTiling,
    TransposeParams,
)
from ...symbolic.index_expr import axes_in_order, extent
from ...symbolic.queries import assume_constant, assume_less
from ...symbolic.sizes import is_size
from ..axis_order import why_not_axes, why_not_first
from ..segments import Segment
from .row_alignment import why_not_aligned
from .row_sharing import why_not_shared


class Refusal(NamedTuple):
    """Why a segment may not have params.

    Attributes
    ----------
    reason : str
        What does not fit, with the segment's name and the figures of both sides.
    hint : str
        What to change.
    """

    reason: str
    hint: str


def why_not_params(segment: Segment, params: HeuristicParams) -> Refusal | None:
    """None, or why a kernel of a segment under given params would be wrong.

    Parameters
    ----------
    segment : Segment
        Under any params of its scheduler: they are not looked at but for their class.
    params : HeuristicParams
        The params to ask about. Their own limits hold already: the constructor checks them.
    """
    if type(params) is not type(segment.params):
        return Refusal(
            f"segment {segment.name} is scheduled by {segment.scheduler}, "
            f"which does not take {type(params).__name__}",
            f"Change the fields of {segment.params}.",
        )
    order = why_not_axes(segment, params)
    if order is None and isinstance(params, TransposeParams):
        order = why_not_first(segment, params)
    if order is not None:
        return Refusal(
            f"segment {segment.name} ({segment.scheduler}): {order}",
            "Leave the field out for the order of the rules.",
        )
    if isinstance(params, MatmulParams) and len(segment.members) > 1:
        return _why_not_columns(segment, params)
    if isinstance(params, InnerOuterPersistentParams) and params.parts > 1:
        return _why_not_parts(segment, params)
    if params.row_tiling is None:
        return None
    return _why_not_rows(segment, params, params.row_tiling)


def _why_not_columns(segment: Segment, params: MatmulParams) -> Refusal | None:
    """A product whose epilogue reduces columns: each part of a tile has those of one reduction."""
    product, *reductions = segment.members
    width = assume_constant(extent(reductions[0].across))
    columns = assume_constant(extent(axes_in_order(product.index[-1])))
    fitting = [parts for parts in (1, 2) if columns % (parts * width) == 0]
    if (params.block_n, params.parts) in [(parts * width, parts) for parts in fitting]:
        return None
    choices = (f"block_n={parts * width} with parts={parts}" for parts in fitting)
    return Refusal(
        f"segment {segment.name} (matmul) reduces {width} columns at a time of {columns}, "
        f"block_n={params.block_n} in {params.parts} parts has others",
        f"{', or '.join(choices)}.",
    )


def _why_not_parts(segment: Segment, params: InnerOuterPersistentParams) -> Refusal | None:
    """Rows that programs share: each has a part of them, and their sums can be published."""
    name = f"segment {segment.name} ({segment.scheduler})"
    row = segment.reduced_extent
    if is_size(row) or is_size(segment.parallel_extent):
        return Refusal(
            f"{name} has rows whose number or length varies, which programs cannot share",
            "Use parts=1.",
        )
    if params.align > 1:
        refusal = _why_not_at_vectors(segment, params, params.row_tiling)
        if refusal is not None:
            return refusal
    elif not _has_parts(row, params.parts, params.block_r + sum(params.tails)):
        return Refusal(
            f"{name} has rows of {row} elements, which {params.parts} parts of "
            f"{params.block_r + sum(params.tails)} do not cut up",
            "block_r and tails together are the part of one program: all parts but the last are "
            "whole, and the last has an element or more; use parts=1 otherwise.",
        )
    if params.block_m != 1:
        return Refusal(
            f"{name}: programs that share rows take one at a time, "
            f"block_m={params.block_m} is more",
            "Use block_m=1, or parts=1.",
        )
    reason = why_not_shared(segment)
    if reason is not None:
        return Refusal(f"{name}: programs cannot share rows, {reason}", "Use parts=1.")
    return None


def _has_parts(row: int, parts: int, held: int) -> bool:
    """Whether so many parts hold a row, and each has some of it."""
    return (parts - 1) * held < row <= parts * held


def _why_not_rows(segment: Segment, params: HeuristicParams, tiling: RowTiling) -> Refusal | None:
    """Tiles hold the rows that they have to: those reduced together, and those in registers."""
    name = f"segment {segment.name} ({segment.scheduler})"
    co_reduced = prod(axis.extent for axis in segment.co_reduced)
    rows = "block_x" if hasattr(params, "block_x") else "block_m"
    if segment.co_reduced and tiling.rows < co_reduced:
        return Refusal(
            f"{name} reduces {co_reduced} rows together, {rows}={tiling.rows} is too small",
            f"Use a {rows} of at least that many rows.",
        )
    loops = not tiling.in_registers and getattr(params, "loads_first", None)
    if loops and assume_less(tiling.block, segment.reduced_extent):
        return Refusal(
            f"{name} has programs that loop over rows of {segment.reduced_extent} elements, "
            "loads_first would hold what they load all through the loop",
            "Use loads_first=None, or a block_r of at least the row.",
        )
    if tiling.align > 1:
        return _why_not_at_vectors(segment, params, tiling)
    return _why_not_held(segment, params, tiling)


def _why_not_at_vectors(
    segment: Segment, params: HeuristicParams, tiling: RowTiling
) -> Refusal | None:
    """Tiles begin at vectors though rows do not."""
    loops_over_rows = isinstance(params, InnerOuterPersistentParams)
    parts = params.parts if isinstance(params, InnerOuterPersistentParams) else 1
    reason = why_not_aligned(segment, tiling, loops_over_rows, parts)
    if reason is None:
        return None
    name = f"segment {segment.name} ({segment.scheduler})"
    start = f"tiles of its rows cannot begin at vectors of {tiling.align} elements"
    return Refusal(f"{name}: {start}, {reason}", "Use align=1.")


def _why_not_held(segment: Segment, params: HeuristicParams, tiling: RowTiling) -> Refusal | None:
    """Tails hold what whole blocks leave of a row, and a row in registers fits its tiles."""
    name = f"segment {segment.name} ({segment.scheduler})"
    row, block, tails = segment.reduced_extent, tiling.block, tiling.tails
    if tails and assume_less(sum(tails), row % block):
        return Refusal(
            f"{name} has rows of {row} elements, "
            f"of which tails={tails} do not hold what blocks of {block} leave",
            "Use tails=() for a last block that reaches past the row.",
        )
    may_loop = hasattr(params, "persistent")
    if tiling.in_registers and assume_less(block + sum(tails), row):
        return Refusal(
            f"{name} keeps rows of {row} elements in registers, block_r={block} is too small",
            f"Use {'persistent=False, or ' * may_loop}a block_r of at least the row.",
        )
    return None
