"""Pointwise kernels over tensors that are contiguous along different axes.

Takes problems without reductions whose tiles have a second side (``across``). Decides the lengths
of both sides, so that loads and stores of either direction move whole sectors: those of the least
time by the cost model, the squarest of several.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from math import inf, log2
from typing import Literal

from ..device import fits_second_axis
from .cost.flat.traffic import flat_streams
from .cost.kernels import Times
from .cost.least.launches import launches_of
from .cost.model import KernelTime, is_as_short
from .cost.tiles import tile_of
from .integers import ceil_div, next_power_of_2, warps_for
from .interpreter_tiles import INTERPRETER_ELEMENTS
from .one_wave import spread_items
from .params import HeuristicParams, TransposeParams
from .params.made import made
from .problem import ElementWork, Problem
from .requirements import FLAT, first_reason

INTERPRETER_SIDE = 512
"""Elements of the crossing side in the interpreter."""

TILE_ELEMENTS = (4096, 2048, 1024)
"""Elements of a tile. With fewer a tile has less than a sector along one of its sides."""

LONGEST_SIDE = 256
"""Elements of the crossing side, at most."""

MAX_WARPS = 8
"""Warps of a program, at most, but for those whose threads have few elements."""

THREAD_ELEMENTS = 16
"""Elements of a thread, at most: 4096 of a tile with 8 warps."""

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
    return _fastest(problem, x, y)


@lru_cache(maxsize=1024)
def _fastest(problem: Problem, x: int, y: int) -> TransposeParams:
    """The tile of the least time, at most as long as the sides of the problem."""
    tiles = sorted(_tiles(problem, x, y), key=_off_square)
    if not problem.is_flat:
        return tiles[0]
    times = Times(problem, ElementWork(before=float(problem.ops_per_element)))
    least_times = times.least_of(launches_of(problem, tiles))
    bounds = dict(zip(tiles, least_times.busy.tolist(), strict=True))
    found: dict[TransposeParams, dict[TransposeParams, float]] = {}
    least = inf
    for tile in sorted(tiles, key=lambda tile: bounds[tile]):
        if not is_as_short(bounds[tile], least):
            # Neither this tile nor those behind it are the fastest.
            break
        found[tile] = _in_both_orders(problem, tile, times(tile))
        least = min(least, *found[tile].values())
    in_order = (found[tile].items() for tile in tiles if tile in found)
    return _squarest(dict(chain.from_iterable(in_order)))


def _in_both_orders(
    problem: Problem, tile: TransposeParams, time: KernelTime | None
) -> dict[TransposeParams, float]:
    """The seconds of a tile, and by programs that run along y first, where tiles that share sectors
    are then nearer to one another. Nothing else differs.

    Where the model sees no difference, they run along the side of fewer tiles: the neighbours along
    both sides run at about the same time then. The faster order, or that of ties, comes first.

    H200: a transpose of 196 x 24 x 32 x 196 in bfloat16 with rows of 784 bytes took 59 us along y,
    85 along x. Of 20 kernels without a difference in sectors 14 have fewer tiles along y. Along y
    they take 0.84 to 1.06 of the time, 0.98 in the geometric mean, and the others 0.99 to 1.45.
    """
    assert time is not None
    seconds, turned, streams = _seconds(time), _along_y(tile), flat_streams(problem)
    programs = tile_of(problem, tile).programs
    more = streams.refetched_bytes(turned, programs) - streams.refetched_bytes(tile, programs)
    along_x = ceil_div(problem.parallel // max(problem.crossing, 1), tile.block_x)
    along_y = ceil_div(problem.crossing, tile.block_y)
    if not fits_second_axis(along_x):
        return {tile: seconds}
    if more < 0:
        return {tile: seconds, turned: _seconds(time.with_more_bytes(more, problem.device))}
    fewer = more == 0 and 1 < along_y < along_x
    return {turned: seconds, tile: seconds} if fewer else {tile: seconds}


def _along_y(tile: TransposeParams) -> TransposeParams:
    """The same tile by programs that run along y first."""
    return _tile(tile.block_x, tile.block_y, tile.num_warps, "y")


def _squarest(seconds: Mapping[TransposeParams, float]) -> TransposeParams:
    """The first of those of the least time, as far as the model tells them apart."""
    least = min(seconds.values())
    return next(tile for tile, time in seconds.items() if is_as_short(time, least))


def _tile(block_x: int, block_y: int, warps: int, first: Literal["", "y"] = "") -> TransposeParams:
    return made(TransposeParams, block_x=block_x, block_y=block_y, num_warps=warps, first=first)


def _tiles(problem: Problem, x: int, y: int) -> list[TransposeParams]:
    """Tiles of each size, wide to tall, each once; the largest first."""
    each, most = _elements_of_thread(problem)
    found: dict[TransposeParams, None] = {}
    for elements in TILE_ELEMENTS:
        block_y = min(y, LONGEST_SIDE)
        while block_y > 1:
            block_x = min(x, elements // block_y)
            warps = warps_for(block_x * block_y, each, most)
            found[_tile(block_x, block_y, warps)] = None
            block_y //= 2
    return [*found]


def _elements_of_thread(problem: Problem) -> tuple[int, int]:
    """Elements of a thread, and the most warps: few elements where their loads, or what is computed
    of them, take registers, and where there are few for each thread of the device."""
    heavy = problem.has_many_loads or problem.has_many_ops
    most = HEAVY_THREAD_ELEMENTS if heavy else THREAD_ELEMENTS
    warps = MAX_WARPS * THREAD_ELEMENTS // most
    return min(most, spread_items(problem.device, problem.parallel)), warps


def _off_square(params: TransposeParams) -> float:
    """By how many doublings the sides of a tile are apart."""
    return abs(log2(params.block_x / params.block_y))


def _seconds(time: KernelTime) -> float:
    return inf if time.may_spill else float(time.busy)
