"""Normalizations: results along the reduced axis depend on reductions along it.

``inner_persistent`` where rows lie along memory, ``outer_persistent`` where they lie across.
Rows that fit are kept in registers; longer ones are read again in each pass, from the L2 cache.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ..device import CACHE_LINE_BYTES, SECTOR_BYTES, VECTOR_BYTES
from .column_walks import stay_in_l2, walked_columns, whole_columns
from .columns import begins_anywhere
from .integers import ceil_div, divisors, next_power_of_2
from .params import HeuristicParams, InnerPersistentParams, OuterPersistentParams
from .problem import Problem
from .reduction import cpu_tile
from .rows import align_of, most_tails, row_tiles, tails_of, warps_of
from .walks import (
    ALL_WARPS,
    end_of,
    is_all_an_sm_holds,
    is_better_backwards,
    stays,
    step_of,
)

LONG_ROW = 1 << 16
"""Elements of a row that are worth more launches when rows are few: some 3 us of one SM a pass."""

MOST_CO_REDUCED = 64
"""Rows that a program may have to reduce together: of more a step takes less than a line each."""


def reject_reason(problem: Problem, inner: bool) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if not problem.reduction_depth:
        return "it has no reduction"
    if problem.scans:
        return "it has a scan"
    if problem.outer_members:
        return "it reduces over rows as well"
    if problem.inner is not inner:
        return "rows lie across memory" if inner else "rows lie along memory"
    if problem.reduction_depth < 2 and not problem.dependent_outputs:
        return "no result along the reduced axis depends on a reduction"
    if problem.co_reduced > MOST_CO_REDUCED:
        return f"{problem.co_reduced} rows are too many to reduce together"
    return _too_few_rows(problem) or (None if inner else _pieces_of_lines(problem))


def _too_few_rows(problem: Problem) -> str | None:
    """A whole row is one program's work: few long rows would leave most of the device idle."""
    if problem.on_cpu:
        return None
    rows = problem.parallel if problem.inner else ceil_div(problem.parallel, _columns(problem))
    rows, row = rows // problem.co_reduced, problem.reduced * problem.co_reduced
    sms = problem.device.sm_count
    if rows * 4 < sms * 3 and row > LONG_ROW:
        return f"{rows} programs of {row} elements a row leave {sms} SMs idle"
    return None


def _pieces_of_lines(problem: Problem) -> str | None:
    """A walk over columns reads them twice, and so do a sum and a kernel that runs flat.

    The flat one has whole lines of memory wherever rows begin. On an H200 the walk of a softmax
    backward took 161 us over 8192 x 8192, torch.compile 155; 282 and 183 over 8192 x 8193. With
    two sums that need one another kernels would read three times, a walk that joins them twice.
    """
    whole = problem.on_cpu or whole_columns(problem) is not None
    if whole or problem.reduction_depth > 1 or not begins_anywhere(problem):
        return None
    return f"its rows begin inside lines of memory, and columns of {problem.reduced} do not fit"


def _columns(problem: Problem) -> int:
    """Columns side by side that make up whole sectors."""
    return min(next_power_of_2(problem.parallel), max(SECTOR_BYTES // problem.narrowest, 8))


def propose_inner(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, whole = cpu_tile(problem)
        return InnerPersistentParams(block_x=x, block_r=r, persistent=whole)
    most = most_tails(problem.accumulators)
    align = align_of(problem)
    block, tails = row_tiles(problem, align, most)
    block_x = _rows_together(problem, block + sum(tails))
    warps = warps_of(problem, block_x * (block + sum(tails)), block_x)
    if problem.co_reduced > 1:
        warps = min(warps, 8)
    if is_all_an_sm_holds(problem, block_x * (block + sum(tails))):
        warps = ALL_WARPS
    if warps == ALL_WARPS or stays(problem, block_x * (block + sum(tails)), warps):
        return InnerPersistentParams(
            block_x=block_x,
            block_r=block,
            tails=tails,
            persistent=True,
            align=align,
            num_warps=warps,
        )
    return _walked(problem, block_x, most)


def _walked(problem: Problem, block_x: int, most: int) -> HeuristicParams:
    """Rows that are read again, some of them but for their end."""
    end = end_of(problem)
    if end is not None:
        return InnerPersistentParams(
            block_x=1,
            block_r=end.step,
            tails=(end.kept,),
            persistent=False,
            backwards=is_better_backwards(problem, end.step, end.kept),
            num_warps=end.warps,
        )
    chunk, warps = step_of(problem)
    chunk = min(chunk // block_x, next_power_of_2(problem.reduced))
    # Behind a single block the tails would be in registers along with it.
    cut = problem.reduced >= 2 * chunk and problem.co_reduced == 1
    tails = tails_of(problem.reduced, chunk, most) if cut else ()
    return InnerPersistentParams(
        block_x=block_x,
        block_r=chunk,
        tails=tails,
        persistent=False,
        backwards=is_better_backwards(problem, chunk),
        num_warps=warps,
    )


def _rows_together(problem: Problem, row: int) -> int:
    """Rows of a program: those that are reduced together, or several short ones."""
    if problem.co_reduced > 1:
        return next_power_of_2(problem.co_reduced)
    rows = 1
    while rows * row < 1024 and ceil_div(problem.parallel, rows * 2) >= 4 * problem.device.sm_count:
        rows *= 2
    return rows


def propose_outer(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, fits = cpu_tile(problem)
        return OuterPersistentParams(block_x=x, block_r=r, persistent=fits)
    whole = whole_columns(problem)
    block_x, block_r, warps = whole or walked_columns(problem)
    return OuterPersistentParams(
        block_x=block_x,
        block_r=block_r,
        persistent=whole is not None,
        backwards=whole is None,
        evict_hints=whole is not None or stay_in_l2(problem, block_x),
        num_warps=warps,
    )


def split_outer(problem: Problem) -> int:
    """In how many parts to cut columns of a softmax that do not fit, where rows begin anywhere.

    Their maxima and sums are read once then, by whole vectors of parts that take rows in turn, and
    a flat kernel reads once more. Walked over, a thread has an element of a row at a time.
    """
    if problem.on_cpu or not problem.online_softmax or not begins_anywhere(problem):
        return 1
    if whole_columns(problem) is not None:
        return 1
    for parts in divisors(problem.reduced):
        part = replace(problem, parallel=problem.parallel * parts, reduced=problem.reduced // parts)
        whole = whole_columns(part)
        lines = whole is not None and whole[0] * problem.narrowest >= CACHE_LINE_BYTES
        if lines and parts % interleave_outer(problem) == 0:
            return parts
    return 1


def interleave_outer(problem: Problem) -> int:
    """What those parts should be a multiple of: then each begins at a vector."""
    vector = max(VECTOR_BYTES // problem.narrowest, 1)
    return vector // gcd(vector, problem.parallel)
