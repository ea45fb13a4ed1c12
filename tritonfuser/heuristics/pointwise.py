"""Pointwise kernels: each program computes a contiguous share of the elements.

Takes problems without reductions whose tensors are contiguous along one axis. Decides in this
order: the elements of a thread, from the width of the tensors, their number and the ops; the width
of loads beside unaligned weights; fewer elements where those would not fill all threads.
"""

from __future__ import annotations

from ..device import VECTOR_BYTES
from .integers import TUNED_WARP_SIZE, next_power_of_2
from .interpreter_tiles import INTERPRETER_ELEMENTS
from .one_wave import spread_items
from .params import HeuristicParams, PointwiseParams
from .params.made import made
from .problem import Problem
from .requirements import FLAT, first_reason

VECTORS_PER_THREAD = 2
"""Vectorized loads of a thread from the widest tensor. H100, 83 flat kernels of random definitions
and of models' steps, of 16-bit tensors: with two the kernels took 0.984 times as long as with four
(geometric mean; 0.96 at the first decile, 1.01 at the ninth). H200, silu(a) * b of 2048 x 4096 in
float32: 25.3 us with two, 25.9 with four."""

MIN_ITEMS_PER_THREAD, MAX_ITEMS_PER_THREAD = 8, 32
"""Least and most elements of a thread, where nothing else limits them."""

UNALIGNED_WEIGHTS = 2
"""Weights of rows of odd length from which on a thread has few neighbouring elements. Loads of
weights are element by element there; with vectors of the other tensors, those of two lanes would
lie a vector apart. H200, scale and bias over 8192 x 8193 in bfloat16: 66 us with few neighbours, 87
with whole vectors. The cost model takes one weight for as bad as two, and it is not."""

UNALIGNED_NEIGHBOUR_BYTES = 4
"""Bytes of the neighbouring elements that a thread has then."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    reason = first_reason(problem, FLAT)
    return reason or ("tensors lie along different axes" if problem.crossing > 1 else None)


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    if problem.on_cpu:
        block_x = min(next_power_of_2(problem.parallel), INTERPRETER_ELEMENTS)
        return PointwiseParams(block_x=block_x)
    factor = _vectorization_factor(problem)
    loads = any(not stream.is_store for stream in problem.streams)
    spread = spread_items(problem.device, problem.parallel, loads)
    items = min(_items_per_thread(problem, factor), spread)
    warps = 8 if problem.has_many_loads else 4
    block_x = warps * TUNED_WARP_SIZE * items
    return made(PointwiseParams, block_x=block_x, num_warps=warps, vectorization_factor=factor)


def _items_per_thread(problem: Problem, factor: int) -> int:
    """Elements of a thread, where there are enough of them for all threads."""
    item = _item_bytes(problem)
    vector = VECTOR_BYTES // item
    items = min(max(VECTORS_PER_THREAD * vector, MIN_ITEMS_PER_THREAD), MAX_ITEMS_PER_THREAD)
    if problem.has_many_ops or factor:
        items = min(items, 8)
    if problem.has_many_loads:
        items = min(items, max(vector, 4))
    return items


def _item_bytes(problem: Problem) -> int:
    """Bytes of an item of the widest tensor that has one for each element.

    H100, where() of a bool and a float32 of 32 Mi elements: 98 us with 8 items a thread, 101 with
    32; sums of a bfloat16 and a float32 108 and 112.
    """
    each = [
        s.item_bytes for s in problem.streams if s.total_bytes >= s.item_bytes * problem.parallel
    ]
    return max(each, default=problem.narrowest)


def _vectorization_factor(problem: Problem) -> int:
    """Neighbouring elements of a thread beside unaligned weights. 0 for as many as loads take."""
    loads = (s for s in problem.streams if not s.is_store and s.x_stride == 1)
    unaligned = sum(s.contiguous_run % 2 for s in loads)
    factor = UNALIGNED_NEIGHBOUR_BYTES // problem.narrowest
    return factor if unaligned >= UNALIGNED_WEIGHTS and factor > 1 else 0
