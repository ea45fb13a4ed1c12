"""Long rows: which stay in registers, and in what steps the others are walked over."""

from __future__ import annotations

from dataclasses import dataclass

from .integers import ceil_div, next_power_of_2
from .problem import Problem

REGISTER_ROW = 17408
"""Elements of a tile that stay in registers: 32 a thread of 512, and short tails."""

SPARE = 24
"""Registers of a thread beside those of its row: addresses, sums, what a step computes."""

ALL_WARPS = 32
"""Warps of a program that has a multiprocessor for itself."""

LEAST_ROW, MOST_ROW = 1 << 15, 36 << 10
"""Elements that those keep of a row."""

WORDS = 4
"""Random words that are drawn at once: in rows of other lengths they change lanes."""

TWO_STEPS = 16384
"""Elements of a row whose halves are a step of 16 warps each."""

ROW_IN_L2 = 24576
"""Elements of a row of which an H200's L2 cache holds four an SM."""

MOST_WORK = 48
"""Ops an element of rows that stay as they are loaded through reductions that depend on one
another: of more too many results are wanted again behind them."""

LONGEST_STEP = (16384, 32)
"""Elements of a step of the longest rows, and warps."""

CO_REDUCED = (4096, 16)
"""Elements of a step, of all rows that are reduced together, and warps: the backward of a group
norm of 256 x 64 x 112 x 112 took 536 us on an H200, and 712 by (4096, 32)."""


def stays(problem: Problem, tile: int, warps: int) -> bool:
    """Whether rows stay in registers: of two programs an SM, or nothing is done beside waiting.

    On an H200 the backward of an instance norm with rows of 12544, two tensors in 16 warps of 104
    registers, took 572 us; 333 in two steps, of three programs at once. Rows that are reduced
    together would be walked over three times, so they stay as they are loaded: the backward of a
    group norm with silu of 128 x 96 x 57 x 57 took 101 us so, 178 in steps.
    """
    device = problem.device
    beside = warps * device.warp_size * SPARE
    if problem.co_reduced > 1 and problem.reduction_depth > 1:
        if problem.ops_per_element > MOST_WORK:
            return False
        numbers = tile * _bytes_an_element(problem) // 4
    else:
        numbers = tile * max(sum(ceil_div(s.item_bytes, 4) for s in problem.large_loads), 1)
    return tile <= REGISTER_ROW and 2 * (numbers + beside) <= device.registers_per_sm


def _bytes_an_element(problem: Problem) -> int:
    """What is read for an element, as it lies in memory."""
    return sum(s.item_bytes for s in problem.large_loads)


def is_all_an_sm_holds(problem: Problem, tile: int) -> bool:
    """Whether the row of one program fits in all registers of a multiprocessor, and should.

    One sum is made of it, and something is written besides, which is not computed a second time
    then. On an H200 rmsnorm with a residual over 16384 x 36864 took 1147 us so and 1213 in a loop,
    with a dropout 1310 and 1644; the backward of a softmax, which writes nothing else, 1120 and
    911. Or a mean with its spread is, of what would be drawn again: a layer norm of a dropout of
    16384 x 20480 took 832 us so, 880 in a loop.
    """
    packed = tile * _bytes_an_element(problem) // 4
    registers = packed + ALL_WARPS * problem.device.warp_size * SPARE
    if registers > problem.device.registers_per_sm:
        return False
    if problem.accumulators > 1:
        return problem.draws_random and REGISTER_ROW < tile <= ROW_IN_L2
    return LEAST_ROW <= tile <= MOST_ROW and len(problem.full_stores) > 1


def step_of(problem: Problem) -> tuple[int, int]:
    """Elements of a step of a walk over a long row, and the warps that do it.

    Rows are read again from the L2 cache, so those in flight should fit there: of longer rows
    fewer programs an SM, each with more loads of its own. But a lane that keeps more than one
    number of its row (a mean with its spread, a maximum with its sum) leaves no room for two
    programs of 32 warps with long chunks. A row that is walked over once needs no more than a few
    small programs. Measured on an H200: softmax of 16384 x 20480 took 317 us by (4096, 16) and
    425 by (8192, 32), rmsnorm with a residual 810 and 637, rmsnorm alone 323 and 311; of
    2048 x 73728 softmax took 202 us by (4096, 16) and 171 by (8192, 32). Random numbers take more
    registers and fewer lanes: layernorm of a dropout of 16384 x 36864 took 1725 us by (4096, 16),
    2154 by (4096, 32).
    """
    row = problem.reduced * problem.co_reduced
    if not problem.full_outputs:
        return 2048, 8
    if problem.co_reduced > 1:
        return CO_REDUCED
    if problem.draws_random and row > ROW_IN_L2 // 2:
        widest = max((s.item_bytes for s in problem.large_loads), default=2)
        return (4096, 16) if row * widest <= 8 * ROW_IN_L2 else (8192, 32)
    if row <= TWO_STEPS:
        half = next_power_of_2(row) // 2
        return half, max(half // 512, 1)
    if problem.accumulators > 1:
        # Of float32 a layer norm of 2048 x 73728 took 384 us by (16384, 32), 432 by (8192, 32).
        row = row * max((s.item_bytes for s in problem.large_loads), default=2) // 2
        steps = [(ROW_IN_L2, (4096, 16)), (2 * ROW_IN_L2, (4096, 32)), (4 * ROW_IN_L2, (8192, 32))]
    else:
        steps = [(2 * ROW_IN_L2, (8192, 32))]
    return next((chosen for limit, chosen in steps if row <= limit), LONGEST_STEP)


@dataclass(frozen=True)
class End:
    """Elements of the end of a row that stay in registers, of a step over the rest, and warps."""

    kept: int
    step: int
    warps: int = ALL_WARPS


def end_of(problem: Problem) -> End | None:
    """The end of a row that stays in registers, where only the rest is read again, or None.

    The rows of all programs at once take less of the L2 cache then. On an H200 rmsnorm of
    2048 x 73728 took 147 us so and 166 by steps over all of it, a layer norm in float32 354 and
    385; the backward of a softmax, which needs two tensors again, 271 and 238, but of
    16384 x 36864 822 and 896 by half as long an end. What is kept is not drawn again either: a
    layer norm of a dropout of 16384 x 36864 took 1565 us so and 1690.
    """
    row, loads = problem.reduced, problem.large_loads
    if row <= ROW_IN_L2 or not _may_keep(problem):
        return None
    long = row > 2 * ROW_IN_L2
    if problem.draws_random and problem.accumulators > 1:
        half = any(stream.item_bytes > 2 for stream in loads)
        return End(16384 if half else 32768, 8192) if long else End(8192, 4096, 16)
    if len(loads) > 1 and len(problem.full_stores) == 1:
        return None if long or problem.accumulators > 1 else End(16384, 4096)
    return End(32768, 8192) if long else None


def _may_keep(problem: Problem) -> bool:
    """Whether an end of rows fits in registers, 32 elements a thread; of some more would spill."""
    narrow = all(stream.item_bytes <= 4 for stream in problem.streams)
    few = len(problem.large_loads) <= 2 and not (problem.draws_random and problem.reduced % WORDS)
    once = problem.co_reduced == 1 and not problem.row_varies
    return narrow and few and once and problem.full_outputs


def is_better_backwards(problem: Problem, step: int, kept: int = 0) -> bool:
    """Whether every second walk should begin at the end of the row, which was read last.

    It finds in the L2 cache what the rows of all programs at once leave of them, but for what
    stays in registers. On an H200 rmsnorm with a residual over 2048 x 73728 in float32 took 755 us
    so, and 817 by walks that all begin at the front; a layer norm, by the longest steps of two
    numbers a lane, 401 and 385.
    """
    device = problem.device
    row = problem.reduced * problem.co_reduced - kept
    rows = row * _bytes_an_element(problem) * device.sm_count
    longest = step >= LONGEST_STEP[0] and problem.accumulators > 1
    return 2 * rows >= device.l2_bytes and not longest
