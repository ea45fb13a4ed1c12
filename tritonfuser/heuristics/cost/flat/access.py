"""How threads load and store the tensors of a flat tile: along which side, by which vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ....device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...problem import Problem
from ...streams import Stream
from ..counts import Number
from ..memory.footprint import TensorStrides, Tile, tile_over
from ..memory.gathered import Gathered
from ..memory.runs import contiguous_run_along, vector_elements, warp_lines
from ..memory.traffic import partial_sector_bytes_of, written_bytes
from .tensor import FlatTensor


class FlatAccess:
    """How threads load or store a tensor, and how many cache lines a warp then touches.

    Parameters
    ----------
    axes : tuple of int
        Extents of the problem's axes.
    strides : TensorStrides
        Where the tensor's elements are.
    sides : tuple of tuple of int
        The axes along each side of the tile.
    gathered : Gathered, optional
        The tensor, where it is read at indices of another one.

    Attributes
    ----------
    along : tuple of int
        The sides that the tensor runs along.
    lane_side : int
        The side that the lanes of a warp run along.
    vector : int
        Elements of a vectorized load along it.
    load_positions : float
        Positions that one load of a warp has.
    warp_positions : int
        Adjacent positions along that side that a warp has, by all its loads.
    """

    def __init__(
        self,
        axes: tuple[int, ...],
        strides: TensorStrides,
        sides: tuple[tuple[int, ...], ...],
        along: tuple[int, ...],
        lane_side: int,
        vector: int,
        load_positions: float,
        warp_positions: int,
        gathered: Gathered | None = None,
    ) -> None:
        self._axes, self._strides, self._sides = axes, strides, sides
        self.along = along
        self.lane_side = lane_side
        self.vector = vector
        self.load_positions = load_positions
        self.warp_positions = warp_positions
        self._gathered = gathered
        self._warps: dict[float, Tile] = {}
        self._lines: dict[float, float] = {}
        self._stores: dict[Tile, tuple[float, float]] = {}

    def along_lanes(self, blocks: Sequence[Number]) -> Number:
        """Positions of the tile along ``lane_side``."""
        return blocks[self.lane_side]

    def lines(self, block: float) -> float:
        """Cache lines that one load of a warp touches.

        A thread with more adjacent positions than a vector takes several loads, so the vectors of
        one load have gaps between them.

        Parameters
        ----------
        block : float
            Positions of the tile along ``lane_side``, ``warp_positions`` at most.
        """
        found = self._lines.get(block)
        if found is None:
            of_thread = min(self.warp_positions / NVIDIA_WARP_SIZE, block)
            warp = self._of_warp(block)
            found = self._of_load(warp, self._lines_of(warp) * self._share_of_load(of_thread))
            found = self._lines[block] = min(max(found, 1.0), NVIDIA_WARP_SIZE)
        return found

    def lines_of_lanes(self, lanes: int, of_thread: int) -> float:
        """Cache lines of one load by so many lanes along ``lane_side``, each of which has
        ``of_thread`` adjacent positions."""
        along = self._along(lanes * of_thread)
        found = self._of_load(along, self._lines_of(along) * self._share_of_load(of_thread))
        return min(max(found, 1.0), lanes)

    def _share_of_load(self, of_thread: float) -> float:
        """Share of the lines of a thread's adjacent positions that one of its loads touches."""
        if of_thread <= self.vector:
            return 1.0
        return self._lines_of(self._along(self.vector)) / self._lines_of(self._along(of_thread))

    def _lines_of(self, tile: Tile) -> float:
        return self._strides.touched(tile, CACHE_LINE_BYTES)[1] / CACHE_LINE_BYTES

    def _of_load(self, tile: Tile, lines: float) -> float:
        """Distinct lines of a load that requests so many: fewer for a gather, whose lanes may read
        the same line."""
        return lines if self._gathered is None else self._gathered.lines(tile, lines)

    def _along(self, positions: float) -> Tile:
        """Adjacent positions along ``lane_side``."""
        return tile_over(self._axes, [(self._sides[self.lane_side], positions)])

    def written_bytes(self, block: float) -> float:
        """Bytes of the sectors that one store of a warp touches: see ``traffic.written_bytes``."""
        return written_bytes(*self._stored(self._of_warp(block)))

    def partial_sector_bytes(self, block: float) -> float:
        """Bytes of the sectors that one store of a warp touches in part."""
        return partial_sector_bytes_of(*self._stored(self._of_warp(block)))

    def partial_sector_bytes_along(self, positions: float) -> float:
        """The same of all stores to neighbouring positions along ``lane_side``, whichever warps
        they are of: the L2 cache joins them before it writes to memory."""
        return partial_sector_bytes_of(*self._stored(self._along(positions)))

    def _stored(self, tile: Tile) -> tuple[float, float]:
        """Bytes of the elements of a tile, and of their sectors."""
        found = self._stores.get(tile)
        if found is None:
            side = self._sides[self.lane_side]
            elements, sector_bytes = self._strides.touched_along(tile, self._axes, side)
            found = self._stores[tile] = elements * self._strides.item_bytes, sector_bytes
        return found

    def _of_warp(self, block: float) -> Tile:
        """Positions of a warp along each axis."""
        found = self._warps.get(block)
        if found is None:
            rest = self.warp_positions / block
            warp = [
                (places, block if side == self.lane_side else rest)
                for side, places in enumerate(self._sides)
            ]
            found = self._warps[block] = tile_over(self._axes, warp)
        return found


def accesses(
    problem: Problem,
    tensors: Sequence[FlatTensor],
    sides: tuple[tuple[int, ...], ...],
    limit: int,
) -> list[FlatAccess]:
    """How threads load and store each tensor, by vectors of at most ``limit`` elements.

    Triton lays out the threads of a load by the widest vector among all loads and stores of the
    same shape whose lanes run along the same side. Stores are converted to a layout of their own.
    """
    every, axes = tuple(range(len(sides))), problem.axes
    widest: dict[tuple[tuple[int, ...], int], int] = {}
    by_side = []
    for tensor in tensors:
        most = max(min(VECTOR_BYTES // tensor.stream.item_bytes, limit), 1)
        vectors = [_vector(axes, tensor.stream, places, most) for places in sides]
        along = tuple([side for side in every if not tensor.axes.isdisjoint(sides[side])])
        lane_side = _lane_side(axes, tensor, sides, vectors, along or every)
        vector, key = vectors[lane_side], (along, lane_side)
        if vector > widest.get(key, 0):
            widest[key] = vector
        by_side.append((tensor, vector, along, lane_side))
    found = []
    for tensor, vector, along, lane_side in by_side:
        own = max(vector, 1)
        # In a tile of two sides, Triton sees no contiguity of a tensor that has none along either.
        has_own_layout = tensor.stream.is_store or (not vector and len(sides) > 1)
        of_thread = own if has_own_layout else widest.get((along, lane_side), 1)
        make = _access if tensor.gathered is None else FlatAccess
        found.append(
            make(
                axes,
                tensor.stride_terms,
                sides,
                along,
                lane_side,
                own,
                tensor.repeats * NVIDIA_WARP_SIZE * own,
                NVIDIA_WARP_SIZE * of_thread,
                tensor.gathered,
            )
        )
    return found


_access = lru_cache(maxsize=1024)(FlatAccess)
"""Cached with what it has counted: many problems have the same tensor. Not for gathers, whose
windows are those of one problem."""


def _lane_side(
    axes: tuple[int, ...],
    tensor: FlatTensor,
    sides: Sequence[tuple[int, ...]],
    vectors: Sequence[int],
    along: Sequence[int],
) -> int:
    """The side that the lanes of a load run along, one of ``along``: the side with the widest
    vectors, or the one along which a warp touches the fewest lines if there are no vectors."""
    if len(along) == 1:
        return along[0]
    found = max(along, key=lambda side: vectors[side])
    if vectors[found] > 1:
        return found
    lines = {side: warp_lines(tensor.stride_terms, axes, sides, side) for side in along}
    return min(along, key=lambda side: (lines[side], -side))


def _vector(axes: tuple[int, ...], stream: Stream, places: tuple[int, ...], most: int) -> int:
    """Elements of a vectorized load along a side; 0 where it is not contiguous."""
    run = contiguous_run_along(stream, axes, places)
    return 0 if run == 1 else vector_elements(stream, places, run, most)
