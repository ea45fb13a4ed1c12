"""Pointwise kernels over tensors that are contiguous along different axes.

Takes problems without reductions whose tiles have a second side (``across``). Decides the lengths
of both sides, so that loads and stores of either direction move whole sectors: those of the least
time by the cost model.
"""

from __future__ import annotations

from .cost.kernels import predicted
from .integers import next_power_of_2
from .interpreter_tiles import INTERPRETER_ELEMENTS
from .params import HeuristicParams, TransposeParams
from .problem import ElementWork, Problem
from .requirements import FLAT, first_reason

SIDE = 64
"""Elements of a side of a tile. Half of that for items of 8 bytes, and for 4 bytes where tiles are
few."""

INTERPRETER_SIDE = 512
"""Elements of the crossing side in the interpreter."""

TALL_TILES_PER_SM = 16
"""Tiles for each SM from which on they are twice as tall. H200, a sum of 16384 x 36864 with a
transposed tensor: 853 us by tall tiles, 878 by squares of 4 warps."""

GAIN = 0.95
"""Share of the time of a square tile, below which another one takes its place: what the model's
times are worth."""

THREAD_ELEMENTS = 16
"""Elements of a thread: 4096 of a tile with 8 warps."""

HEAVY_THREAD_ELEMENTS = 8
"""Elements of a thread where ops or loads are many. H200, seven kernels of random definitions with
tiles of 64 x 64 and 64 x 32 by 8 warps: with 16 elements a thread they took 0.9 to 1.8 times as
long, 1.2 times in the mean, and 48 to 242 registers."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    reason = first_reason(problem, FLAT)
    return reason or (None if problem.crossing > 1 else "no tile of two sides is faster")


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    x = next_power_of_2(problem.parallel // max(problem.crossing, 1))
    y = next_power_of_2(problem.crossing)
    if problem.on_cpu:
        block_y = min(y, INTERPRETER_SIDE)
        return TransposeParams(block_x=min(x, INTERPRETER_ELEMENTS // block_y), block_y=block_y)
    best = _square(problem, x, y)
    if not problem.axes:
        return best
    least = GAIN * _seconds(problem, best)
    for params in _others(problem, x, y):
        seconds = _seconds(problem, params)
        if seconds < least:
            best, least = params, seconds
    return best


def _square(problem: Problem, x: int, y: int) -> TransposeParams:
    """A square tile, a tall one where tiles are many, or a low one where ops or loads are."""
    sms = problem.device.sm_count
    few = problem.parallel < 4 * sms * SIDE * SIDE
    side = SIDE if problem.widest <= (2 if few else 4) else SIDE // 2
    warps = 8 if side == SIDE else 4
    tall = problem.parallel >= TALL_TILES_PER_SM * sms * side * 2 * side
    block_y = 2 * side if tall else side
    if _is_heavy(problem):
        block_y = HEAVY_THREAD_ELEMENTS * warps * problem.device.warp_size // side
    return TransposeParams(block_x=min(x, side), block_y=min(y, block_y), num_warps=warps)


def _is_heavy(problem: Problem) -> bool:
    return problem.has_many_loads or problem.has_many_ops


def _others(problem: Problem, x: int, y: int) -> list[TransposeParams]:
    """Other tiles: of 2048 or 4096 elements, wide and tall."""
    found: list[TransposeParams] = []
    each = HEAVY_THREAD_ELEMENTS if _is_heavy(problem) else THREAD_ELEMENTS
    for elements in (2048, 4096):
        warps = elements // (each * problem.device.warp_size)
        for block_y in (2, 4, 8, 16, 32, 64, 128, 256):
            block_x = elements // block_y
            if block_y <= y and block_x <= x:
                sides = TransposeParams(block_x=block_x, block_y=block_y, num_warps=max(warps, 1))
                found.append(sides)
    return found


def _seconds(problem: Problem, params: TransposeParams) -> float:
    found = predicted(problem, params, ElementWork(before=float(problem.ops_per_element)))
    assert found is not None
    return float("inf") if found.may_spill else float(found.busy)
