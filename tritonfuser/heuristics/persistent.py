"""Normalizations: results along the reduced axis depend on reductions along it.

``inner_persistent`` where rows lie along memory, ``outer_persistent`` where they lie across.
Rows that fit are kept in registers; longer ones are read again in each pass, from the L2 cache.
"""

from __future__ import annotations

from math import ceil

from .columns import walked_columns, whole_columns
from .params import HeuristicParams, InnerPersistentParams, OuterPersistentParams
from .problem import Problem, ceil_div, next_power_of_2
from .reduction import cpu_tile
from .rows import tails_of, whole_row

REGISTER_ROW = 17408
"""Elements of a tile that stay in registers: 32 a thread of 512, and short tails."""

ITEMS_A_THREAD = 32
"""Elements of a row in the registers of a thread; on an H200 16 and 64 were slower at 8192."""

SLACK = 1.25
"""How many more they may be, of a row that is no power of two."""

LONG_ROW = 1 << 16
"""Elements of a row that are worth more launches when rows are few: some 3 us of one SM a pass."""

ROW_IN_L2 = 24576
"""Elements of a row of which an H200's L2 cache holds four an SM."""

SECTOR = 32
"""Bytes of the smallest piece of memory a GPU moves."""


def reject_reason(problem: Problem, inner: bool) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if not problem.levels:
        return "it has no reduction"
    if problem.scans:
        return "it has a scan"
    if problem.outer_members:
        return "it reduces over rows as well"
    if problem.inner is not inner:
        return "rows lie across memory" if inner else "rows lie along memory"
    if problem.levels < 2 and not problem.dependent_outputs:
        return "no result along the reduced axis depends on a reduction"
    return _too_few_rows(problem)


def _too_few_rows(problem: Problem) -> str | None:
    """A whole row is one program's work: few long rows would leave most of the device idle."""
    if problem.on_cpu:
        return None
    rows = problem.parallel if problem.inner else ceil_div(problem.parallel, _columns(problem))
    sms = problem.device.sm_count
    if rows * 4 < sms * 3 and problem.reduced > LONG_ROW:
        return f"{rows} programs of {problem.reduced} elements a row leave {sms} SMs idle"
    return None


def _columns(problem: Problem) -> int:
    """Columns side by side that make up whole sectors."""
    return min(next_power_of_2(problem.parallel), max(SECTOR // problem.narrowest, 8))


def propose_inner(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, whole = cpu_tile(problem)
        return InnerPersistentParams(block_x=x, block_r=r, persistent=whole)
    block, tails = whole_row(problem.reduced)
    row = block + sum(tails)
    if row <= REGISTER_ROW:
        block_x = 1
        while (
            block_x * row < 1024
            and ceil_div(problem.parallel, block_x * 2) >= 4 * problem.device.sm_count
        ):
            block_x *= 2
        warps = max(1, min(16, next_power_of_2(ceil(block_x * row / ITEMS_A_THREAD / 32 / SLACK))))
        return InnerPersistentParams(
            block_x=block_x, block_r=block, tails=tails, persistent=True, num_warps=warps
        )
    chunk, warps = _chunk(problem)
    return InnerPersistentParams(
        block_x=1,
        block_r=chunk,
        tails=tails_of(problem.reduced, chunk),
        persistent=False,
        num_warps=warps,
    )


def _chunk(problem: Problem) -> tuple[int, int]:
    """Chunk of a long row, and the warps that walk over it.

    Rows are read again from the L2 cache, so those in flight should fit there: of longer rows
    fewer programs an SM, each with more loads of its own. But a lane that keeps more than one
    number of its row (a mean with its spread, a maximum with its sum) leaves no room for two
    programs of 32 warps with long chunks. A row that is walked over once needs no more than a few
    small programs. Measured on an H200: softmax of 16384 x 20480 took 317 us by (4096, 16) and
    425 by (8192, 32), rmsnorm with a residual 810 and 637; of 2048 x 73728 softmax took 202 us by
    (4096, 16) and 171 by (8192, 32).
    """
    row = problem.reduced
    if not problem.full_outputs:
        return 2048, 8
    stores = sum(s.is_store and s.along_x and s.along_r for s in problem.streams)
    if problem.states > 1:
        steps = [(ROW_IN_L2, (2048, 16)), (2 * ROW_IN_L2, (4096, 32)), (4 * ROW_IN_L2, (8192, 32))]
    else:
        first = (4096, 16) if stores == 1 else (8192, 32)
        steps = [(ROW_IN_L2, first), (2 * ROW_IN_L2, (8192, 32))]
    return next((chosen for limit, chosen in steps if row <= limit), (16384, 32))


def propose_outer(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, fits = cpu_tile(problem)
        return OuterPersistentParams(block_x=x, block_r=r, persistent=fits)
    whole = whole_columns(problem)
    block_x, block_r, warps = whole or walked_columns(problem)
    return OuterPersistentParams(
        block_x=block_x, block_r=block_r, persistent=whole is not None, num_warps=warps
    )
