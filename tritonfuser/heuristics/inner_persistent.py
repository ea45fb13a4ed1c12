"""Normalizations along rows, such as softmax and layer norms: results need reductions of their row.

It takes problems whose rows are contiguous in memory. It decides in this order: rows that fit stay
in registers (``persistent``), with two programs for each SM or one; the end of a longer row may
stay in registers while a loop for each pass reads the rest; loops read all of any other row. If a
large tensor is strided along rows, a program has as many rows as fill its sectors.
"""

from __future__ import annotations

from ..device import SECTOR_BYTES
from .columns.tiles import column_facts
from .cost.registers import registers_for_threads
from .integers import ceil_div, next_power_of_2, warps_for
from .interpreter_tiles import interpreter_tile
from .long_row_loops import LoopStep, kept_end, loop_step, pays_backwards
from .params import HeuristicParams, InnerPersistentParams
from .params.made import made
from .problem import Problem
from .programs import are_few
from .requirements import (
    HAS_REDUCTION,
    NO_CROSSING_TENSOR,
    NO_OUTER_REDUCTION,
    NO_SCAN,
    ROWS_ALONG_MEMORY,
    first_reason,
    normalization_reason,
)
from .row_tiling import (
    edges_tail,
    joined_tiles,
    loop_tails,
    max_tails,
    row_alignment,
    tile_row,
    warps_of_rows,
)
from .rows_in_registers import WHOLE_SM_WARPS, fits_one_program_per_sm, fits_two_programs_per_sm

REQUIREMENTS = (HAS_REDUCTION, NO_SCAN, NO_OUTER_REDUCTION, ROWS_ALONG_MEMORY)
"""What a problem needs whatever its sizes are."""

SHORT_TILE_ELEMENTS = 1024
"""A program takes more rows until its tile has so many elements."""

MAX_CO_REDUCED_WARPS = 8
"""Most warps of a program with co-reduced rows."""

CROSSING_ELEMENTS_PER_THREAD = 16
"""Elements of a thread if tensors are contiguous along different axes of the tile."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    reason = first_reason(problem, *REQUIREMENTS)
    if reason is not None:
        return reason
    rows = _rows_across(problem)
    if rows == 1 and not NO_CROSSING_TENSOR.holds(problem):
        return NO_CROSSING_TENSOR.reason
    return normalization_reason(problem, ceil_div(problem.parallel, rows))


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    if problem.on_cpu:
        return InnerPersistentParams(**interpreter_tile(problem)._asdict())
    align = row_alignment(problem)
    found = _kept(problem, align)
    return _looped(problem, align) if found is None else found


def _kept(problem: Problem, align: int, closely: bool = False) -> InnerPersistentParams | None:
    """Params with rows in registers; None if they do not fit.

    Tiles of rows of varying length reach far past the end of a row, so that few kernels serve many
    lengths. If such tiles do not fit in registers, they are as close (``closely``) as those of a
    constant length.
    """
    block, tails = tile_row(problem, align, max_tails(problem.accumulators), closely)
    row = block + sum(tails)
    block_x = _rows_of_program(problem, row)
    tile = block_x * row
    warps = warps_of_rows(problem, tile, block_x)
    if _rows_across(problem) > 1:
        warps = warps_for(tile, CROSSING_ELEMENTS_PER_THREAD, most=16)
    if problem.co_reduced > 1:
        warps = min(warps, MAX_CO_REDUCED_WARPS)
    if fits_one_program_per_sm(problem, tile):
        warps = WHOLE_SM_WARPS
    elif not fits_two_programs_per_sm(problem, tile, warps):
        again = problem.row_varies and not closely
        return _kept(problem, align, closely=True) if again else None
    if align == 1:
        block, tails = joined_tiles(problem, block, tails, warps, block_x)
    return made(
        InnerPersistentParams,
        block_x=block_x,
        block_r=block,
        tails=tails,
        persistent=True,
        align=align,
        num_warps=warps,
    )


def _rows_of_program(problem: Problem, row: int) -> int:
    """Rows of a program: those that are reduced together, or several short ones."""
    if problem.co_reduced > 1:
        return next_power_of_2(problem.co_reduced)
    rows = _rows_across(problem)
    while rows * row < SHORT_TILE_ELEMENTS and not are_few(
        problem, ceil_div(problem.parallel, rows * 2)
    ):
        rows *= 2
    return rows


def _rows_across(problem: Problem) -> int:
    """Rows that fill a sector of tensors that are strided along rows, or their contiguous run if it
    is shorter. 1 without such tensors, or if so many rows do not fit in registers.

    A pair of sectors, which are fetched together, is no faster, since fewer programs are resident:
    H200, 44 us by one sector and 50 by two, 104 and 115.
    """
    if not problem.crosses or problem.co_reduced > 1 or problem.parallel == 0:
        return 1
    narrowest = min(s.item_bytes for s in problem.crossing_streams)
    run = next_power_of_2(column_facts(problem).run)
    row = next_power_of_2(problem.reduced)
    rows = min(SECTOR_BYTES // narrowest, run)
    warps = warps_for(rows * row, CROSSING_ELEMENTS_PER_THREAD, most=16)
    return rows if fits_two_programs_per_sm(problem, rows * row, warps) else 1


def _looped(problem: Problem, align: int) -> HeuristicParams:
    """Params with loops that read rows, or all of them but the end."""
    block_x = _rows_of_program(problem, next_power_of_2(problem.reduced))
    end = kept_end(problem)
    if end is not None:
        return made(
            InnerPersistentParams,
            block_x=1,
            block_r=end.step,
            tails=(end.kept, *edges_tail(align)),
            persistent=False,
            align=align,
            backwards=pays_backwards(problem, end.step, end.kept),
            num_warps=end.warps,
        )
    step = loop_step(problem)
    block_r = min(step.elements // block_x, next_power_of_2(problem.reduced))
    # With a single block, the block and its tails would all be in registers.
    has_tails = problem.reduced // block_r > 1 and problem.co_reduced == 1
    most = max_tails(problem.accumulators)
    tails = loop_tails(problem, block_r, most, align) if has_tails else edges_tail(align)
    return made(
        InnerPersistentParams,
        block_x=block_x,
        block_r=block_r,
        tails=tails,
        persistent=False,
        align=align,
        backwards=pays_backwards(problem, block_r),
        num_warps=step.warps,
        max_registers=_limit(problem, step),
    )


def _limit(problem: Problem, step: LoopStep) -> int:
    """The register limit with which an SM has the resident programs that a step assumes. 0 for
    none."""
    counts = step.rows and len(problem.full_loads) == 1
    if not counts or not problem.device.limits_registers:
        return 0
    return registers_for_threads(problem.device, step.rows * step.warps * problem.device.warp_size)
