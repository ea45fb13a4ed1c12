"""Loads and stores of a flat kernel's tile: sectors, lines and what is fetched in vain.

The tile has one side, or two. Triton lays the threads of each load along the side that the tensor
is contiguous along, as many neighbours to a thread as the widest such load takes.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, SECTOR_BYTES, VECTOR_BYTES
from ..params import KernelParams, TransposeParams
from ..problem import Problem, Stream
from .constants import H200_CONSTANTS
from .footprint import (
    Tile,
    footprint,
    has_hidden_runs,
    run_along,
    tile_over,
    touched_bytes,
    vector_elements,
)

FETCHED_BYTES = 2 * SECTOR_BYTES
"""Bytes that the L2 cache fetches from memory at a time."""

_H200_L2_BYTES = 60 << 20


class Side(NamedTuple):
    """A side of a tile: its axes, outermost first, and its positions."""

    places: tuple[int, ...]
    block: int


class FlatTraffic(NamedTuple):
    """What a program loads and stores, see ``Counts``; ``vain_bytes`` is of the whole kernel."""

    loaded_bytes: float = 0.0
    stored_bytes: float = 0.0
    sector_bytes: float = 0.0
    lines: float = 0.0
    accesses: float = 0.0
    addresses: float = 0.0
    vain_bytes: float = 0.0


def sides_of(problem: Problem, params: KernelParams) -> tuple[Side, ...]:
    """The sides of a flat kernel's tile, the one of its loads along x first."""
    every = range(len(problem.axes))
    block_x = getattr(params, "block_x", 1)
    if not isinstance(params, TransposeParams):
        return (Side(tuple(every), block_x),)
    others = tuple(place for place in every if place not in problem.across)
    return Side(others, block_x), Side(problem.across, params.block_y)


def flat_tile(problem: Problem, params: KernelParams) -> Tile:
    """Positions along each axis that a program has."""
    return tile_over(problem.axes, sides_of(problem, params))


def flat_traffic(
    problem: Problem, params: KernelParams, programs: int, threads: int
) -> FlatTraffic:
    """The loads and stores of all tensors."""
    sides = sides_of(problem, params)
    tile = flat_tile(problem, params)
    limit = getattr(params, "vectorization_factor", 0) or VECTOR_BYTES
    y_first = getattr(params, "first", "") == "y"
    streams = Counter(problem.streams)
    widths = [_widths(problem, stream, sides, limit, threads) for stream in streams]
    wide = [max((w[place] for w in widths), default=1) for place in range(len(sides))]
    first = len(sides) - 1
    if problem.across and has_hidden_runs(problem.axes, problem.across):
        first = 0
    loaded = stored = sectors = lines = accesses = addresses = vain = 0.0
    for (stream, times), width in zip(streams.items(), widths, strict=True):
        found = footprint(stream, tile)
        moved = found.elements * stream.item_bytes * times
        if stream.is_store:
            stored += moved
        else:
            loaded += moved
        sectors += touched_bytes(stream, found) * times
        pairs = footprint(stream, tile, FETCHED_BYTES)
        fetched = touched_bytes(stream, pairs, FETCHED_BYTES) * times - moved
        if fetched > 0:
            lost = _share_lost(problem, stream, sides[::-1] if y_first else sides, tile)
            vain += fetched * lost * programs * (2 if stream.is_store else 1)
        place = max(range(len(sides)), key=lambda p: (width[p] > 1, p == first, width[p]))
        count, touched = _accesses(problem, stream, sides, place, width[place], wide[place])
        accesses += count * times
        if problem.across and not stream.is_store:
            addresses += count * times * NVIDIA_WARP_SIZE / threads
        lines += count * touched * times
    return FlatTraffic(loaded, stored, sectors, lines, accesses, addresses, vain)


def _widths(
    problem: Problem, stream: Stream, sides: tuple[Side, ...], limit: int, threads: int
) -> list[int]:
    """Elements of a load of a thread along each side; 0 where neighbours are not contiguous."""
    each = max(prod(side.block for side in sides) // threads, 1)
    most = min(VECTOR_BYTES // stream.item_bytes, limit, 1 << each.bit_length() - 1)
    found = []
    for side in sides:
        run = run_along(stream, problem.axes, side.places)
        width = vector_elements(stream, run, max(most, 1))
        found.append(0 if run == 1 else width)
    return found


def _accesses(
    problem: Problem, stream: Stream, sides: tuple[Side, ...], place: int, width: int, wide: int
) -> tuple[float, float]:
    """Loads of all warps of a program, and the lines that one of them touches.

    Threads with more neighbours than the load is wide load them one after another, so that those
    of a load are apart.
    """
    width, wide = max(width, 1), max(wide, 1)
    elements = prod(side.block for side in sides if _varies(stream, side)) / _lane(problem, stream)
    along = NVIDIA_WARP_SIZE * wide
    rest = max(along / sides[place].block, 1.0)
    warp = [
        (side.places, min(along, side.block) if p == place else rest)
        for p, side in enumerate(sides)
    ]
    found = footprint(stream, tile_over(problem.axes, warp), CACHE_LINE_BYTES)
    lines = touched_bytes(stream, found, CACHE_LINE_BYTES) / CACHE_LINE_BYTES
    return max(elements / (NVIDIA_WARP_SIZE * width), 1.0), min(lines, NVIDIA_WARP_SIZE)


def _varies(stream: Stream, side: Side) -> bool:
    return any(leg.axis in side.places for leg in stream.legs)


def _lane(problem: Problem, stream: Stream) -> float:
    """Neighbours of a flat kernel that have the same element, which is then loaded once."""
    if problem.across or not stream.legs:
        return 1.0
    inner = max(stream.legs, key=lambda leg: leg.axis)
    same = inner.div * prod(problem.axes[inner.axis + 1 :])
    return float(same & -same) if same > 1 else 1.0


def _share_lost(problem: Problem, stream: Stream, sides: tuple[Side, ...], tile: Tile) -> float:
    """Share of the other elements of fetched sectors that the L2 cache loses before their use.

    They are for programs as far away as the axis that goes on where the tile ends.
    """
    room = H200_CONSTANTS.l2_share_bytes * (problem.device.l2_bytes / _H200_L2_BYTES)
    total = sum(s.total_bytes for s in problem.streams)
    apart = 1.0
    ends = [leg for leg in stream.legs if tile[leg.axis] < leg.div * leg.extent]
    if ends:
        nearest = min(ends, key=lambda leg: abs(leg.step))
        apart = nearest.div * _inner(problem, sides, nearest.axis)
    between = min(apart / max(problem.parallel, 1), 1.0) * total
    full = (min(between, stream.total_bytes * SECTOR_BYTES / stream.item_bytes) / room) ** 2
    return full / (1 + full)


def _inner(problem: Problem, sides: tuple[Side, ...], axis: int) -> float:
    """Positions of the grid from one of an axis to the next; programs go along the first of the
    sides first."""
    found = 1.0
    for side in sides:
        if axis in side.places:
            behind = side.places[side.places.index(axis) + 1 :]
            return found * prod(problem.axes[place] for place in behind)
        found *= prod(problem.axes[place] for place in side.places)
    return found
