"""Which long rows fit in registers, by the registers of an SM.

A row fits if the registers of an SM hold two programs, or one program that has the SM for itself.
``long_row_loops.py`` has the loops that read other rows.

These are rules, by two facts: the registers of an SM (``_fits_sm``) and the capacity of the L2
cache (``cache_holds``). The cost model does not decide here: it is least precise about L2 hits of a
later loop, and about the values that the compiler keeps from one loop to the next.
"""

from __future__ import annotations

from .integers import ceil_div
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

MAX_RANDOM_ROW = 24576
"""Elements of a row of random numbers that a program with an SM for itself keeps, at most: 24 a
thread."""


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
    return several and not cache_holds(problem, tile * widest_bytes(problem), ROWS_OF_SM)


def _fits_sm(problem: Problem, registers: int, warps: int, programs: int) -> bool:
    """Whether an SM has so many registers for the rows of each of its programs, and what they work
    with."""
    device = problem.device
    working = warps * device.warp_size * WORKING_REGISTERS
    return programs * (registers + working) <= device.registers_per_sm


def _packed_registers(problem: Problem, tile: int) -> int:
    """Registers that a tile takes as it lies in memory; as float32 if nothing is read of it."""
    return tile * (read_bytes(problem) or 4) // 4


def read_bytes(problem: Problem) -> int:
    """Bytes that are read for an element."""
    return sum(s.item_bytes for s in problem.large_loads)


def widest_bytes(problem: Problem) -> int:
    """Bytes of the widest element that is read."""
    return max((s.item_bytes for s in problem.large_loads), default=2)


def cache_holds(problem: Problem, row_bytes: int, rows: int) -> bool:
    """Whether the L2 cache holds so many rows of each SM, beside as many bytes that are written."""
    device = problem.device
    return 2 * rows * device.sm_count * row_bytes <= CACHE_SHARE * device.l2_bytes
