"""Tiles of the ``reduction`` scheduler across memory: columns that are read once.

``RULES`` are tried in order, and the first that applies gives the tile. ``parts_of_columns`` says
into how many parts columns are split, so that the programs fill the device.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from ...device import CACHE_LINE_BYTES, VECTOR_BYTES
from ..integers import ceil_div, floor_power_of_2, halved, next_power_of_2, warps_for
from ..one_wave import run_at_once, wave_efficiency
from ..problem import Problem
from ..programs import are_few, share_of_bandwidth
from .tiles import (
    REGISTER_BYTES_PER_THREAD,
    ColumnFacts,
    ColumnTile,
    column_facts,
    columns_are_vectors,
    rows_between_aligned,
    rows_cross_lines,
    rows_start_at_vectors,
)

STEP_BYTES = 32
"""Bytes that a thread loads in a step, of all tensors together. H200, sums of the columns of
16384 x 20480: 155 us with 32 bytes, 170 with 64, 177 with 128."""

LONG_RUN_BYTES = 4096
"""Contiguous bytes of each row in a tile of long runs. H200, sums of the columns of 128 x 262144,
three pipeline stages: 19 us by long runs, 26 by cache lines."""

MAX_ONE_WAVE_BYTES = 272 << 20
"""Largest tensors, in bytes, that are read by one wave of programs, if the L2 cache does not hold
them.

H200, sums of the columns of 8192 x 8192: 37 us by one wave of programs of 4 warps with a line each,
42 by four waves. If rows begin inside cache lines, tiles have two lines and steps are twice as
long: the variance of the columns of 8192 x 8193 took 45 us by these steps, 53 by shorter ones."""

MIN_COLUMNS = 16
"""Least columns of a tile of a launch-bound tensor."""

WHOLE_TILE_ELEMENTS = 16384
"""Most elements of a program that holds whole columns of a launch-bound tensor, of all sums
together: 16 a thread, 32 with 16 warps, all of whose loads are in flight. H200, sums of 256 x 1024
partial results of a layer norm's backward: a tenth less time than by tiles of 8 columns. A whole
backward of 4928 x 512 took 9.4 us with 704 partial results in one tile, and 13.3 with 1232 in steps
of 64 rows."""

MIN_SHORT_COLUMNS = 8
"""Least columns of such a tile: a sector of float32."""

HALF_STEP_WARPS = 4
"""Warps of a program with half steps, if all programs are then resident. If a few are not, they
make a second wave. H200, sums of the columns of 2048 x 73728, 1152 programs: 72.8 us by 4 warps,
74.9 by 8; of 16384 x 36864, 2304 programs, of which 2112 are resident: 312 and 276. Rows that begin
inside lines, with hoisted loads: of 4336 x 35195 80 us by 4 warps, 95 by 8; of 3296 x 5435 16.3 and
17.6; of 36723 x 12580 240 and 243."""

FULL_STEP_ROOM = 16
"""Warps that a program of 8 warps counts for in occupancy, if rows begin inside lines: its threads
load single elements or pairs, which takes 64 registers. If not all such programs are resident, but
all with half steps are, half steps take less time. If both are, full steps have more bytes in
flight: of 5440 x 1375 11.3 us by them, 12.8 by half ones."""

PROGRAMS_PER_SM = 16
"""Programs for each SM that large tensors should have: four waves of four resident ones."""

PART_BYTES = 64 << 10
"""Least bytes that a program should read, if the programs still fill the device."""

MIN_PART_BYTES = 16 << 10
"""Least bytes that a program reads in any case. With fewer, the kernel that combines the parts
costs more than they save."""

PIPELINE_STAGES = 3
"""Pipeline stages of a loop, if a pipeline pays and shared memory has room."""


def column_sum_tile(problem: Problem) -> ColumnTile:
    """The tile of the first rule that applies."""
    facts = column_facts(problem)
    found = (rule(problem, facts) for rule in RULES)
    return next(tile for tile in found if tile is not None)


# --- rules for tiles -----------------------------------------------------------------------------


def _long_runs(problem: Problem, facts: ColumnFacts) -> ColumnTile | None:
    """Wide tensors: a long contiguous run of each of 8 rows."""
    run = long_run(problem)
    return ColumnTile(run, 8, 8) if run else None


def _one_wave(problem: Problem, facts: ColumnFacts) -> ColumnTile | None:
    """Tensors of middle size: one line of columns by 4 warps, or two if rows begin inside lines.

    One line in the second case too, if the programs then fill their waves better. H200, sums of the
    columns of 1120 x 33901: 28.8 us by 530 programs of a line, 32.2 by 265.
    """
    if not _is_one_wave(problem, facts):
        return None
    columns = next_power_of_2(facts.run)
    step = facts.elements(8, STEP_BYTES)
    if _parts_start_at_lines(problem, facts):
        block_x = min(columns, facts.line)
        return ColumnTile(block_x, max(step // 2 // block_x, 1), 4)
    block_x = min(columns, 2 * facts.line)
    if problem.accumulators > 1:
        return ColumnTile(block_x, max(step // block_x, 1), 4)
    wide, narrow = (ceil_div(problem.parallel, n * facts.line) for n in (2, 1))
    unsplit = 2 * wide > PROGRAMS_PER_SM // 4 * problem.device.sm_count
    if unsplit and wave_efficiency(problem.device, narrow) > wave_efficiency(problem.device, wide):
        block_x = min(columns, facts.line)
        return ColumnTile(block_x, max(step // block_x, 1), 4)
    return ColumnTile(block_x, max(2 * step // block_x, 1), 8)


def _launch_bound(problem: Problem, facts: ColumnFacts) -> ColumnTile | None:
    """Small tensors: whole columns in one tile, or in few steps, by many programs."""
    block_x, column = _columns(problem, facts), next_power_of_2(problem.reduced)
    few = are_few(problem, ceil_div(problem.parallel, block_x))
    if not facts.is_launch_bound or not few:
        return None
    most = next_power_of_2(WHOLE_TILE_ELEMENTS // max(problem.accumulators, 1) + 1) // 2
    block_x = min(block_x, max(most // column, MIN_SHORT_COLUMNS))
    step = min(column, max(most // block_x, 1))
    tile = ColumnTile(block_x, step, warps_for(block_x * step, 16, most=16))
    return facts.spread(problem, tile)


def _short_columns(problem: Problem, facts: ColumnFacts) -> ColumnTile | None:
    """Columns that fit in registers: whole columns in one tile, of several lines if the programs
    still fill the device."""
    line, column = _columns(problem, facts), next_power_of_2(problem.reduced)
    if line * column > facts.elements(8, REGISTER_BYTES_PER_THREAD):
        return None
    wide = max(floor_power_of_2(max(_step(problem, facts) // column, 1)), line)
    block_x = halved(wide, line, lambda x: not are_few(problem, ceil_div(problem.parallel, x)))
    warps = facts.warps(block_x * column, REGISTER_BYTES_PER_THREAD)
    return facts.spread(problem, ColumnTile(block_x, column, warps))


def _half_steps(problem: Problem, facts: ColumnFacts) -> ColumnTile | None:
    """Kernels that store nothing but sums: steps of 4 warps, if all programs are resident."""
    sums = problem.accumulators == 1 and not problem.full_outputs
    block_x = _columns(problem, facts)
    programs = ceil_div(problem.parallel, block_x)
    if not sums or not run_at_once(problem.device, programs, HALF_STEP_WARPS):
        return None
    if rows_cross_lines(problem) and run_at_once(problem.device, programs, FULL_STEP_ROOM):
        return None
    return ColumnTile(block_x, max(_step(problem, facts) // 2 // block_x, 1), HALF_STEP_WARPS)


def _full_steps(problem: Problem, facts: ColumnFacts) -> ColumnTile | None:
    """The default: a line of columns, in steps of 8 warps."""
    block_x = _columns(problem, facts)
    return ColumnTile(block_x, max(_step(problem, facts) // block_x, 1), 8)


RULES: tuple[Callable[[Problem, ColumnFacts], ColumnTile | None], ...] = (
    _long_runs,
    _one_wave,
    _launch_bound,
    _short_columns,
    _half_steps,
    _full_steps,
)
"""The rules for tiles of columns that are read once, in order of priority."""


def long_run(problem: Problem) -> int:
    """Columns of a tile of long runs. 0 if these do not fill the device."""
    facts = column_facts(problem)
    run = LONG_RUN_BYTES // facts.narrowest_bytes
    fills = share_of_bandwidth(problem, facts.run // run) == 1
    return run if problem.accumulators == 1 and fills else 0


def _columns(problem: Problem, facts: ColumnFacts) -> int:
    """Columns of a cache line; fewer for launch-bound tensors that would leave SMs idle."""
    if not facts.is_launch_bound:
        return facts.widest_tile
    sms = problem.device.sm_count
    return halved(facts.widest_tile, MIN_COLUMNS, lambda x: ceil_div(problem.parallel, x) >= sms)


def _step(problem: Problem, facts: ColumnFacts) -> int:
    """Elements of a step of 8 warps: half as many if there are several accumulators for each.

    H200, moments of the columns of 58652 x 3472 after 13 ops: 626 us by steps of 16 elements a
    thread, which take 110 registers, 377 by steps of 8, which take 54.
    """
    return facts.elements(8, STEP_BYTES // min(max(problem.accumulators, 1), 2))


def _is_one_wave(problem: Problem, facts: ColumnFacts) -> bool:
    """Whether columns, or parts of them, are read by one wave of programs."""
    interleaved = gcd(problem.reduced, VECTOR_BYTES)  # parts with interleaved rows
    few = are_few(problem, ceil_div(problem.parallel, 2 * facts.line))
    if problem.full_outputs and rows_cross_lines(problem):
        return False
    if not few or not rows_start_at_vectors(problem, interleaved):
        return False
    return problem.device.l2_bytes < facts.total_bytes <= MAX_ONE_WAVE_BYTES


# --- parts ---------------------------------------------------------------------------------------


def parts_of_columns(problem: Problem) -> int:
    """The number of parts of columns: full waves of programs, each with enough bytes to read."""
    facts = column_facts(problem)
    # Parts of a launch-bound tensor are short: their tiles need not be narrow.
    launch_bound = facts.is_launch_bound
    block_x = _columns(problem, facts) if launch_bound else column_sum_tile(problem).block_x
    programs = max(ceil_div(problem.parallel, block_x), 1)
    tile_bytes = block_x * problem.reduced * facts.read_bytes
    wanted = PROGRAMS_PER_SM * problem.device.sm_count
    wave = PROGRAMS_PER_SM // 4 * problem.device.sm_count
    if long_run(problem):
        return 1
    if _is_one_wave(problem, facts):
        return max(1, (2 * wave if _parts_start_at_lines(problem, facts) else wave) // programs)
    several = min(wanted // programs, tile_bytes // PART_BYTES)
    least = min(ceil_div(wave, programs), tile_bytes // MIN_PART_BYTES)
    return max(1, min(max(several, least), problem.reduced // 2))


def _parts_start_at_lines(problem: Problem, facts: ColumnFacts) -> bool:
    """Whether rows begin at cache lines, or those of a few interleaved parts do."""
    steps = [s.r_stride * s.item_bytes for s in problem.large_loads if s.r_stride]
    parts = max((CACHE_LINE_BYTES // gcd(CACHE_LINE_BYTES, step) for step in steps), default=1)
    return run_at_once(problem.device, parts * ceil_div(problem.parallel, facts.line), 8)


def interleaved_parts(problem: Problem) -> int:
    """The factor that the number of interleaved parts must have. 0 for parts of adjacent rows.

    The rows of interleaved parts alternate, so all parts together read adjacent rows in a step, and
    each part has rows at the same offset in a cache line. Parts of adjacent rows begin inside
    vectors if rows do. If a row is shorter than a cache line, the rows of a step are contiguous
    anyway, and there would be many interleaved parts of few elements.
    """
    if problem.parallel < column_facts(problem).line:
        return 0
    rows = rows_between_aligned(problem, CACHE_LINE_BYTES)
    return rows if rows > 1 else 0


# --- pipeline ------------------------------------------------------------------------------------


def column_stages(problem: Problem, elements: int) -> int:
    """Pipeline stages of a loop over columns with ``elements`` in a step.

    A pipeline pays if a step also stores results, and for long runs, where an SM has one resident
    program. H200, backward of a bias with gelu over 16384 x 20480: 592 us without, 515 with; sums
    of the columns of 128 x 262144: 20.8 us and 19.3. Weight gradients of norms, which store sums
    alone, took longer with it. Rows that begin inside vectors would be copied 4 bytes at a time:
    8192 x 8193 in float32 took 1171 us. So would columns of a smaller tensor that repeats: a
    softmax's backward of 40 x 3304 x 2167, whose statistics do, took 1189 us, 808 without.
    """
    if not columns_are_vectors(problem):
        return 1
    if not problem.full_outputs and not long_run(problem):
        return 1
    return min(PIPELINE_STAGES, problem.max_stages(elements))
