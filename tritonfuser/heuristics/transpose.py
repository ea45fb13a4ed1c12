"""Pointwise kernels over tensors that are contiguous along different axes.

Takes problems without reductions that have a second contiguous axis (``crossing``). Decides the two
sides of a tile, so that both directions move whole cache lines.
"""

from __future__ import annotations

from .integers import next_power_of_2
from .interpreter_tiles import INTERPRETER_ELEMENTS
from .params import HeuristicParams, TransposeParams
from .problem import Problem
from .requirements import FLAT, first_reason

SIDE = 64
"""Elements of a side of a tile. Half of that for items of 8 bytes, and for 4 bytes where tiles are
few."""

INTERPRETER_SIDE = 512
"""Elements of the crossing side in the interpreter."""

TALL_TILES_PER_SM = 16
"""Tiles for each SM from which on they are twice as tall. H200, a sum of 16384 x 36864 with a
transposed tensor: 853 us by tall tiles, 878 by squares of 4 warps."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    reason = first_reason(problem, FLAT)
    return reason or (None if problem.crossing > 1 else "all tensors lie along one axis")


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    x = next_power_of_2(problem.parallel // max(problem.crossing, 1))
    y = next_power_of_2(problem.crossing)
    if problem.on_cpu:
        block_y = min(y, INTERPRETER_SIDE)
        return TransposeParams(block_x=min(x, INTERPRETER_ELEMENTS // block_y), block_y=block_y)
    sms = problem.device.sm_count
    few = problem.parallel < 4 * sms * SIDE * SIDE
    side = SIDE if problem.widest <= (2 if few else 4) else SIDE // 2
    tall = problem.parallel >= TALL_TILES_PER_SM * sms * side * 2 * side
    return TransposeParams(
        block_x=min(x, side),
        block_y=min(y, 2 * side if tall else side),
        num_warps=8 if side == SIDE else 4,
    )
