"""Reductions whose results alone leave the kernel: along memory (inner) or across it (outer)."""

from __future__ import annotations

from math import gcd

from ..device import CACHE_LINE_BYTES, MAX_BLOCK_ELEMENTS
from .columns import begins_at_vectors, long_run, reduction_parts, reduction_tile
from .integers import ceil_div, next_power_of_2
from .params import HeuristicParams, ReductionParams
from .problem import Problem
from .rows import align_of, most_tails, row_tiles, tails_of, warps_of, whole_row
from .walks import REGISTER_ROW

WAVES = 4
"""Programs a reduction should have for each SM, so that no SM idles at the end."""

MIN_LENGTH = 256
"""Positions of the reduced axis that a part should have at least."""

MIN_PART = 1 << 14
"""Elements a program should read at least, or a second launch costs more than it saves."""


ALONE = 1 << 14
"""Elements that a program takes at once where there are too few programs to hide latencies."""


STAGES = 3
"""Loads of so many steps are under way, or of one: two took longer than either on an H200."""

STEP, LONG_STEP = 8192, 16384
"""Bytes of a row that a program sums up in a step."""

LONG = 16384
"""Elements of rows of one tensor that are taken by the long ones: sums of the rows of 16384 x 20480
took 149 us so on an H200, 155 by the others; what is computed of several took longer."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if not problem.reduction_depth:
        return "it has no reduction"
    if problem.scans:
        return "it has a scan"
    if problem.outer_members:
        return "it reduces over rows as well"
    if problem.reduction_depth > 1 or problem.dependent_outputs:
        return "a reduction's result is used along the reduced axis"
    return None


def split(problem: Problem) -> int:
    """In how many parts to cut the reduced axis so that the programs fill the device."""
    if problem.on_cpu:
        return 1
    if not problem.inner:
        return reduction_parts(problem)
    block_x = _tile(problem)[0]
    programs = ceil_div(problem.parallel, block_x)
    if programs >= problem.device.sm_count:
        return 1
    wanted = ceil_div(WAVES * problem.device.sm_count, programs)
    worth = min(problem.reduced // MIN_LENGTH, block_x * problem.reduced // MIN_PART)
    return max(1, min(wanted, worth))


def interleave(problem: Problem) -> int:
    """What the parts of columns should be a multiple of: a step of all of them is then in a row.

    Parts that have neighbouring rows each lie apart, and begin inside of vectors where rows do.
    """
    if problem.inner or problem.on_cpu:
        return 0
    line = max(CACHE_LINE_BYTES // problem.narrowest, 1)
    of = line // gcd(line, problem.parallel)
    return of if of > 1 else 0


def _tile(problem: Problem) -> tuple[int, int, int]:
    """(block_x, block_r, num_warps) for a device."""
    if not problem.inner:
        return reduction_tile(problem)
    r = next_power_of_2(problem.reduced)
    x = next_power_of_2(problem.parallel)
    alone = problem.parallel < problem.device.sm_count // 8
    long = problem.reduced > LONG and problem.accumulators == 1 and len(problem.full_loads) == 1
    step = LONG_STEP if long else STEP
    block_r = min(r, (ALONE if alone else step // problem.widest))
    block_x = max(1, min(x, 2048 // block_r))
    while block_x > 1 and ceil_div(problem.parallel, block_x) < 4 * problem.device.sm_count:
        block_x //= 2
    most = 16 if alone or step == LONG_STEP else 8
    return block_x, block_r, max(1, min(most, block_x * block_r // 256))


def propose(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, whole = cpu_tile(problem)
        return ReductionParams(block_x=x, block_r=r, persistent=whole)
    if _keeps_rows(problem):
        return _kept_rows(problem)
    block_x, block_r, warps = _tile(problem)
    tails: tuple[int, ...] = ()
    if problem.inner:
        fits = next_power_of_2(problem.reduced) <= block_r
        block_r, tails = whole_row(problem.reduced) if fits else (block_r, ())
        tails = tails or tails_of(problem.reduced, block_r)
    persistent = block_r + sum(tails) >= problem.reduced
    return ReductionParams(
        block_x=block_x,
        block_r=block_r,
        persistent=persistent,
        tails=tails,
        num_warps=warps,
        num_stages=1 if persistent else _stages(problem, block_x * block_r),
    )


def _keeps_rows(problem: Problem) -> bool:
    """Whether rows that begin inside of vectors are whole, in tiles that begin at vectors."""
    short = problem.reduced <= REGISTER_ROW and problem.parallel >= problem.device.sm_count
    return problem.inner and short and align_of(problem) > 1


def _kept_rows(problem: Problem) -> ReductionParams:
    align = align_of(problem)
    block, tails = row_tiles(problem, align, most_tails(problem.accumulators))
    return ReductionParams(
        block_x=1,
        block_r=block,
        persistent=True,
        tails=tails,
        align=align,
        num_warps=warps_of(problem, block + sum(tails)),
    )


def _stages(problem: Problem, elements: int) -> int:
    """Loads ahead where a step computes and writes results of its own beside the sums.

    And where a program has long pieces of rows, and an SM one program: sums of 128 x 262144 over
    the columns took 19.3 us so, 20.8 without. On an H200 the backward of a bias with gelu over
    16384 x 20480 took 592 us without, 515 with; weight gradients of norms, which write nothing but
    sums, took longer with them. Rows that begin inside vectors are fetched 4 bytes at a time then:
    8192 x 8193 in float32 took 1171 us.
    """
    if problem.inner or not begins_at_vectors(problem):
        return 1
    if not problem.full_outputs and not long_run(problem):
        return 1
    return STAGES if problem.max_stages(elements) >= STAGES else 1


def cpu_tile(problem: Problem) -> tuple[int, int, bool]:
    """(block_x, block_r, persistent): few, large programs, the interpreter pays by the program."""
    limit = MAX_BLOCK_ELEMENTS // 4
    r = min(next_power_of_2(problem.reduced), limit)
    x = min(next_power_of_2(problem.parallel), max(limit // r, 1))
    if problem.co_reduced > 1:
        x = next_power_of_2(problem.co_reduced)
        r = min(r, max(limit // x, 1))
    return x, r, r >= problem.reduced
