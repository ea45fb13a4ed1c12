"""Loops that read long rows: their steps, the end of a row in registers, the direction of a loop.

For some rows that do not fit in registers, the end of the row is kept there, and loops read the
rest. The L2 cache then has to hold less of all rows between two loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .cost.draws import RANDOM_WORDS
from .integers import ceil_div, next_power_of_2, warps_for
from .problem import Problem
from .rows_in_registers import (
    ROWS_OF_SM,
    WHOLE_SM_WARPS,
    cache_holds,
    read_bytes,
    widest_bytes,
)

MAX_TWO_STEP_ROW = 16384
"""Longest row, in elements, that loops read in two steps, of 16 warps at most: 16 elements a
thread. The second loop finds both steps in the L1 or the L2 cache."""


class LoopStep(NamedTuple):
    """The step of a loop over a row.

    Attributes
    ----------
    elements : int
        Elements of the row that it reads.
    warps : int
        Warps of the program.
    rows : int
        Programs that an SM should have registers for, if one tensor is read. 0 leaves it to the
        compiler.
    """

    elements: int
    warps: int
    rows: int = 0


READ_ONCE_STEP = LoopStep(2048, 8)
"""The step of a row that is read once: a few small programs for each SM are enough."""

LONGEST_STEP = LoopStep(16384, 32)
"""The step of the longest rows."""

CO_REDUCED_STEP = LoopStep(4096, 16)
"""The step of rows that are reduced together: elements of all these rows. H200, backward of a group
norm of 256 x 64 x 112 x 112: 536 us by this step, 712 by (4096, 32)."""

STEPS = ((2, LoopStep(8192, 32)),)
"""(rows of an SM that the L2 cache holds, step), where a lane has one accumulator. H200, rmsnorm of
16384 x 20480: 311 us by (8192, 32), 323 by (4096, 16); with a residual 637 and 810."""

ACCUMULATOR_STEPS = (
    (ROWS_OF_SM, LoopStep(4096, 16)),
    (2, LoopStep(4096, 32, rows=2)),
    (1, LoopStep(8192, 32)),
)
"""``STEPS`` where a lane has several accumulators: mean and variance, or maximum and sum. Two
programs of 32 warps with long steps have no room for these. H200: softmax of 16384 x 20480 took 317
us by (4096, 16), 425 by (8192, 32); of 2048 x 73728 202 and 171; a layer norm of 2048 x 73728 in
float32 384 us by (16384, 32), 432 by (8192, 32). Threads of 32 warps with more than 32 registers
leave no room for a second program: a layer norm of 4954 x 18504 in float32 took 273 us with 46
registers, 206 with 32; of 3011 x 22040 171 and 144."""

RANDOM_STEPS = ((1, LoopStep(4096, 16)),)
"""``STEPS`` where random numbers are drawn, which take registers. H200, layer norm of a dropout of
16384 x 36864: 1725 us by (4096, 16), 2154 by (4096, 32)."""

LONGEST_RANDOM_STEP = LoopStep(8192, 32)
"""The step of longer rows that draw random numbers."""


def loop_step(problem: Problem) -> LoopStep:
    """The step in which loops read long rows.

    Each loop over a row reads it again from the L2 cache, so the rows in flight should fit there.
    The longer the rows, the fewer programs an SM should have, each with more loads in flight.
    """
    row = problem.reduced * problem.co_reduced
    if not problem.full_outputs:
        return READ_ONCE_STEP
    if problem.co_reduced > 1:
        return CO_REDUCED_STEP
    if problem.draws_random:
        return _step_in(problem, RANDOM_STEPS, LONGEST_RANDOM_STEP)
    if row <= MAX_TWO_STEP_ROW:
        half = next_power_of_2(row) // 2
        return LoopStep(half, warps_for(half, 16, most=WHOLE_SM_WARPS))
    steps = ACCUMULATOR_STEPS if problem.accumulators > 1 else STEPS
    return _step_in(problem, steps, LONGEST_STEP)


def _step_in(
    problem: Problem, steps: tuple[tuple[int, LoopStep], ...], longest: LoopStep
) -> LoopStep:
    """The step of the first number of rows that the L2 cache holds."""
    row = problem.reduced * problem.co_reduced * widest_bytes(problem)
    return next((step for rows, step in steps if cache_holds(problem, row, rows)), longest)


@dataclass(frozen=True, slots=True)
class KeptEnd:
    """The end of a row that stays in registers while loops read the rest.

    Attributes
    ----------
    kept : int
        Elements that stay in registers.
    step : int
        Elements of a step of the loops.
    warps : int
        Warps of the program.
    """

    kept: int
    step: int
    warps: int = WHOLE_SM_WARPS


def kept_end(problem: Problem) -> KeptEnd | None:
    """The end of rows to keep in registers, or None where loops should read all of a row.

    H200, with a kept end or without: rmsnorm of 2048 x 73728 147 us and 166, a layer norm of it in
    float32 354 and 385. The backward of a softmax, which reads two tensors again: of 2048 x 73728
    271 and 238, of 16384 x 36864, with half as long an end, 822 and 896. Random numbers of the end
    are drawn once: a layer norm of a dropout of 16384 x 36864 took 1565 and 1690.
    """
    row = problem.reduced * widest_bytes(problem)
    if cache_holds(problem, row, ROWS_OF_SM) or not _end_fits(problem):
        return None
    found = _end(problem, long=not cache_holds(problem, row, 2))
    # Loops have a step to read at least.
    return found if found is not None and found.kept + found.step <= problem.reduced else None


def _end(problem: Problem, long: bool) -> KeptEnd | None:
    """The end that pays, by whether the L2 cache holds less than two rows of each SM."""
    if problem.draws_random and problem.accumulators > 1:
        if not long:
            return KeptEnd(8192, 4096, 16)
        return KeptEnd(32768 // ceil_div(widest_bytes(problem), 2), 8192)
    if len(problem.large_loads) > 1 and len(problem.full_stores) == 1:
        return None if long or problem.accumulators > 1 else KeptEnd(16384, 4096)
    return KeptEnd(32768, 8192) if long else None


def _end_fits(problem: Problem) -> bool:
    """Whether registers hold an end of 32 elements a thread without spills.

    Of two tensors often the sum is kept, and of more nobody says how many.
    """
    narrow = all(stream.item_bytes <= 4 for stream in problem.streams)
    moving_words = problem.draws_random and problem.reduced % RANDOM_WORDS
    few = len(problem.large_loads) <= 2 and not moving_words
    return narrow and few and problem.co_reduced == 1 and problem.full_outputs


def pays_backwards(problem: Problem, step: int, kept: int = 0) -> bool:
    """Whether every second loop should run from the end of a row, which was read last, to its
    start.

    Such a loop finds in the L2 cache what is left of the rows of all programs. H200, backwards or
    not: rmsnorm with a residual over 2048 x 73728 in float32 755 us and 817; a layer norm with two
    accumulators and the longest step 401 and 385.
    """
    row = (problem.reduced * problem.co_reduced - kept) * read_bytes(problem)
    longest = step >= LONGEST_STEP.elements and problem.accumulators > 1
    return not cache_holds(problem, row, 1) and not longest
