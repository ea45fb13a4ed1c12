"""The number of programs that loop over the rows, and the step of the loop.

The lanes of a program run along one row, each with at least a vector of elements, so a thread has
the same columns in every row, with one accumulator for each of them. Steps of several rows add
instruction-level parallelism. All programs should be resident: others would make a second wave.
"""

from __future__ import annotations

from math import sqrt

from ..columns.sums import MIN_SHORT_COLUMNS, WHOLE_TILE_ELEMENTS
from ..integers import TUNED_WARP_SIZE, ceil_div
from ..problem import Problem
from .residency import (
    STAGES,
    Step,
    bytes_in_flight,
    elements_of,
    fits,
    has_room,
    resident,
    vector_elements,
)

THREAD_ELEMENTS = 16
"""Elements of a thread in a step, if there are enough rows."""

LANE_ELEMENTS = 8
"""Least elements of a row for each lane. With fewer, more warps wait for one another in each
reduction along the row. H200, backward of a layer norm in float32: of 8192 x 1024 29 us with these,
30 with half; of 2048 x 1536 13.6 and 15.4; of 8100 x 1152 48 and 60."""

WARPS_PER_SM = 16
"""Warps of a multiprocessor that hide the latency of reductions along rows."""

MAX_SINGLE_ROWS = 4
"""A program with no more rows than this has steps of one row. H200, backward of a layer norm of
512 x 1024 in float32: 10.0 us with one row a step, 15.0 with all four."""

STEP_S = 0.7e-6
"""Seconds of a step that waits only for its own reductions."""

JOIN_S = 1.2e-6
"""Seconds of a step of the kernel that combines partial results, which hit the L2 cache."""

WIDE_BLOCK = 8192
"""Least elements of a block without tails for which a program may have 16 warps."""


def step_of(problem: Problem, rows: int, block: int, tails: tuple[int, ...]) -> Step:
    """The step of programs whose number is given, as ``outer_batch`` of the problem.

    Parameters
    ----------
    rows : int
        Rows of a program.
    block, tails : int, tuple of int
        The tiles of a row.
    """
    warps, width = _warps(problem, block, tails), block + sum(tails)
    programs = ceil_div(max(problem.outer_batch, 1), problem.device.sm_count)
    here = min(programs, resident(problem, Step(1, warps), width))
    found = Step(1, warps)
    while not tails and rows > MAX_SINGLE_ROWS and 4 * found.rows <= rows:
        larger = Step(2 * found.rows, warps)
        elements = elements_of(larger, width)
        flying = bytes_in_flight(problem, found, width, here)
        enough = elements > THREAD_ELEMENTS and flying >= problem.device.flight_bytes_per_sm
        room = fits(problem, larger, width) and resident(problem, larger, width) >= here
        if enough or not room:
            break
        found = larger
    ahead = Step(found.rows, warps, 1, prefetch=True)
    has_registers = fits(problem, ahead, width) and resident(problem, ahead, width) >= here
    if has_registers and rows > found.rows:
        return ahead
    few = bytes_in_flight(problem, found, width, here) < problem.device.flight_bytes_per_sm
    stages = STAGES[few]
    while stages > 1 and not has_room(problem, found, width, here, stages):
        stages -= 1
    return Step(found.rows, warps, stages)


def fits_row(problem: Problem, block: int, tails: tuple[int, ...]) -> bool:
    """Whether a step of one row, and the accumulators of all its columns, fit in registers."""
    step = Step(1, _warps(problem, block, tails))
    return fits(problem, step, block + sum(tails))


def programs_for(problem: Problem, block: int, tails: tuple[int, ...]) -> int:
    """The number of programs to divide the rows among.

    With more programs each has fewer rows, but there are more partial results to write, to read
    again and to combine. The sum ``rows / programs * seconds of a row + programs * seconds of a
    partial row`` is least at the square root of ``rows * seconds of a row / seconds of a partial
    row``.

    Parameters
    ----------
    block, tails : int, tuple of int
        The tiles of a row.
    """
    warps, width = _warps(problem, block, tails), block + sum(tails)
    rows = 1 if tails else max(THREAD_ELEMENTS // max(width // (warps * TUNED_WARP_SIZE), 1), 1)
    device = problem.device
    here = min(resident(problem, Step(rows, warps), width), ceil_div(WARPS_PER_SM, warps))
    best = int(sqrt(problem.parallel * STEP_S / rows / _partial_s(problem)))
    most = here * device.sm_count
    return min(most, max(best // device.sm_count, 1) * device.sm_count)


def _partial_s(problem: Problem) -> float:
    """Seconds of one program's partial results: of their bytes, and of their share of the steps of
    the kernel that combines them, whose programs have few columns each."""
    members, bandwidth = problem.outer_members, problem.device.bandwidth_bytes_per_s
    joined = WHOLE_TILE_ELEMENTS // MIN_SHORT_COLUMNS
    return members * (8 * problem.reduced / bandwidth + JOIN_S / joined)


def _warps(problem: Problem, block: int, tails: tuple[int, ...]) -> int:
    """Warps of a program, whose lanes run along one row."""
    most = 8 if tails or block < WIDE_BLOCK else 16
    lane = max(vector_elements(problem), LANE_ELEMENTS)
    return max(1, min(most, block // (TUNED_WARP_SIZE * lane)))
