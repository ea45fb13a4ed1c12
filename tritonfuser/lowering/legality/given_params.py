"""Params in the place of those that the heuristics propose, where they fit their segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ...errors import ParamsError
from ...heuristics.params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    MatmulParams,
    RowTiling,
)
from ...symbolic.index_expr import axes_in_order
from ...symbolic.sizes import is_size
from ..segments import Segment, SegmentedFusion
from ..tile.aligned_rows import unalignable
from ..tile.shared_nest import not_shared


def with_params(segmented: SegmentedFusion, params: Sequence[HeuristicParams]) -> SegmentedFusion:
    """The same segments under other params.

    Raises
    ------
    ParamsError
        There are not as many as segments, or one is of another scheduler than its segment's.
    """
    if len(params) != len(segmented.segments):
        raise ParamsError(
            f"{len(params)} params for {len(segmented.segments)} segments",
            hint="fd.heuristics(inputs) gives one a segment, in this order.",
        )
    pieces: list[Segment] = []
    for piece, chosen in zip(segmented.segments, params, strict=True):
        if type(chosen) is not type(piece.params):
            raise ParamsError(
                f"segment {piece.name} is scheduled by {piece.scheduler}, "
                f"which does not take {type(chosen).__name__}",
                hint=f"Change the fields of {piece.params}.",
            )
        _check_fit(piece, chosen)
        pieces.append(replace(piece, params=chosen))
    return replace(segmented, segments=tuple(pieces))


def _check_width(piece: Segment, params: MatmulParams) -> None:
    product, *reductions = piece.members
    width = prod(axis.extent for axis in reductions[0].across)
    columns = prod(axis.extent for axis in axes_in_order(product.index[-1]))
    fitting = [parts for parts in (1, 2) if columns % (parts * width) == 0]
    if (params.block_n, params.parts) not in [(parts * width, parts) for parts in fitting]:
        choices = (f"block_n={parts * width} with parts={parts}" for parts in fitting)
        raise ParamsError(
            f"segment {piece.name} (matmul) reduces {width} columns at a time of {columns}, "
            f"block_n={params.block_n} in {params.parts} parts has others",
            hint=f"{', or '.join(choices)}.",
        )


def _check_parts(piece: Segment, params: InnerOuterPersistentParams) -> None:
    """Rows that programs share are cut into equal parts, and have sums that can be told."""
    row, held = piece.reduced_extent, params.block_r + sum(params.tails)
    if is_size(row) or is_size(piece.parallel_extent) or row != params.parts * held:
        raise ParamsError(
            f"segment {piece.name} ({piece.scheduler}) has rows of {row} elements, which are not "
            f"{params.parts} parts of {held}",
            hint="block_r and tails together are the part of one program; use parts=1 otherwise.",
        )
    if params.block_m != 1:
        raise ParamsError(
            f"segment {piece.name} ({piece.scheduler}): programs that share rows take one at a "
            f"time, block_m={params.block_m} is more",
            hint="Use block_m=1, or parts=1.",
        )
    reason = not_shared(piece)
    if reason is not None:
        raise ParamsError(
            f"segment {piece.name} ({piece.scheduler}): programs cannot share rows, {reason}",
            hint="Use parts=1.",
        )


def _check_align(piece: Segment, params: HeuristicParams, tiling: RowTiling) -> None:
    """Tiles that begin at vectors hold a whole row of tensors whose rows begin alike."""
    reason: str | None = "it does not keep rows"
    if tiling.can_align and tiling.in_registers:
        walks = isinstance(params, InnerOuterPersistentParams)
        walked = set(piece.parallel) - set(piece.batch_axes) if walks else ()
        start = None if piece.co_reduced else piece.row_start
        tiles = (tiling.block, tiling.tails, tiling.align)
        reason = unalignable(start, walked, piece.reduced_extent, *tiles)
    if reason is not None:
        raise ParamsError(
            f"segment {piece.name} ({piece.scheduler}): tiles of its rows cannot begin at vectors "
            f"of {tiling.align} elements, {reason}",
            hint="Use align=1.",
        )


def _check_fit(piece: Segment, params: HeuristicParams) -> None:
    """Params that keep a row in registers must have room for it, or for the columns reduced."""
    if isinstance(params, MatmulParams) and len(piece.members) > 1:
        _check_width(piece, params)
    if isinstance(params, InnerOuterPersistentParams) and params.parts > 1:
        _check_parts(piece, params)
        return
    if params.row_tiling is not None:
        _check_rows(piece, params, params.row_tiling)


def _check_rows(piece: Segment, params: HeuristicParams, tiling: RowTiling) -> None:
    co_reduced = prod(axis.extent for axis in piece.co_reduced)
    if piece.co_reduced and tiling.rows < co_reduced:
        raise ParamsError(
            f"segment {piece.name} ({piece.scheduler}) reduces {co_reduced} rows together, "
            f"block_x={tiling.rows} is too small",
            hint="Use a block_x of at least that many rows.",
        )
    if tiling.align > 1:
        _check_align(piece, params, tiling)
        return
    block, tails = tiling.block, tiling.tails
    if tails and piece.reduced_extent % block > sum(tails):
        raise ParamsError(
            f"segment {piece.name} ({piece.scheduler}) has rows of {piece.reduced_extent} "
            f"elements, of which tails={tails} do not hold what blocks of {block} leave",
            hint="Use tails=() for a last block that reaches past the row.",
        )
    if tiling.in_registers and block + sum(tails) < piece.reduced_extent:
        raise ParamsError(
            f"segment {piece.name} ({piece.scheduler}) keeps rows of {piece.reduced_extent} "
            f"elements in registers, block_r={block} is too small",
            hint="Use persistent=False, or a block_r of at least the row.",
        )
