"""Memory traffic of a flat kernel's tile: sectors, cache lines, sectors fetched more than once.

The tile has one side, or two. The threads of each load are neighbours along the side that the
tensor is contiguous along, or nearest, with as many neighbours to a thread as the widest such load
takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, SECTOR_BYTES, VECTOR_BYTES
from ..params import KernelParams, TransposeParams
from ..problem import Problem
from ..streams import Stream, StrideTerm
from .constants import FITTED_L2_BYTES, H200_CONSTANTS
from .footprint import (
    TensorStrides,
    Tile,
    run_along,
    tile_over,
    touched_bytes,
    vector_elements,
    warp_bytes,
)

FETCHED_BYTES = 2 * SECTOR_BYTES
"""Bytes that the L2 cache fetches from memory at a time."""


class Side(NamedTuple):
    """A side of a tile: its axes, outermost first, and its positions."""

    places: tuple[int, ...]
    block: int


class FlatTraffic(NamedTuple):
    """What a program loads and stores, see ``Counts``; ``vain_bytes`` is of the whole kernel."""

    loaded_bytes: float = 0.0
    fetched_bytes: float = 0.0
    stored_bytes: float = 0.0
    sector_bytes: float = 0.0
    lines: float = 0.0
    accesses: float = 0.0
    addresses: float = 0.0
    vain_bytes: float = 0.0


class _Tensor(NamedTuple):
    """A tensor, as far as no params change it, and how many times it is there."""

    stream: Stream
    times: int
    stride_terms: TensorStrides
    lane: float
    axes: frozenset[int]


class _Access(NamedTuple):
    """How threads load a tensor: along which side, how many elements each, and how many neighbours
    a thread has along that side."""

    place: int
    width: int
    wide: int


class Axes:
    """The axes of a flat problem, and those along each side of its tiles."""

    def __init__(self, problem: Problem) -> None:
        self._every = tuple(range(len(problem.axes)))
        self._across = problem.across
        self._others = tuple(place for place in self._every if place not in problem.across)

    def sides(self, params: KernelParams) -> tuple[Side, ...]:
        """The sides of a flat kernel's tile, the one of its loads along x first."""
        if isinstance(params, TransposeParams):
            return Side(self._others, params.block_x), Side(self._across, params.block_y)
        return (Side(self._every, getattr(params, "block_x", 1)),)


def flat_tile(problem: Problem, params: KernelParams) -> Tile:
    """Positions along each axis that a program has."""
    return tile_over(problem.axes, Axes(problem).sides(params))


class FlatStreams:
    """The loads and stores of all tensors of a flat problem, by params.

    What a tile touches, which loads threads take, and the lines that these touch are found apart:
    params of one problem often have the same tile, and other warps.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._axes = problem, Axes(problem)
        self._total = problem.moved_bytes
        self._tensors = [
            _Tensor(stream, times, TensorStrides(stream), _lane(problem, stream), _axes(stream))
            for stream, times in Counter(problem.streams).items()
        ]
        self._tiles: dict[tuple[object, ...], tuple[float, ...]] = {}
        self._accesses: dict[tuple[int, ...], list[_Access]] = {}
        self._warps: dict[tuple[object, ...], tuple[float, float]] = {}

    def traffic(self, params: KernelParams, programs: int, threads: int) -> FlatTraffic:
        """Loads and stores of a program under params."""
        sides, crosses = self._axes.sides(params), bool(self._problem.across)
        y_first = getattr(params, "first", "") == "y"
        key = (sides, y_first, programs)
        if key not in self._tiles:
            self._tiles[key] = self._touched(sides, y_first, programs)
        loaded, new, stored, sectors, vain = self._tiles[key]
        limit = getattr(params, "vectorization_factor", 0) or VECTOR_BYTES
        lines = accesses = addresses = 0.0
        for number, access in enumerate(self._loads(sides, limit, threads)):
            tensor, (warps, touched) = self._tensors[number], self._of_warps(number, sides, access)
            count = max(warps / access.width, 1.0)
            accesses += count * tensor.times
            if crosses and not tensor.stream.is_store:
                addresses += count * tensor.times * NVIDIA_WARP_SIZE / threads
            lines += count * touched * tensor.times
        return FlatTraffic(loaded, new, stored, sectors, lines, accesses, addresses, vain)

    def _touched(self, sides: tuple[Side, ...], y_first: bool, programs: int) -> tuple[float, ...]:
        """Bytes of a program: loaded, those that the L1 cache does not have, stored, of sectors;
        and those that all fetch in vain."""
        tile = tile_over(self._problem.axes, sides)
        order = sides[::-1] if y_first else sides
        loaded = new = stored = sectors = vain = 0.0
        for stream, times, stride_terms, _, _ in self._tensors:
            found = stride_terms.footprint(tile)
            moved = found.elements * stream.item_bytes * times
            if stream.is_store:
                stored += moved
            else:
                loaded += moved
                new += moved * stream.fresh_share
            sectors += touched_bytes(stream, found) * times * stream.fresh_share
            pairs = stride_terms.footprint(tile, FETCHED_BYTES)
            fetched = touched_bytes(stream, pairs, FETCHED_BYTES) * times - moved
            if fetched > 0:
                lost = self._share_lost(stream, order, tile)
                vain += fetched * lost * programs * (2 if stream.is_store else 1)
        return loaded, new, stored, sectors, vain

    def _loads(self, sides: tuple[Side, ...], limit: int, threads: int) -> list[_Access]:
        """How threads load each tensor."""
        each = max(prod(side.block for side in sides) // threads, 1)
        limit = min(limit, 1 << each.bit_length() - 1)
        key = (len(sides), limit)
        if key not in self._accesses:
            self._accesses[key] = self._accesses_of([side.places for side in sides], limit)
        return self._accesses[key]

    def _accesses_of(self, sides: Sequence[tuple[int, ...]], limit: int) -> list[_Access]:
        problem, every = self._problem, range(len(sides))
        widths = [_widths(problem, tensor.stream, sides, limit) for tensor in self._tensors]
        wide = [max((w[place] for w in widths), default=1) for place in every]
        found = []
        for tensor, width in zip(self._tensors, widths, strict=True):
            place = max(every, key=lambda p: width[p])
            if width[place] <= 1:
                # Threads are neighbours along the side that is nearer in memory.
                touched = [warp_bytes(tensor.stream, problem.axes, sides, p) for p in every]
                place = min(every, key=lambda p: (touched[p], -p))
            found.append(_Access(place, max(width[place], 1), max(wide[place], 1)))
        return found

    def _of_warps(
        self, number: int, sides: tuple[Side, ...], access: _Access
    ) -> tuple[float, float]:
        """Warps that a program has for an element each, and the lines that a load of one touches.

        Threads with more neighbours than the load is wide load them one after another, so that
        those of a load are apart.
        """
        key = (number, sides, access.place, access.wide)
        if key not in self._warps:
            tensor, along = self._tensors[number], NVIDIA_WARP_SIZE * access.wide
            rest = max(along / sides[access.place].block, 1.0)
            warp = [
                (side.places, min(along, side.block) if p == access.place else rest)
                for p, side in enumerate(sides)
            ]
            found = tensor.stride_terms.footprint(
                tile_over(self._problem.axes, warp), CACHE_LINE_BYTES
            )
            lines = touched_bytes(tensor.stream, found, CACHE_LINE_BYTES) / CACHE_LINE_BYTES
            blocks = prod(side.block for side in sides if not tensor.axes.isdisjoint(side.places))
            warps = blocks / tensor.lane / NVIDIA_WARP_SIZE
            self._warps[key] = warps, min(lines, NVIDIA_WARP_SIZE)
        return self._warps[key]

    def _share_lost(self, stream: Stream, sides: tuple[Side, ...], tile: Tile) -> float:
        """Share of the other elements of fetched sectors that the L2 cache loses before their use.

        They are for programs as far away as the axis that goes on where the tile ends.
        """
        problem = self._problem
        room = H200_CONSTANTS.l2_share_bytes * (problem.device.l2_bytes / FITTED_L2_BYTES)
        apart = 1.0
        ends = [term for term in stream.stride_terms if tile[term.axis] < term.div * term.extent]
        if ends:
            apart = _between(problem, sides, min(ends, key=lambda term: abs(term.step)))
        between = min(apart / max(problem.parallel, 1), 1.0) * self._total
        full = (min(between, stream.total_bytes * SECTOR_BYTES / stream.item_bytes) / room) ** 2
        return full / (1 + full)


@lru_cache(maxsize=64)
def flat_streams(problem: Problem) -> FlatStreams:
    """The ``FlatStreams`` of a problem, cached: several rules ask about the same tiles in turn."""
    return FlatStreams(problem)


def _widths(
    problem: Problem, stream: Stream, sides: Sequence[tuple[int, ...]], limit: int
) -> list[int]:
    """Elements of a load of a thread along each side; 0 where neighbours are not contiguous."""
    most = max(min(VECTOR_BYTES // stream.item_bytes, limit), 1)
    runs = [run_along(stream, problem.axes, places) for places in sides]
    return [0 if run == 1 else vector_elements(stream, run, most) for run in runs]


def _axes(stream: Stream) -> frozenset[int]:
    return frozenset(term.axis for term in stream.stride_terms)


def _lane(problem: Problem, stream: Stream) -> float:
    """Neighbours of a flat kernel that have the same element, which is then loaded once."""
    if problem.across or not stream.stride_terms:
        return 1.0
    inner = max(stream.stride_terms, key=lambda term: term.axis)
    same = inner.div * prod(problem.axes[inner.axis + 1 :])
    return float(same & -same) if same > 1 else 1.0


def _between(problem: Problem, sides: tuple[Side, ...], term: StrideTerm) -> float:
    """Positions of the grid between a tile and the one that goes on along a term.

    Programs go along the first of the sides first: all of it, before the next tile of the others.
    """
    found = 1.0
    for place, side in enumerate(sides):
        if term.axis in side.places:
            behind = side.places[side.places.index(term.axis) + 1 :]
            step = term.div * prod(problem.axes[axis] for axis in behind)
            return found * max(step, side.block) * prod(other.block for other in sides[place + 1 :])
        found *= prod(problem.axes[axis] for axis in side.places)
    return found
