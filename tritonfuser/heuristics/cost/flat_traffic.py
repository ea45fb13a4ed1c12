"""Memory traffic of a flat kernel's tile: sectors, cache lines, bytes fetched more than once.

The tile has one side, or two. The threads of each load are neighbours along the side that the
tensor is contiguous along, or nearest, with as many neighbours to a thread as the widest such load
takes.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import prod
from operator import mul
from typing import NamedTuple

from ...device import NVIDIA_WARP_SIZE, VECTOR_BYTES
from ..params import KernelParams, TransposeParams
from ..problem import Problem
from ..streams import Stream
from .flat_access import FlatAccess, FlatLoads, accesses, flat_tensor
from .footprint import Side, Tile, tile_over
from .found_again import L1Cache
from .gathered import Gathered, most_running, running, together
from .refetched import LostBytes, Reread, SectorRest, tiles_beside
from .tile_layout import tile_layout
from .traffic import FETCHED_BYTES, Traffic, Windows


class _TileTraffic(NamedTuple):
    """What a program loads and stores, in whichever order programs run.

    Attributes
    ----------
    found : list of float
        Share of each tensor that the L1 cache has.
    found_bytes : float
        Bytes of the sectors that it has.
    """

    loaded: float
    new: float
    stored: float
    sectors: float
    elements: float
    rests: list[SectorRest]
    rereads: list[tuple[Stream, Reread]]
    found: list[float]
    found_bytes: float


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

    def order(self, params: KernelParams, sides: tuple[Side, ...]) -> tuple[Side, ...]:
        """The sides, the one that programs run along first before the other."""
        return sides[::-1] if getattr(params, "first", "") == "y" else sides


def flat_tile(problem: Problem, params: KernelParams) -> Tile:
    """Positions along each axis that a program has."""
    return tile_over(problem.axes, Axes(problem).sides(params))


_ALONG: tuple[tuple[tuple[int, ...], ...], ...] = ((), ((), (0,)), ((), (0,), (1,), (0, 1)))
"""The sides that a tensor may run along, by the number of sides of a tile."""


class FlatStreams:
    """The loads and stores of all tensors of a flat problem, by params.

    What a tile touches, which loads threads take, and the lines that these touch are found apart:
    params of one problem often have the same tile, and other warps.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._axes = problem, Axes(problem)
        self._lost = LostBytes(problem)
        self._tensors = [
            flat_tensor(problem, stream, times)
            for stream, times in Counter(problem.streams).items()
        ]
        self._tiles: dict[tuple[Side, ...], _TileTraffic] = {}
        self._accesses: dict[tuple[int, ...], list[FlatAccess]] = {}
        self._loads: dict[tuple[tuple[Side, ...], int, int], FlatLoads] = {}
        self._refetched: dict[tuple[Side, ...], float] = {}

    @property
    def loaded(self) -> float:
        """Elements of all tensors that are loaded for each position."""
        return sum(tensor.times for tensor in self._tensors if not tensor.stream.is_store)

    def traffic(self, params: KernelParams, threads: int) -> Traffic:
        """Loads and stores of a program under params."""
        sides = self._axes.sides(params)
        tile, loads = self._of_tile(sides), self.loads(params, threads)
        at_once = tile.loaded, tile.new, tile.stored, tile.sectors
        windows = [self._windows(one, params, sides, lines) for one, lines in loads.gathered]
        lines = sum(share * n for share, n in zip(tile.found, loads.shared, strict=True))
        windows.append(Windows(hit_bytes=tile.found_bytes, hit_lines=loads.hit_lines + lines))
        return Traffic(
            *at_once,
            loads.lines,
            loads.accesses,
            addresses=loads.addresses,
            written_bytes=loads.written_bytes,
            partly_bytes=loads.partly_bytes,
            loaded_elements=tile.elements,
            windows=together(windows),
        )

    def loads(self, params: KernelParams, threads: int) -> FlatLoads:
        """How the threads of a program load and store, whatever its tile touches of memory."""
        sides = self._axes.sides(params)
        each = max(prod(side.block for side in sides) // threads, 1)
        limit = getattr(params, "vectorization_factor", 0) or VECTOR_BYTES
        limit = min(limit, 1 << each.bit_length() - 1)
        # Else threads make no difference beside the limit.
        by_threads = len(sides) > 1 or self._problem.across
        key = sides, limit, threads if by_threads else 0
        if key not in self._loads:
            self._loads[key] = self._found_loads(sides, limit, threads)
        return self._loads[key]

    def _found_loads(self, sides: tuple[Side, ...], limit: int, threads: int) -> FlatLoads:
        """The loads of threads of ``limit`` neighbours at most."""
        crosses = bool(self._problem.across)
        lines = hits = requests = addresses = written = partly = 0.0
        gathered, shared = [], []
        blocks = [side.block for side in sides]
        positions = {along: prod(blocks[place] for place in along) for along in _ALONG[len(sides)]}
        found = self._accesses_by(sides, limit)
        whole = tile_layout(self._tensors, found) if len(sides) > 1 else None
        for tensor, access in zip(self._tensors, found, strict=True):
            times = tensor.times
            block = min(access.neighbours, blocks[access.place])
            count = max(positions[access.along] / access.positions, 1.0)
            once = touched = count * access.lines(block) * times
            small = len(access.along) == 1 and positions[access.along] < threads
            if whole is not None and small and not tensor.stream.is_store:
                count, met = whole.loads(access, blocks, threads)
                touched = max(count * met * times, once)
                hits += touched - once
            shared.append(once if tensor.shared else 0.0)
            requests += count * times
            if crosses and not tensor.stream.is_store:
                addresses += count * times * NVIDIA_WARP_SIZE / threads
            if tensor.stream.is_store and not tensor.gathered:
                whole_sectors, in_part = access.written_bytes(block)
                written += count * whole_sectors * times
                partly += count * in_part * times
            lines += touched
            if tensor.gathered:
                gathered.append((tensor.gathered, once))
        return FlatLoads(lines, hits, requests, addresses, written, partly, gathered, shared)

    def _windows(
        self, tensor: Gathered, params: KernelParams, sides: tuple[Side, ...], lines: float
    ) -> Windows:
        axes, many = self._problem.axes, most_running(self._problem, params.num_warps)
        order = self._axes.order(params, sides)
        return tensor.windows(tile_over(axes, sides), running(axes, order, many), lines)

    def reread_bytes(self, params: KernelParams, programs: int) -> dict[Stream, float]:
        """Bytes of each tensor that all programs load again, and that the L2 cache has lost."""
        sides = self._axes.sides(params)
        lost = self._lost.in_order(sides)
        rereads = self._of_tile(sides).rereads
        return {stream: lost.rereads([one]) * programs for stream, one in rereads}

    def refetched_bytes(self, params: KernelParams, programs: int) -> float:
        """Bytes that all programs fetch once more, since the L2 cache lost them before their use.

        Nothing else depends on the side that programs run along first.
        """
        sides = self._axes.sides(params)
        order = self._axes.order(params, sides)
        if order not in self._refetched:
            tile, lost = self._of_tile(sides), self._lost.in_order(order)
            rests = lost.rests(tile.rests)
            self._refetched[order] = rests + lost.rereads(one for _, one in tile.rereads)
        return self._refetched[order] * programs

    def _of_tile(self, sides: tuple[Side, ...]) -> _TileTraffic:
        if sides not in self._tiles:
            self._tiles[sides] = self._touched(sides)
        return self._tiles[sides]

    def _touched(self, sides: tuple[Side, ...]) -> _TileTraffic:
        tile = tile_over(self._problem.axes, sides)
        loaded = new = stored = sectors = elements = 0.0
        positions = prod(side.block for side in sides)
        rests, rereads, parts = [], [], []
        for tensor in self._tensors:
            stream, times, terms = tensor.stream, tensor.times, tensor.stride_terms
            found, sector_bytes = terms.touched(tile)
            moved = found * stream.item_bytes * times
            if stream.is_store:
                stored += moved
            else:
                loaded += moved
                elements += times * positions
                new += moved * tensor.fresh
                along = tiles_beside(self._problem.axes, tensor.axes, tile)
                if along:
                    rereads.append((stream, Reread(moved * tensor.fresh, along)))
            parts.append(found * stream.item_bytes if tensor.shared else 0.0)
            sectors += sector_bytes * times * tensor.fresh
            _, pair_bytes = terms.touched(tile, FETCHED_BYTES)
            fetched = pair_bytes * times - moved * (1 + tensor.unused)
            if fetched > 0:
                # What is stored in part is read too.
                fetched *= 2 if stream.is_store else 1
                axis, div = terms.end_of(tile) or (-1, 1)
                rests.append(SectorRest(fetched, axis, div, tensor.most_between))
        cache = L1Cache(self._problem.device, loaded, self._problem.parallel / positions)
        shares = [
            cache.found_share(tensor.stream, part)
            for tensor, part in zip(self._tensors, parts, strict=True)
        ]
        return _TileTraffic(
            loaded,
            new,
            stored,
            sectors,
            elements,
            rests,
            rereads,
            shares,
            sum(map(mul, shares, parts)),
        )

    def _accesses_by(self, sides: tuple[Side, ...], limit: int) -> list[FlatAccess]:
        """How threads load each tensor."""
        key = (len(sides), limit)
        if key not in self._accesses:
            self._accesses[key] = accesses(
                self._problem, self._tensors, [side.places for side in sides], limit
            )
        return self._accesses[key]


@lru_cache(maxsize=64)
def flat_streams(problem: Problem) -> FlatStreams:
    """The ``FlatStreams`` of a problem, cached: several rules ask about the same tiles in turn."""
    return FlatStreams(problem)
