"""Whether a segment may have given params. Returns a reason, or None."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...heuristics.params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    KernelParams,
    RowTiling,
)
from ...symbolic.queries import assume_less
from ...symbolic.sizes import is_size
from ..axis_order import why_not_order
from ..segments.segment import Segment
from ..tile.tiling import end_of_blocks, whole_elements
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
    order = why_not_order(segment, params)
    if order is not None:
        return Refusal(
            f"segment {segment.name} ({segment.scheduler}): {order}",
            "Leave the field out for the order of the rules.",
        )
    if segment.problem is not None and segment.problem.core is not None:
        found = segment.problem.core.why_not_params(params)
        name = f"segment {segment.name} ({segment.scheduler})"
        return None if found is None else Refusal(f"{name} {found[0]}", found[1])
    tiling = params.row_tiling
    if tiling is None:
        return None
    if isinstance(params, InnerOuterPersistentParams) and params.prefetch:
        refusal = _why_not_prefetched(segment, params)
        if refusal is not None:
            return refusal
    refusal = _why_not_staged(segment, params, tiling) if tiling.staged else None
    if refusal is not None:
        return refusal
    if params.row_parts > 1:
        return _why_not_parts(segment, params, tiling)
    return _why_not_rows(segment, params, tiling)


def _why_not_prefetched(segment: Segment, params: InnerOuterPersistentParams) -> Refusal | None:
    """The refusal of ``prefetch``, where something else says when loads are begun."""
    name = f"segment {segment.name} ({segment.scheduler})"
    if params.parts > 1:
        return Refusal(
            f"{name}: programs that share a row begin its loads by themselves, "
            "prefetch would change nothing",
            "Use prefetch=False, or parts=1.",
        )
    if params.num_stages > 1:
        return Refusal(
            f"{name}: loads are begun ahead into shared memory (num_stages={params.num_stages}) "
            "or into registers (prefetch), not both",
            "Use num_stages=1, or prefetch=False.",
        )
    return None


def _why_not_parts(segment: Segment, params: HeuristicParams, tiling: RowTiling) -> Refusal | None:
    """The refusal of ``parts``: programs must each have a part, and publish their sums."""
    name = f"segment {segment.name} ({segment.scheduler})"
    row, parts, held = segment.reduced_extent, params.row_parts, tiling.block + sum(tiling.tails)
    if is_size(row) or is_size(segment.parallel_extent):
        return Refusal(
            f"{name} has rows whose number or length varies, which programs cannot share",
            "Use parts=1.",
        )
    if tiling.align > 1:
        refusal = _why_not_at_vectors(segment, params, tiling)
        if refusal is not None:
            return refusal
    elif not (parts - 1) * held < row <= parts * held:
        return Refusal(
            f"{name} has rows of {row} elements, which {parts} parts of {held} do not cut up",
            "block_r and tails together are the part of one program: all parts but the last are "
            "whole, and the last has an element or more; use parts=1 otherwise.",
        )
    if tiling.rows != 1:
        return Refusal(
            f"{name}: programs that share rows take one at a time, block_m={tiling.rows} is more",
            "Use block_m=1, or parts=1.",
        )
    reason = why_not_shared(segment)
    if reason is not None:
        return Refusal(f"{name}: programs cannot share rows, {reason}", "Use parts=1.")
    return None


def _why_not_rows(segment: Segment, params: HeuristicParams, tiling: RowTiling) -> Refusal | None:
    """The refusal of ``tails`` that do not hold the rest of a row, or of tiles too short for it."""
    name = f"segment {segment.name} ({segment.scheduler})"
    co_reduced = prod(axis.extent for axis in segment.co_reduced)
    rows = "block_m" if params.loops_over_rows else "block_x"
    if segment.co_reduced and tiling.rows < co_reduced:
        return Refusal(
            f"{name} reduces {co_reduced} rows together, {rows}={tiling.rows} is too small",
            f"Use a {rows} of at least that many rows.",
        )
    refusal = _why_not_unrolled(segment, params, tiling)
    if refusal is not None:
        return refusal
    loops = not tiling.in_registers and getattr(params, "loads_first", None)
    stages = params.num_stages if isinstance(params, KernelParams) else 1
    if loops and stages > 1 and assume_less(tiling.block, segment.reduced_extent):
        return Refusal(
            f"{name} has loops whose loads are begun steps ahead (num_stages={stages}), "
            "loads_first would change nothing",
            "Use loads_first=None, or num_stages=1.",
        )
    if tiling.align > 1:
        return _why_not_at_vectors(segment, params, tiling)
    return _why_not_held(segment, params, tiling)


def _why_not_staged(segment: Segment, params: HeuristicParams, tiling: RowTiling) -> Refusal | None:
    """The refusal of ``staged``: a tile must have several rows, each whole."""
    name, hint = f"segment {segment.name} ({segment.scheduler})", "Use staged=False."
    rows = "block_m" if params.loops_over_rows else "block_x"
    if not tiling.in_registers or tiling.tails or tiling.align > 1:
        return Refusal(
            f"{name}: rows in loops, in tiles with tails or at vectors are not whole in a thread, "
            f"got {params}",
            f"Use persistent=True, tails=() and align=1, or {hint[4:]}",
        )
    if params.row_parts > 1 or params.prefetches:
        return Refusal(
            f"{name}: rows that programs share, or that are loaded a step ahead into registers, do "
            "not go through shared memory",
            f"Use parts=1 and prefetch=False, or {hint[4:]}",
        )
    if tiling.rows == 1 or tiling.block == 1 or segment.co_reduced:
        return Refusal(
            f"{name}: a tile needs several rows of several elements, which no reduction reads "
            f"together, got {rows}={tiling.rows} and block_r={tiling.block}",
            hint,
        )
    if is_size(segment.reduced_extent):
        return Refusal(f"{name} has rows whose length varies", hint)
    return None


def _why_not_unrolled(
    segment: Segment, params: HeuristicParams, tiling: RowTiling
) -> Refusal | None:
    """The refusal of ``unroll``, where no loop without a pipeline takes as many steps of a row."""
    name = f"segment {segment.name} ({segment.scheduler})"
    if tiling.unroll == 1:
        return None
    if tiling.in_registers:
        return Refusal(
            f"{name} has rows in registers, unroll={tiling.unroll} would change nothing",
            "Use unroll=1, or persistent=False.",
        )
    if isinstance(params, KernelParams) and params.num_stages > 1:
        return Refusal(
            f"{name}: loads are begun ahead into shared memory (num_stages={params.num_stages}) "
            f"or by steps in one pass of a loop (unroll={tiling.unroll}), not both",
            "Use num_stages=1, or unroll=1.",
        )
    row, end = segment.reduced_extent, _end_of_loop(segment.reduced_extent, tiling)
    if not assume_less(tiling.block * (tiling.unroll - 1), end):
        return Refusal(
            f"{name} loops over rows of {row} elements with tails={tiling.tails} in fewer than "
            f"{tiling.unroll} steps of {tiling.block}",
            "Use a smaller unroll, a smaller block_r, or fewer tails.",
        )
    return None


def _end_of_loop(row: int, tiling: RowTiling) -> int:
    """Where the steps of a loop along a row end: tails hold what is behind."""
    tails, whole = tiling.tails, row
    if tiling.align > 1:
        tails, whole = tails[:-1], whole_elements(row, tiling.align)[1]
    return end_of_blocks(whole, tiling.block, sum(tails))


def _why_not_at_vectors(
    segment: Segment, params: HeuristicParams, tiling: RowTiling
) -> Refusal | None:
    """The refusal of ``align``, where tiles cannot begin at vectors."""
    reason = why_not_aligned(segment, tiling, params.loops_over_rows, params.row_parts)
    if reason is None:
        return None
    name = f"segment {segment.name} ({segment.scheduler})"
    start = f"tiles of its rows cannot begin at vectors of {tiling.align} elements"
    return Refusal(f"{name}: {start}, {reason}", "Use align=1.")


def _why_not_held(segment: Segment, params: HeuristicParams, tiling: RowTiling) -> Refusal | None:
    """The refusal of ``tails`` that do not hold the rest of a row, or of too short tiles."""
    name = f"segment {segment.name} ({segment.scheduler})"
    row, block, tails = segment.reduced_extent, tiling.block, tiling.tails
    # Whole blocks leave less than one: of a row that varies nothing is asked where tails hold that.
    if tails and sum(tails) < block and assume_less(sum(tails), row % block):
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
