"""Long rows: which fit in registers, and by what loops the others are read.

A row fits where two programs share an SM, or where one program has the SM for itself. Of some
longer rows the end is kept in registers, and loops read the rest. The rows of all programs at once
are then less of what the L2 cache has to hold between two loops over a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .integers import ceil_div, next_power_of_2, warps_for
from .problem import Problem

MAX_REGISTER_ROW = 17408
"""Elements of a tile that stay in registers where SMs have two programs: 32 for each of 512
threads, and short tails."""

WORKING_REGISTERS = 24
"""Registers of a thread that its row does not take: addresses, sums, results of a step."""

WHOLE_SM_WARPS = 32
"""Warps of a program that has an SM for itself."""

WHOLE_SM_ROW = (1 << 15, 36 << 10)
"""Elements of a row, least and most, that a program with an SM for itself keeps."""

RANDOM_WORDS = 4
"""Random words of one draw. In rows of a length that is no multiple of it they move between
lanes."""

MAX_TWO_STEP_ROW = 16384
"""Longest row, in elements, that loops read in two steps, of 16 warps at most."""

L2_ROW = 24576
"""Longest row, in elements, of which the L2 cache of an H200 holds four for each SM."""

MAX_OPS_OF_KEPT_ROWS = 48
"""Ops of a kernel that keeps rows as they are loaded through a chain of reductions. With more, too
many results are computed once more behind the reductions."""


class LoopStep(NamedTuple):
    """Elements of a row that a loop reads in a step, and the warps of the program."""

    elements: int
    warps: int


READ_ONCE_STEP = LoopStep(2048, 8)
"""The step of a row that is read once: a few small programs an SM are enough."""

LONGEST_STEP = LoopStep(16384, 32)
"""The step of the longest rows."""

CO_REDUCED_STEP = LoopStep(4096, 16)
"""The step of rows that are reduced together: elements of all these rows. H200, backward of a group
norm of 256 x 64 x 112 x 112: 536 us by this step, 712 by (4096, 32)."""

STEPS = ((2 * L2_ROW, LoopStep(8192, 32)),)
"""Longest row in elements -> step, where a lane has one accumulator. H200, rmsnorm of 16384 x
20480: 311 us by (8192, 32), 323 by (4096, 16); with a residual 637 and 810."""

ACCUMULATOR_STEPS = (
    (L2_ROW, LoopStep(4096, 16)),
    (2 * L2_ROW, LoopStep(4096, 32)),
    (4 * L2_ROW, LoopStep(8192, 32)),
)
"""Longest row in elements of 2 bytes -> step, where a lane has several accumulators: a mean and a
variance, a maximum and a sum. Two programs of 32 warps with long steps have no room for these.
H200: softmax of 16384 x 20480 took 317 us by (4096, 16), 425 by (8192, 32); of 2048 x 73728 202 and
171; a layer norm of 2048 x 73728 in float32 384 us by (16384, 32), 432 by (8192, 32)."""

RANDOM_STEPS = ((8 * L2_ROW, LoopStep(4096, 16)),)
"""Longest row in bytes -> step, where random numbers are drawn, which take registers. H200, layer
norm of a dropout of 16384 x 36864: 1725 us by (4096, 16), 2154 by (4096, 32)."""

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
    device = problem.device
    working = warps * device.warp_size * WORKING_REGISTERS
    if problem.co_reduced > 1 and problem.reduction_depth > 1:
        if problem.ops_per_element > MAX_OPS_OF_KEPT_ROWS:
            return False
        registers = _packed_registers(problem, tile)
    else:
        per_element = sum(ceil_div(s.item_bytes, 4) for s in problem.large_loads)
        registers = tile * max(per_element, 1)
    return fits_registers(tile) and 2 * (registers + working) <= device.registers_per_sm


def fits_one_program_per_sm(problem: Problem, tile: int) -> bool:
    """Whether a program should keep its row in all registers of an SM, and can.

    It pays where results over all elements are written beside those of one reduction, since these
    are then not computed twice. H200, 16384 x 36864, whole rows or loops: rmsnorm with a residual
    1147 us and 1213, with a dropout 1310 and 1644; the backward of a softmax, which writes one
    result, 1120 and 911.

    It also pays where a mean and variance are computed of random numbers, which loops would draw
    again. H200, layer norm of a dropout of 16384 x 20480: 832 us in registers, 880 by loops.
    """
    device = problem.device
    working = WHOLE_SM_WARPS * device.warp_size * WORKING_REGISTERS
    if _packed_registers(problem, tile) + working > device.registers_per_sm:
        return False
    if problem.accumulators > 1:
        return problem.draws_random and not fits_registers(tile) and tile <= L2_ROW
    least, most = WHOLE_SM_ROW
    return least <= tile <= most and len(problem.full_stores) > 1


def _packed_registers(problem: Problem, tile: int) -> int:
    """Registers that a tile takes as it lies in memory."""
    return tile * _read_bytes(problem) // 4


def _read_bytes(problem: Problem) -> int:
    """Bytes that are read for an element."""
    return sum(s.item_bytes for s in problem.large_loads)


# --- loops ---------------------------------------------------------------------------------------


def loop_step(problem: Problem) -> LoopStep:
    """The step in which loops read long rows.

    Each loop over a row reads it again from the L2 cache, so the rows in flight should fit there.
    The longer the rows, the fewer programs an SM should have, each with more loads in flight.
    """
    row = problem.reduced * problem.co_reduced
    widest = max((s.item_bytes for s in problem.large_loads), default=2)
    if not problem.full_outputs:
        return READ_ONCE_STEP
    if problem.co_reduced > 1:
        return CO_REDUCED_STEP
    if problem.draws_random and row > L2_ROW // 2:
        return _step_in(RANDOM_STEPS, row * widest, LONGEST_RANDOM_STEP)
    if row <= MAX_TWO_STEP_ROW:
        half = next_power_of_2(row) // 2
        return LoopStep(half, warps_for(half, 16, most=WHOLE_SM_WARPS))
    if problem.accumulators > 1:
        return _step_in(ACCUMULATOR_STEPS, row * widest // 2, LONGEST_STEP)
    return _step_in(STEPS, row, LONGEST_STEP)


def _step_in(steps: tuple[tuple[int, LoopStep], ...], row: int, longest: LoopStep) -> LoopStep:
    """The step of the first limit that a row does not exceed."""
    return next((step for limit, step in steps if row <= limit), longest)


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
    row, loads = problem.reduced, problem.large_loads
    if row <= L2_ROW or not _end_fits(problem):
        return None
    long = row > 2 * L2_ROW
    if problem.draws_random and problem.accumulators > 1:
        wide = any(stream.item_bytes > 2 for stream in loads)
        return KeptEnd(16384 if wide else 32768, 8192) if long else KeptEnd(8192, 4096, 16)
    if len(loads) > 1 and len(problem.full_stores) == 1:
        return None if long or problem.accumulators > 1 else KeptEnd(16384, 4096)
    return KeptEnd(32768, 8192) if long else None


def _end_fits(problem: Problem) -> bool:
    """Whether registers hold an end of 32 elements a thread without spills."""
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
    device = problem.device
    row = problem.reduced * problem.co_reduced - kept
    rows = row * _read_bytes(problem) * device.sm_count
    longest = step >= LONGEST_STEP.elements and problem.accumulators > 1
    return 2 * rows >= device.l2_bytes and not longest
