"""The memory traffic of a flat kernel's tile: sectors, cache lines, bytes fetched more than once.

The tile has one side, or two. The lanes of each load run along the side that the tensor is
contiguous along, or nearest. Each thread has as many adjacent elements as the widest load along
that side.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import mul

import numpy as np

from ....device import VECTOR_BYTES
from ...params import KernelParams, TransposeParams
from ...problem import Problem
from ...streams import Stream, counted
from ..counts import Number
from ..memory.footprint import Side, Tile, tile_over
from ..memory.gathered import Gathered, concurrent_tile, max_resident_programs, sum_windows
from ..memory.refetched import L2Refetches
from ..memory.traffic import Traffic, Windows
from ..numbers import ARRAYS, PLAIN, Numbers
from .access import FlatAccess, accesses
from .layout import tile_layout
from .loads import FlatLoads, flat_loads
from .many_accesses import ManyAccesses, layout_of_many
from .program_bytes import ProgramBytes, SharedBytes, program_bytes, shared_bytes
from .tensor import flat_tensor


class Axes:
    """The axes along each side of a flat problem's tiles."""

    def __init__(self, problem: Problem) -> None:
        self._every = tuple(range(len(problem.axes)))
        self._across = problem.across
        self._others = tuple(place for place in self._every if place not in problem.across)

    def sides(self, params: KernelParams) -> tuple[Side, ...]:
        """The sides of a tile: the one along x first, then the second one if there are two."""
        if isinstance(params, TransposeParams):
            return Side(self._others, params.block_x), Side(self._across, params.block_y)
        return (Side(self._every, getattr(params, "block_x", 1)),)

    def places(self, sides: int) -> tuple[tuple[int, ...], ...]:
        """The axes along each side of tiles of so many sides."""
        return (self._others, self._across) if sides > 1 else (self._every,)

    def order(self, params: KernelParams, sides: tuple[Side, ...]) -> tuple[Side, ...]:
        """The sides in the order in which program ids run along them, fastest first."""
        return sides[::-1] if getattr(params, "first", "") == "y" else sides


def flat_tile(problem: Problem, params: KernelParams) -> Tile:
    """Positions of a program along each axis."""
    return tile_over(problem.axes, Axes(problem).sides(params))


class FlatStreams:
    """The loads and stores of all tensors of a flat problem, by params.

    Footprints of tiles, and the loads of threads with the lines that they touch, are found
    separately and cached: many params of a problem have the same tile, and different warps.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._axes = problem, Axes(problem)
        self._refetches = L2Refetches(problem)
        self._tensors = [
            flat_tensor(problem, stream, times)
            for stream, times in counted(problem.streams).items()
        ]
        narrowest = min((stream.item_bytes for stream in problem.streams), default=VECTOR_BYTES)
        self._widest = max(VECTOR_BYTES // narrowest, 1)
        self._tiles: dict[tuple[Side, ...], ProgramBytes] = {}
        self._shared: dict[tuple[Side, ...], SharedBytes] = {}
        self._accesses: dict[tuple[int, int], list[FlatAccess]] = {}
        self._loads: dict[tuple[tuple[Side, ...], int, int], FlatLoads] = {}
        self._refetched: dict[tuple[Side, ...], float] = {}

    @property
    def loaded(self) -> float:
        """Elements of all tensors together that are loaded for each position."""
        return sum(tensor.times for tensor in self._tensors if not tensor.stream.is_store)

    def traffic(self, params: KernelParams, threads: int) -> Traffic:
        """The traffic of a program."""
        sides = self._axes.sides(params)
        tile, loads = self.tile_bytes(sides), self._loads_of(params, sides, threads)
        windows = [self._windows(one, params, sides, lines) for one, lines in loads.gathered]
        lines = sum(map(mul, tile.hit_rates, loads.shared))
        windows.append(Windows(hit_bytes=tile.hit_bytes, hit_lines=loads.hit_lines + lines))
        return Traffic(
            moved=tile.moved._replace(partial_sector_bytes=loads.partial_sector_bytes),
            windows=sum_windows(windows),
            lines=loads.lines,
            accesses=loads.accesses,
            addresses=loads.addresses,
            written_bytes=loads.written_bytes,
            loaded_elements=tile.loaded_elements,
        )

    def loads(self, params: KernelParams, threads: int) -> FlatLoads:
        """The loads and stores of the threads of a program, cached."""
        return self._loads_of(params, self._axes.sides(params), threads)

    def _loads_of(self, params: KernelParams, sides: tuple[Side, ...], threads: int) -> FlatLoads:
        each = max(prod(side.block for side in sides) // threads, 1)
        limit = getattr(params, "vectorization_factor", 0) or VECTOR_BYTES
        width = self.widths(limit, 1 << each.bit_length() - 1, PLAIN)
        # Otherwise the number of threads matters by the width alone.
        by_threads = len(sides) > 1 or self._problem.across
        key = sides, width, threads if by_threads else 0
        if key not in self._loads:
            found, blocks = self._accesses_by(len(sides), width), [side.block for side in sides]
            layout = tile_layout(self._tensors, found) if len(sides) > 1 else None
            has_addresses = bool(self._problem.across)
            self._loads[key] = flat_loads(
                self._tensors, found, layout, blocks, threads, has_addresses=has_addresses
            )
        return self._loads[key]

    def loads_of_many(self, blocks: Sequence[Number], widths: Number, threads: Number) -> FlatLoads:
        """The loads and stores of many kernels, as arrays.

        Parameters
        ----------
        blocks : sequence of array
            The lengths of the sides of their tiles.
        widths : array
            The elements of the widest vector of a thread: see ``widths``.
        """
        tensors, (each, places) = self._tensors, np.unique(widths, return_inverse=True)
        of_widths = [self._accesses_by(len(blocks), int(width)) for width in each.tolist()]
        found = [ManyAccesses(one, places) for one in zip(*of_widths, strict=True)]
        layout = None
        if len(blocks) > 1:
            layout = layout_of_many([tile_layout(tensors, one) for one in of_widths], places)
        has_addresses = bool(self._problem.across)
        return flat_loads(
            tensors, found, layout, blocks, threads, has_addresses=has_addresses, m=ARRAYS
        )

    def widths(self, vector: Number, of_thread: Number, m: Numbers) -> Number:
        """The elements of the widest vector of a thread, by the limit of its params and by its own
        elements."""
        return m.minimum(m.minimum(vector, of_thread), self._widest)

    def places(self, sides: int) -> tuple[tuple[int, ...], ...]:
        """The axes along each side of tiles of so many sides."""
        return self._axes.places(sides)

    def _windows(
        self, tensor: Gathered, params: KernelParams, sides: tuple[Side, ...], lines: float
    ) -> Windows:
        axes, order = self._problem.axes, self._axes.order(params, sides)
        programs = max_resident_programs(self._problem, params.num_warps)
        return tensor.windows(tile_over(axes, sides), concurrent_tile(axes, order, programs), lines)

    def reread_bytes(self, params: KernelParams, programs: int) -> dict[Stream, float]:
        """Bytes of each tensor that all programs load again, after the L2 cache evicted them."""
        sides = self._axes.sides(params)
        refetches = self._refetches.in_order(sides)
        broadcasts = self._shared_bytes(sides).broadcasts
        return {stream: refetches.of_broadcasts([load]) * programs for stream, load in broadcasts}

    def refetched_bytes(self, params: KernelParams, programs: int) -> float:
        """Bytes that all programs fetch again because the L2 cache evicted them before their reuse.

        Nothing else of the traffic depends on the order of programs.
        """
        sides = self._axes.sides(params)
        order = self._axes.order(params, sides)
        if order not in self._refetched:
            self._refetched[order] = self._refetched_by_one(self._shared_bytes(sides), order)
        return self._refetched[order] * programs

    def _refetched_by_one(self, shared: SharedBytes, order: tuple[Side, ...]) -> float:
        if not (shared.partial_sectors or shared.broadcasts):
            return 0.0
        refetches = self._refetches.in_order(order)
        of_sectors = refetches.of_partial_sectors(shared.partial_sectors)
        return of_sectors + refetches.of_broadcasts(load for _, load in shared.broadcasts)

    def tile_bytes(self, sides: tuple[Side, ...]) -> ProgramBytes:
        """The bytes of a program, cached."""
        if sides not in self._tiles:
            self._tiles[sides] = program_bytes(self._problem, self._tensors, sides)
        return self._tiles[sides]

    def _shared_bytes(self, sides: tuple[Side, ...]) -> SharedBytes:
        """What other programs load or store too, cached."""
        if sides not in self._shared:
            self._shared[sides] = shared_bytes(
                self._problem, self._tensors, self.tile_bytes(sides).tile
            )
        return self._shared[sides]

    def _accesses_by(self, sides: int, width: int) -> list[FlatAccess]:
        """How threads load and store each tensor, cached."""
        key = sides, width
        if key not in self._accesses:
            places = self._axes.places(sides)
            self._accesses[key] = accesses(self._problem, self._tensors, places, width)
        return self._accesses[key]


@lru_cache(maxsize=64)
def flat_streams(problem: Problem) -> FlatStreams:
    """The ``FlatStreams`` of a problem, cached: several rules ask about the same tiles in turn."""
    return FlatStreams(problem)
