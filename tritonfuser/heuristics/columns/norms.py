"""Tiles of the ``outer_persistent`` scheduler: columns that are reduced and read again.

Columns that fit stay in registers. Loops read the others, one for each pass.
"""

from __future__ import annotations

from dataclasses import replace

from ...device import CACHE_LINE_BYTES, SECTOR_BYTES, VECTOR_BYTES
from ..integers import ceil_div, divisors, halved, next_power_of_2
from ..problem import Problem
from .tiles import (
    REGISTER_BYTES_PER_THREAD,
    ColumnFacts,
    ColumnTile,
    column_facts,
    rows_between_aligned,
    rows_cross_lines,
)

LOOP_STEP_BYTES = 64
"""Bytes that a thread loads in a step of the loops, of all tensors together."""

BANDWIDTH_SHARES = {128: 1.0, 64: 0.85, 32: 0.65, 16: 0.35}
"""Contiguous bytes of each row in a tile -> share of the bandwidth that the loops reach. H200,
softmax over the columns of 8192 x 8192: 106, 122, 152 and 285 us."""


def register_tile(problem: Problem) -> ColumnTile | None:
    """The tile of whole columns in registers, or None if they do not fit."""
    facts = column_facts(problem)
    column = next_power_of_2(problem.reduced)
    room = facts.elements(8, REGISTER_BYTES_PER_THREAD)
    fewest = facts.sector // 2 if facts.is_launch_bound else facts.sector
    sms = problem.device.sm_count

    def fits(x: int) -> bool:
        return x * column <= room and ceil_div(problem.parallel, x) >= sms

    block_x = halved(facts.widest_tile, fewest, fits)
    if block_x * column > room:
        return None
    warps = facts.warps(block_x * column, REGISTER_BYTES_PER_THREAD)
    return facts.spread(problem, ColumnTile(block_x, column, warps))


def loop_tile(problem: Problem) -> ColumnTile:
    """The tile of loops over columns: one program of up to 32 warps for each SM.

    It has whole cache lines of columns, or fewer columns if SMs would be idle.
    """
    facts = column_facts(problem)
    block_x = max(_widths(problem, facts), key=lambda x: _bandwidth_share(problem, facts, x))
    column = next_power_of_2(problem.reduced)
    block_r = max(1, min(column, facts.elements(32, LOOP_STEP_BYTES) // block_x))
    return ColumnTile(block_x, block_r, facts.warps(block_x * block_r, LOOP_STEP_BYTES))


def _widths(problem: Problem, facts: ColumnFacts) -> list[int]:
    """The possible numbers of columns of a tile, from a cache line down to a vector."""
    most = facts.widest_tile
    least = min(max(VECTOR_BYTES // facts.narrowest_bytes, 1), most)
    return [most >> n for n in range(most.bit_length()) if most >> n >= least]


def _bandwidth_share(problem: Problem, facts: ColumnFacts, block_x: int) -> float:
    """The share of the bandwidth that loops reach whose programs have ``block_x`` columns."""
    contiguous = max(min(block_x * facts.narrowest_bytes, CACHE_LINE_BYTES), VECTOR_BYTES)
    programs = max(ceil_div(problem.parallel, block_x), 1)
    return BANDWIDTH_SHARES[contiguous] * min(programs / problem.device.sm_count, 1.0)


SEPARATE_SHARE = 0.9
"""Share of the bandwidth that separate kernels of one pass each reach, relative to loops that fill
the device. H200, backward of a softmax over the columns of 8192 x 8192: loops of 128 programs took
161 us, torch.compile's kernels 155."""


def few_loops_reason(problem: Problem) -> str | None:
    """Why loops over columns are slower than split reductions and a pointwise kernel, or None.

    The bandwidth of loops depends on the number of programs and the width of their tiles. Separate
    kernels give each SM work, however few the columns are.
    """
    facts = column_facts(problem)
    if problem.on_cpu or facts.is_launch_bound or register_tile(problem) is not None:
        return None
    block_x = loop_tile(problem).block_x
    share = _bandwidth_share(problem, facts, block_x)
    passes = 1 + problem.passes_to_reduce
    if _seconds_of_passes(problem, passes, share) <= _seconds_separate(problem):
        return None
    programs = ceil_div(problem.parallel, block_x)
    return f"loops of {programs} programs over {block_x} columns reach {share:.0%} of the bandwidth"


def _seconds_separate(problem: Problem) -> float:
    """Seconds of a pointwise kernel after split reductions, of two launches each."""
    passes = 1 + problem.reduction_depth
    launches = 2 * problem.reduction_depth * problem.device.launch_s
    return _seconds_of_passes(problem, passes, SEPARATE_SHARE) + launches


def _seconds_of_passes(problem: Problem, passes: int, share: float) -> float:
    """Seconds to read the columns ``passes`` times and to write the results along them once, at a
    share of the bandwidth."""
    stored = problem.parallel * problem.reduced * sum(s.item_bytes for s in problem.full_stores)
    moved = passes * column_facts(problem).total_bytes + stored
    return moved / (share * problem.device.bandwidth_bytes_per_s)


def hints_pay(problem: Problem, block_x: int) -> bool:
    """Whether hints to keep columns in the L2 cache pay: it holds those of all resident programs.

    If it does not, the hints keep the first rows, while the backwards loop needs the last ones.
    H200, backward of a softmax over columns: 8192 x 8192 took 154 us without hints, 158 with them;
    2048 x 73728 in float32 took 745 us and 615. Those are 4.3 and 1.1 times the cache's capacity.
    """
    device = problem.device
    programs = min(ceil_div(problem.parallel, block_x), device.sm_count)
    columns = programs * block_x * problem.reduced * column_facts(problem).read_bytes
    return columns <= device.on_chip_bytes


def least_columns(problem: Problem) -> int:
    """Columns of the narrowest tile: a sector of them, at least 8."""
    return min(next_power_of_2(problem.parallel), max(SECTOR_BYTES // problem.narrowest, 8))


def partial_lines_reason(problem: Problem) -> str | None:
    """Why loops over columns are slower than a reduction and a pointwise kernel, or None.

    Both read twice, but the pointwise kernel reads full cache lines wherever rows begin. H200,
    backward of a softmax: loops took 161 us over 8192 x 8192 (torch.compile 155), and 282 us over
    8192 x 8193 (torch.compile 183). For two dependent reductions, separate kernels read three
    times, and loops that fuse the reductions twice.
    """
    in_registers = problem.on_cpu or register_tile(problem) is not None
    if in_registers or problem.reduction_depth > 1 or not rows_cross_lines(problem):
        return None
    return f"its rows begin inside lines of memory, and columns of {problem.reduced} do not fit"


# --- parts ---------------------------------------------------------------------------------------


def parts_in_registers(problem: Problem) -> int:
    """The number of parts of a softmax's columns that do not fit in registers; 1 for no split.

    Columns are split only if rows begin inside cache lines. The rows of parts are interleaved and
    stay in registers: the reduction reads them once, by vectorized loads, and a pointwise kernel
    once more. In a loop a thread would load one element of a row at a time.
    """
    if problem.on_cpu or not problem.online_softmax or not rows_cross_lines(problem):
        return 1
    if register_tile(problem) is not None:
        return 1
    for parts in divisors(problem.reduced):
        part = replace(problem, parallel=problem.parallel * parts, reduced=problem.reduced // parts)
        tile = register_tile(part)
        lines = tile is not None and tile.block_x >= column_facts(part).line
        if lines and parts % vector_aligned_parts(problem) == 0:
            return parts
    return 1


def vector_aligned_parts(problem: Problem) -> int:
    """The factor that this number must have, so that the rows of a part begin at vectors."""
    return rows_between_aligned(problem, VECTOR_BYTES)
