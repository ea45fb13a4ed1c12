"""Flat kernels: each program computes a stretch of the elements."""

from __future__ import annotations

from ..device import MAX_BLOCK_ELEMENTS
from .integers import ceil_div, next_power_of_2
from .params import HeuristicParams, PointwiseParams, TransposeParams
from .problem import Problem

MANY_LOADS = 5
"""Loads of an element from which on a thread takes a vector of each, and a program has more
threads: a rotary embedding of 8 x 4096 x 32 x 128 took 166 us so on an H200, else 175, and its
backward 170 instead of 198."""

SCATTERED = 2
"""Loads of a row's weights, where rows are of odd length, from which on lanes should have few
neighbours: vectors of the rest would make those of two lanes lie a vector apart. A scale with a
bias over 8192 x 8193 in bfloat16 took 66 us so on an H200, and 87 by whole vectors."""

FEW = 4
"""Bytes of neighbours that a lane has then."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if problem.reduction_depth or problem.outer_members:
        return "it has reductions"
    if problem.crossing > 1:
        return "tensors lie along different axes"
    return None


def propose(problem: Problem) -> HeuristicParams:
    """Four 16-byte loads a thread of the narrowest tensor, four warps; fewer for small tensors.

    Two where that has 4 bytes an element: silu(a) * b of 2048 x 4096 took 25.3 us so on an H200,
    25.9 by four.

    With many tensors, or one read at many places, a thread takes one load of each. The same
    where what is read along with them is not whole vectors.
    """
    n = problem.parallel
    if problem.on_cpu:
        return PointwiseParams(block_x=min(next_power_of_2(n), MAX_BLOCK_ELEMENTS // 4))
    items = min(64 // problem.narrowest, 32) if problem.narrowest < 4 else 8
    loads = sum(not stream.is_store for stream in problem.streams)
    factor = FEW // problem.narrowest if _scattered(problem) >= SCATTERED else 0
    if problem.ops_per_element > 24 or factor > 1:
        items = min(items, 8)
    if loads >= MANY_LOADS:
        items = min(items, max(16 // problem.narrowest, 4))
    warps = 8 if loads >= MANY_LOADS else 4
    while warps > 1 and ceil_div(n, warps * 32 * items) < 2 * problem.device.sm_count:
        if items > 16 // problem.narrowest:
            items //= 2
        else:
            warps //= 2
    return PointwiseParams(
        block_x=warps * 32 * items,
        num_warps=warps,
        vectorization_factor=factor if factor > 1 else 0,
    )


def _scattered(problem: Problem) -> int:
    """Loads of rows of odd length that come again, or lie apart: no neighbours are a vector."""
    return sum(
        not s.is_store and s.x_stride == 1 and s.contiguous_run % 2 == 1 for s in problem.streams
    )


def transpose_reject_reason(problem: Problem) -> str | None:
    if problem.reduction_depth or problem.outer_members:
        return "it has reductions"
    return None if problem.crossing > 1 else "all tensors lie along one axis"


SIDE = 64
"""Elements of a tile of a transpose along both directions; half of it where they have 8 bytes, or 4
and tiles are few."""

TALL = 16
"""Programs for each multiprocessor from which on tiles are twice as tall: a sum of 16384 x 36864
with a transposed tensor took 853 us on an H200, 878 by squares of 4 warps."""


def propose_transpose(problem: Problem) -> HeuristicParams:
    """Tiles of which both directions move whole lines, or nearly so."""
    x = next_power_of_2(problem.parallel // max(problem.crossing, 1))
    y = next_power_of_2(problem.crossing)
    if problem.on_cpu:
        side_y = min(y, 512)
        return TransposeParams(block_x=min(x, MAX_BLOCK_ELEMENTS // 4 // side_y), block_y=side_y)
    few = problem.parallel < 4 * problem.device.sm_count * SIDE * SIDE
    side = SIDE if problem.widest <= (2 if few else 4) else SIDE // 2
    tall = problem.parallel >= TALL * problem.device.sm_count * side * 2 * side
    return TransposeParams(
        block_x=min(x, side),
        block_y=min(y, 2 * side if tall else side),
        num_warps=8 if side == SIDE else 4,
    )
