"""Normalizations: results along the reduced axis depend on reductions along it.

``inner_persistent`` where rows lie along memory, ``outer_persistent`` where they lie across.
Rows that fit are kept in registers; longer ones are read again in each pass, from the L2 cache.
"""

from __future__ import annotations

from .params import HeuristicParams, InnerPersistentParams, OuterPersistentParams
from .problem import Problem, ceil_div, next_power_of_2
from .reduction import cpu_tile

REGISTER_ROW = 16384
"""Elements of a tile that stay in registers: 32 a thread of 512."""

ITEMS_A_THREAD = 32
"""Elements of a row in the registers of a thread; on an H200 16 and 64 were slower at 8192."""

LONG_ROW = 1 << 16
"""Elements of a row that are worth more launches when rows are few: some 3 us of one SM a pass."""

MAX_PADDING = 1.4
"""Padded over real length of a row that is still worth keeping in registers."""

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
    row = next_power_of_2(problem.reduced)
    padded = row <= MAX_PADDING * problem.reduced or row <= 2048
    if row <= REGISTER_ROW and padded:
        block_x = 1
        while (
            block_x * row < 2048
            and ceil_div(problem.parallel, block_x * 2) >= 4 * problem.device.sm_count
        ):
            block_x *= 2
        warps = max(1, min(16, block_x * row // ITEMS_A_THREAD // 32))
        return InnerPersistentParams(block_x=block_x, block_r=row, persistent=True, num_warps=warps)
    chunk, warps = _chunk(problem)
    return InnerPersistentParams(block_x=1, block_r=chunk, persistent=False, num_warps=warps)


def _chunk(problem: Problem) -> tuple[int, int]:
    """Chunk of a long row and the warps that walk over it: 16 bytes a thread of a 16-bit tensor.

    On an H200 at 20480, where 8192 does not divide the row, softmax took 549 us by 8192 and 397 us
    by 4096.
    """
    if problem.reduced % 8192 == 0 and problem.levels < 2:
        return 8192, 32
    return 4096, 16


def propose_outer(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, whole = cpu_tile(problem)
        return OuterPersistentParams(block_x=x, block_r=r, persistent=whole)
    block_x = _columns(problem)
    column = next_power_of_2(problem.reduced)
    if block_x * column <= REGISTER_ROW:
        warps = max(1, min(16, block_x * column // 512))
        return OuterPersistentParams(
            block_x=block_x, block_r=column, persistent=True, num_warps=warps
        )
    block_r = max(1, min(column, 8192 // block_x))
    return OuterPersistentParams(block_x=block_x, block_r=block_r, persistent=False, num_warps=8)
