"""Tiles of columns that are read again: kept in registers where they fit, else walked over."""

from __future__ import annotations

from ..device import CACHE_LINE_BYTES, VECTOR_BYTES
from .columns import SMALL, WHOLE, Columns, columns_of
from .integers import ceil_div, next_power_of_2
from .problem import Problem

STEP = 64
"""Bytes a thread loads in a step of a walk that comes again, of all tensors together."""

SHARES = {128: 1.0, 64: 0.85, 32: 0.65, 16: 0.35}
"""Bandwidth of a walk by the contiguous bytes of each row that a program has: softmax over the
columns of 8192 x 8192 took 106, 122, 152 and 285 us on an H200."""


def whole_columns(problem: Problem) -> tuple[int, int, int] | None:
    """(block_x, block_r, num_warps) of columns that fit in registers, or None."""
    facts = columns_of(problem)
    column = next_power_of_2(problem.reduced)
    room = 8 * 32 * facts.a_thread(WHOLE)
    block_x = min(next_power_of_2(problem.parallel), facts.line)
    fewest = facts.sector
    if problem.parallel * problem.reduced * facts.read <= SMALL:
        fewest //= 2
    sms = problem.device.sm_count
    while block_x > fewest and (
        block_x * column > room or ceil_div(problem.parallel, block_x) < sms
    ):
        block_x //= 2
    if block_x * column > room:
        return None
    return block_x, column, facts.warps(block_x * column, WHOLE)


def walked_columns(problem: Problem) -> tuple[int, int, int]:
    """(block_x, block_r, num_warps) of columns walked over twice, by one program an SM.

    Whole lines of memory, unless that leaves SMs without a program.
    """
    facts = columns_of(problem)
    block_x = max(widths(problem, facts), key=lambda x: _share(problem, facts, x))
    column = next_power_of_2(problem.reduced)
    block_r = max(1, min(column, 32 * 32 * facts.a_thread(STEP) // block_x))
    return block_x, block_r, facts.warps(block_x * block_r, STEP)


def stay_in_l2(problem: Problem, block_x: int) -> bool:
    """Whether the L2 cache holds most of the columns of all programs at once, and may keep them.

    Where it does not, what is kept of the first rows is in the way of what a walk backwards finds:
    the backward of a softmax over columns of 8192 x 8192 took 154 us without hints on an H200, 158
    with them; of 2048 x 73728 in float32 745 and 615.
    """
    device = problem.device
    programs = min(ceil_div(problem.parallel, block_x), device.sm_count)
    columns = programs * block_x * problem.reduced * columns_of(problem).read
    return 2 * columns <= 3 * device.l2_bytes


def widths(problem: Problem, facts: Columns) -> list[int]:
    """Numbers of columns a program may have, of the most first."""
    most = min(next_power_of_2(problem.parallel), facts.line)
    least = min(max(VECTOR_BYTES // facts.narrowest, 1), most)
    return [most >> n for n in range(most.bit_length()) if most >> n >= least]


def _share(problem: Problem, facts: Columns, block_x: int) -> float:
    """The share of the bandwidth that walks of so many columns a program get."""
    contiguous = max(min(block_x * facts.narrowest, CACHE_LINE_BYTES), VECTOR_BYTES)
    programs = max(ceil_div(problem.parallel, block_x), 1)
    return SHARES[contiguous] * min(programs / problem.device.sm_count, 1.0)
