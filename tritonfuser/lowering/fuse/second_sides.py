"""The second side of the tiles of flat kernels.

A tile with one side runs along the axes that most bytes are contiguous along. It touches one sector
for each element of a tensor that is contiguous along other axes. A second side runs along those
axes, as far as needed to fill sectors. A tensor that is broadcast along outer axes is read again at
a long reuse distance, after the L2 cache has evicted it: a second side may also run along these
axes. The cost model decides. It counts the sectors of each tensor in each tile, also of small
tensors that are read many times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from math import prod

from ...device import SECTOR_BYTES
from ...devices import known
from ...heuristics import pointwise
from ...heuristics.cost.flat.traffic import flat_streams, flat_tile
from ...heuristics.cost.memory.footprint import Tile, strides_of
from ...heuristics.cost.memory.runs import contiguous_run_along
from ...heuristics.cost.model import KernelTime
from ...heuristics.cost.sides import broadcast_side, sides_along
from ...heuristics.cost.tiles import tile_of
from ...heuristics.params import KernelParams
from ...heuristics.problem import Problem
from ...heuristics.search.choice import chosen
from ...symbolic.choices import choose
from ...symbolic.index_expr import Axis
from ..problem_sizes import env_of
from .flat_kernels import flat_time, flat_work

GAIN = 0.97
"""Tiles have two sides if their predicted time is below this share of that of tiles with one: the
accuracy of the model."""

SHORT_PIECES = 0.15
"""Additional cost of a second side along distant axes, by which programs touch short contiguous
runs: that of so many bytes, as a share of the kernel's. H200, rows of an odd length with a scale
and a bias, in runs of 256 bytes: 24.3 us for 22.5 by the model, 22.3 for 19.4, 39.5 for 35.8, of
which 15.3, 15.3 and 30.5 are memory's."""

MOST_SIDES = 4
"""Most second sides that are compared, those of the tensors with the most sectors."""


def with_second_side(problem: Problem) -> Problem:
    """A flat problem with ``across`` set: the axes of its tiles' second side, if that pays."""
    if not problem.is_flat:
        return problem
    across = choose(env_of(problem), second_side, problem)
    return _with_side(problem, across) if across else problem


def crossing_axes(problem: Problem, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """``problem.across`` as axes: ``axes`` are those that the places of the problem refer to."""
    return tuple(axes[place] for place in problem.across)


@lru_cache(maxsize=4096)
def second_side(problem: Problem) -> tuple[int, ...]:
    """The axes of the tiles' second side, by the cost model: places of axes, outermost first. Empty
    if tiles of one side are faster.
    """
    if not problem.parallel:
        return ()
    if problem.on_cpu:  # as on a GPU: the interpreter runs the same kernels
        problem = replace(problem, device=known("sm_90"))
    one = pointwise.propose(problem)
    assert isinstance(one, KernelParams)
    tile = flat_tile(problem, one)
    wasted, repeats = _second_sides(problem, one, tile), _sides_of_repeats(problem, tile)
    if not wasted and not repeats:
        return ()
    least = GAIN * float(_least_time(problem).seconds)
    worth = (1 - GAIN) * problem.moved_bytes
    best, least = _fastest(problem, (s for s in wasted if wasted[s] > worth), (), least)
    pieces = 0.0 if best else SHORT_PIECES * problem.moved_bytes
    most = _accesses(problem) if repeats else 0.0
    fewer = (side for side in repeats if _accesses(_with_side(problem, side)) < most)
    others = (*(s for s in wasted if wasted[s] <= worth), *fewer)
    return _fastest(problem, others, best, least, pieces)[0]


def _fastest(
    problem: Problem,
    sides: Iterable[tuple[int, ...]],
    best: tuple[int, ...],
    least: float,
    more_bytes: float = 0.0,
) -> tuple[tuple[int, ...], float]:
    """The fastest of some sides and the best of others, with its seconds.

    Parameters
    ----------
    more_bytes : float
        The additional cost of these sides, as bytes from memory.
    """
    for side in sides:
        time = _least_time(_with_side(problem, side))
        seconds = float(time.with_more_bytes(more_bytes, problem.device).seconds)
        if seconds < least:
            best, least = side, seconds
    return best, least


def _with_side(problem: Problem, places: tuple[int, ...]) -> Problem:
    return replace(problem, across=places, crossing=prod(problem.axes[p] for p in places))


def _least_time(problem: Problem) -> KernelTime:
    """The time of a flat problem's kernel with the params that are chosen for it."""
    return flat_time(problem, chosen(problem, flat_work(problem)))


def _accesses(problem: Problem) -> float:
    """Loads and stores of warps for each element, with the params that are chosen for the kernel.
    If rows begin inside vectors, tiles that end with a row have more of them."""
    params = chosen(problem, flat_work(problem))
    assert isinstance(params, KernelParams)
    tile = tile_of(problem, params)
    threads = params.num_warps * problem.device.warp_size
    return float(flat_streams(problem).loads(params, threads).accesses / (tile.x * tile.r))


def _second_sides(
    problem: Problem, params: KernelParams, tile: Tile
) -> dict[tuple[int, ...], float]:
    """The sides to compare, each with the bytes that tiles of one side fetch of the tensors that it
    helps: sectors of tensors that are strided in these tiles, and tensors that programs load again
    after the L2 cache evicted them."""
    every = range(len(problem.axes))
    programs = tile_of(problem, params).programs
    wasted: dict[tuple[int, ...], float] = {}
    for stream, times in Counter(problem.streams).items():
        if contiguous_run_along(stream, problem.axes, every) != 1:
            continue
        elements, sectors = strides_of(stream).touched(tile)
        touched = max(sectors, elements * SECTOR_BYTES)
        for side in sides_along(problem, stream):
            wasted[side] = wasted.get(side, 0.0) + touched * times * programs
    for stream, reread in flat_streams(problem).reread_bytes(params, programs).items():
        side = broadcast_side(problem, stream)
        if side and reread > (1 - GAIN) * problem.moved_bytes:
            wasted[side] = wasted.get(side, 0.0) + reread
    most = sorted(wasted, key=lambda side: (-wasted[side], side))[:MOST_SIDES]
    return {side: wasted[side] for side in most}


def _sides_of_repeats(problem: Problem, tile: Tile) -> list[tuple[int, ...]]:
    """The sides along which a tensor is broadcast, if tiles of one side load enough of its elements
    several times to be worth a second side."""
    loads = Counter(stream for stream in problem.streams if not stream.is_store)
    loaded = {one: strides_of(one).touched(tile)[1] * n for one, n in loads.items()}
    least = (1 - GAIN) * sum(loaded.values())
    sides = (broadcast_side(problem, one) for one in loads if loaded[one] > least)
    return [side for side in dict.fromkeys(sides) if side][:MOST_SIDES]
