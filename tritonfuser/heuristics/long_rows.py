"""Long rows: which of them fit in registers, and the loops that read the others.

A row fits if the registers of an SM hold two programs, or one program that has the SM for itself.
For some longer rows, the end of the row is kept in registers, and loops read the rest. The L2 cache
then has to hold less of all rows between two loops.

These are rules, by two facts: the registers of an SM (``_fits_sm``) and the capacity of the L2
cache (``cache_holds``). The cost model does not decide here: it is least precise about L2 hits of a
later loop, and about the values that the compiler keeps from one loop to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .cost.draws import RANDOM_WORDS
from .integers import ceil_div, next_power_of_2, warps_for
from .problem import Problem

MAX_REGISTER_ROW = 17408
"""Most elements of a tile in registers, where an SM runs two programs: 32 for each of 512 threads,
and short tails. Such a thread has 64 registers. The other half of them is for intermediate values,
whose number is not known before the kernel is compiled."""

WORKING_REGISTERS = 24
"""Registers of a thread for other values than its row: addresses, sums, results of a step."""

WHOLE_SM_WARPS = 32
"""Warps of a program that has an SM for itself."""

CACHE_SHARE = 0.825
"""Share of the L2 cache that is available to rows. H200: two steps a row, of 16 warps, were the
faster ones up to 24,576 elements of 16 bits in each of four rows of an SM."""

ROWS_OF_SM = 4
"""Rows that an SM reads at a time, if programs have 16 warps."""

MAX_TWO_STEP_ROW = 16384
"""Longest row, in elements, that loops read in two steps, of 16 warps at most: 16 elements a
thread. The second loop finds both steps in the L1 or the L2 cache."""

MAX_RANDOM_ROW = 24576
"""Elements of a row of random numbers that a program with an SM for itself keeps, at most: 24 a
thread."""


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


# --- rows in registers ---------------------------------------------------------------------------


def fits_registers(row: int) -> bool:
    """Whether a row of so many elements is short enough for registers."""
    return row <= MAX_REGISTER_ROW


def fits_two_programs_per_sm(problem: Problem, tile: int, warps: int) -> bool:
    """Whether an SM has registers for two programs with a tile each.

    With one program, its SM would idle while that waits for memory. H200, backward of an instance
    norm with rows of 12544, two tensors: 572 us with rows in registers (16 warps of 104 registers),
    333 by a loop of two steps with three programs an SM.

    Rows that are reduced together would be read three times, so they are kept as they were loaded.
    H200, backward of a group norm with silu of 128 x 96 x 57 x 57: 101 us in registers, 178 by a
    loop.
    """
    if problem.co_reduced > 1 and problem.reduction_depth > 1:
        registers = _packed_registers(problem, tile)
    else:
        per_element = sum(ceil_div(s.item_bytes, 4) for s in problem.large_loads)
        registers = tile * max(per_element, 1)
    return fits_registers(tile) and _fits_sm(problem, registers, warps, programs=2)


def fits_one_program_per_sm(problem: Problem, tile: int) -> bool:
    """Whether a program should keep its row in all registers of an SM, and can.

    It pays where results over all elements are written beside those of one reduction, since these
    are then not computed twice. H200, 16384 x 36864, whole rows or loops: rmsnorm with a residual
    1147 us and 1213, with a dropout 1310 and 1644; the backward of a softmax, which writes one
    result, 1120 and 911.

    It also pays where a mean and variance are computed of random numbers, which loops would draw
    again. H200, layer norm of a dropout of 16384 x 20480: 832 us in registers, 880 by loops.
    """
    registers = _packed_registers(problem, tile)
    if fits_registers(tile) or not _fits_sm(problem, registers, WHOLE_SM_WARPS, programs=1):
        return False
    if problem.accumulators > 1:
        return problem.draws_random and tile <= MAX_RANDOM_ROW
    several = len(problem.full_stores) > 1
    return several and not cache_holds(problem, tile * _widest(problem), ROWS_OF_SM)


def _fits_sm(problem: Problem, registers: int, warps: int, programs: int) -> bool:
    """Whether an SM has so many registers for the rows of each of its programs, and what they work
    with."""
    device = problem.device
    working = warps * device.warp_size * WORKING_REGISTERS
    return programs * (registers + working) <= device.registers_per_sm


def _packed_registers(problem: Problem, tile: int) -> int:
    """Registers that a tile takes as it lies in memory; as float32 if nothing is read of it."""
    return tile * (_read_bytes(problem) or 4) // 4


def _read_bytes(problem: Problem) -> int:
    """Bytes that are read for an element."""
    return sum(s.item_bytes for s in problem.large_loads)


def _widest(problem: Problem) -> int:
    """Bytes of the widest element that is read."""
    return max((s.item_bytes for s in problem.large_loads), default=2)


def cache_holds(problem: Problem, row_bytes: int, rows: int) -> bool:
    """Whether the L2 cache holds so many rows of each SM, beside as many bytes that are written."""
    device = problem.device
    return 2 * rows * device.sm_count * row_bytes <= CACHE_SHARE * device.l2_bytes


# --- loops ---------------------------------------------------------------------------------------


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
    row = problem.reduced * problem.co_reduced * _widest(problem)
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
    row = problem.reduced * _widest(problem)
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
        return KeptEnd(32768 // ceil_div(_widest(problem), 2), 8192)
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
    row = (problem.reduced * problem.co_reduced - kept) * _read_bytes(problem)
    longest = step >= LONGEST_STEP.elements and problem.accumulators > 1
    return not cache_holds(problem, row, 1) and not longest
