"""The ``reduction`` scheduler: reductions whose rows are read once.

The rows are contiguous in memory (inner reductions), or strided (outer ones, reductions over
columns). It decides in this order: the number of parts of a row, so that programs fill the device;
whether rows that begin inside vectors stay in registers, in aligned tiles; the tile of a step;
tails; pipeline stages. Tiles of columns come from ``columns.sums``.
"""

from __future__ import annotations

from ..device import SECTOR_BYTES
from .columns.sums import column_stages, column_sum_tile, interleaved_parts, parts_of_columns
from .columns.tiles import column_facts
from .integers import ceil_div, halved, next_power_of_2, warps_for
from .interpreter_tiles import interpreter_tile
from .one_wave import pays_to_split, spread_warps, wave_efficiency
from .params import HeuristicParams, ReductionParams
from .params.made import made
from .problem import Problem
from .programs import are_few
from .requirements import HAS_REDUCTION, NO_OUTER_REDUCTION, NO_SCAN, first_reason
from .row_tiling import (
    joined_tiles,
    loop_tails,
    max_tails,
    peeled_step,
    row_alignment,
    tile_row,
    warps_of_rows,
)
from .rows_in_registers import fits_registers

PROGRAMS_PER_SM = 4
"""Programs for each SM that split rows should give, if each has enough to read, so that no SM is
idle at the end."""

MIN_PART_OF_ROW = 256
"""Least elements of a part of a row."""

FULL_PART_ELEMENTS = 1 << 14
"""Least elements that each of several programs of an SM should fetch. A strided element counts as
all elements of its sector."""

MIN_PART_ELEMENTS = 1 << 11
"""Least elements that a program should fetch if its SM has no other."""

LONE_STEP_ELEMENTS = 1 << 14
"""Elements of a step if an SM has one program, so that no other one hides the latency of memory."""

STEP_BYTES = 8192
"""Bytes of a row in a step, of the widest tensor."""

LONG_STEP_BYTES = 16384
"""``STEP_BYTES`` of long rows if one tensor is read. H200, sums of the rows of 16384 x 20480:
149 us by long steps, 155 by short ones. Kernels of several tensors took longer by long steps."""

LONG_ROW_ELEMENTS = 16384
"""Rows with more elements than this have long steps."""

TILE_ELEMENTS = 2048
"""Elements of a tile with several short rows."""

RUN_BYTES = 2 * SECTOR_BYTES
"""Bytes of the contiguous runs of a tensor that is strided along rows: a pair of sectors, which are
fetched together."""

CROSSING_ELEMENTS = 4096
"""Elements of a tile if tensors are contiguous along different axes."""

HINTED_L2_SIZES = 4
"""A loop that moves fewer bytes than this many L2 caches hints that its loads be evicted first. The
hint keeps data of other kernels in the cache, so that less of it is written back, a gain of one
cache's bytes at most; but cache lines that adjacent tiles share may be evicted too early, at any
size. H200, 152 loops that reduce, in random definitions, models and the suite, cold caches: without
hints the 90 that move less took 1.05 times as long (geometric mean), the 62 others 0.97 times (0.79
to 1.03)."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    reason = first_reason(problem, HAS_REDUCTION, NO_SCAN, NO_OUTER_REDUCTION)
    if reason is None and problem.normalizes:
        return "a reduction's result is used along the reduced axis"
    return reason


def split(problem: Problem) -> int:
    """The number of parts of a row, so that the programs fill the device."""
    return 1 if problem.on_cpu else problem.scaled(_parts(problem))


def _parts(problem: Problem) -> int:
    if not problem.inner:
        return parts_of_columns(problem)
    block_x = _row_tile(problem)[0]
    programs = ceil_div(problem.parallel, block_x)
    if programs >= problem.device.sm_count:
        return 1
    sms, elements = problem.device.sm_count, block_x * problem.reduced
    fetched = elements * _elements_fetched(problem)
    full = min(ceil_div(PROGRAMS_PER_SM * sms, programs), fetched // FULL_PART_ELEMENTS)
    parts = max(full, min(ceil_div(sms, programs), fetched // MIN_PART_ELEMENTS))
    parts = max(1, min(parts, problem.reduced // MIN_PART_OF_ROW))
    if parts * programs > sms:
        parts = _even(problem, parts, programs, fetched)
    return parts if pays_to_split(problem.device, fetched, parts) else 1


def _even(problem: Problem, parts: int, programs: int, fetched: int) -> int:
    """The number of parts that fills whole waves, if more parts would leave a small last wave.

    H200, backward of a layer norm of 16 x 212480: 16.8 us by 8 parts, 25.1 by 10.
    """
    device = problem.device
    waves = parts * programs // device.sm_count
    whole = waves * device.sm_count // programs
    evener = wave_efficiency(device, whole * programs) > wave_efficiency(device, parts * programs)
    return whole if evener and pays_to_split(device, fetched, whole) else parts


def _elements_fetched(problem: Problem) -> int:
    """Elements that are fetched for each of a row: one, and the rest of the sector of each tensor
    that is strided along both axes, or a gather."""
    loads = (s for s in problem.streams if s.along_r and not s.is_store)
    strided = (s for s in loads if (s.r_stride or 0) > 1 and s.x_stride != 1)
    return 1 + sum(SECTOR_BYTES // s.item_bytes - 1 for s in strided)


def interleave(problem: Problem) -> int:
    """The factor that a number of interleaved parts must have; 0 for parts of adjacent rows."""
    return 0 if problem.inner or problem.on_cpu else interleaved_parts(problem)


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    if problem.on_cpu:
        return ReductionParams(**interpreter_tile(problem)._asdict())
    if not problem.inner:
        return _columns(problem)
    return _aligned_rows(problem) if _keeps_aligned_rows(problem) else _rows(problem)


def _columns(problem: Problem) -> ReductionParams:
    tile = column_sum_tile(problem)
    persistent = tile.block_r >= problem.reduced
    tails = () if persistent else peeled_step(problem, tile.block_r)
    stages = 1 if persistent else column_stages(problem, tile.block_x * tile.block_r)
    return made(
        ReductionParams,
        **tile._asdict(),
        persistent=persistent,
        tails=tails,
        num_stages=stages,
        evict_hints=persistent or _hints_pay(problem),
    )


def _rows(problem: Problem) -> ReductionParams:
    block_x, block_r, warps = _row_tile(problem)
    tails: tuple[int, ...] = ()
    if next_power_of_2(problem.reduced) <= block_r:
        block_r, tails = joined_tiles(problem, *tile_row(problem, align=1), warps)
    tails = tails or loop_tails(problem, block_r)
    persistent, align = block_r + sum(tails) >= problem.reduced, 1
    if not persistent and not problem.crosses:
        align = row_alignment(problem)
        tails = loop_tails(problem, block_r, align=align)
    return made(
        ReductionParams,
        block_x=block_x,
        block_r=block_r,
        persistent=persistent,
        tails=tails,
        align=align,
        num_warps=warps,
        evict_hints=persistent or _hints_pay(problem),
    )


def _hints_pay(problem: Problem) -> bool:
    """Whether a loop gains by hints that the L2 cache evict its loads first."""
    return problem.moved_bytes < HINTED_L2_SIZES * problem.device.l2_bytes


def _row_tile(problem: Problem) -> tuple[int, int, int]:
    """(block_x, block_r, num_warps) of contiguous rows."""
    if problem.crosses:
        return _crossing_tile(problem)
    sms = problem.device.sm_count
    alone = problem.parallel <= sms
    one_load = problem.accumulators == 1 and len(problem.full_loads) == 1
    long = problem.reduced > LONG_ROW_ELEMENTS and one_load
    step = (LONG_STEP_BYTES if long else STEP_BYTES) // problem.widest
    block_r = min(next_power_of_2(problem.reduced), LONE_STEP_ELEMENTS if alone else step)
    block_x = max(1, min(next_power_of_2(problem.parallel), TILE_ELEMENTS // block_r))
    block_x = halved(block_x, 1, lambda x: not are_few(problem, ceil_div(problem.parallel, x)))
    warps = warps_for(block_x * block_r, 8, most=16 if alone or long else 8)
    programs = ceil_div(problem.parallel, block_x)
    elements = block_x * problem.reduced
    spread = spread_warps(problem.device, programs, elements, problem.accumulators)
    return block_x, block_r, max(warps, spread)


def _crossing_tile(problem: Problem) -> tuple[int, int, int]:
    """The tile if a tensor is strided along rows: runs of several sectors along both axes."""
    run = RUN_BYTES // min(s.item_bytes for s in problem.large_streams)
    block_x = min(next_power_of_2(column_facts(problem).run), run)
    block_r = min(next_power_of_2(problem.reduced), CROSSING_ELEMENTS // block_x)
    return block_x, block_r, warps_for(block_x * block_r, 16, most=8)


def _keeps_aligned_rows(problem: Problem) -> bool:
    """Whether rows that begin inside vectors stay in registers, in tiles that begin at vectors."""
    fills = problem.parallel >= problem.device.sm_count and not problem.crosses
    return fills and fits_registers(problem.reduced) and row_alignment(problem) > 1


def _aligned_rows(problem: Problem) -> ReductionParams:
    align = row_alignment(problem)
    block, tails = tile_row(problem, align, max_tails(problem.accumulators))
    return made(
        ReductionParams,
        block_x=1,
        block_r=block,
        persistent=True,
        tails=tails,
        align=align,
        num_warps=warps_of_rows(problem, block + sum(tails)),
    )
