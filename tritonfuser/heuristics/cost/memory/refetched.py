"""Bytes that memory delivers more than once, because the L2 cache evicted them before their reuse.

There are two kinds. Memory is read in pairs of sectors (64 bytes): where a tile ends inside a pair,
another program uses the rest of it. And a tensor that is broadcast along an axis is loaded again by
the programs along that axis. Either use hits the L2 cache if its *reuse distance*, the bytes that
all programs load and store between the first use and it, is small enough. That distance depends on
the order of programs in the grid.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from ....device import DeviceProperties
from ...problem import Problem
from ...streams import Stream
from ..constants import H200_CONSTANTS, evicted_share, l2_retention_bytes
from .footprint import Side, TensorStrides, Tile
from .traffic import FETCHED_BYTES


@dataclass(frozen=True, slots=True)
class LaterLoad:
    """A tensor that one kernel loads, and a later kernel of the plan loads again.

    Attributes
    ----------
    reuse_distance : int
        Bytes that the first kernel and the kernels between the two load and store.
    tensor_bytes : int
        Bytes of the tensor.
    read_bytes : int
        Bytes that the later kernel reads, of all tensors together.
    device : DeviceProperties
        The device.
    """

    reuse_distance: int
    tensor_bytes: int
    read_bytes: int
    device: DeviceProperties


def stays_in_cache(load: LaterLoad) -> bool:
    """Whether the later kernel loads the whole tensor, and finds most of it in the L2 cache.

    A kernel that reads fewer bytes than the tensor has loads a part of it only: the second step of
    a split reduction reads the remainder that the first step left out, and did not load.
    """
    loads_all = load.read_bytes >= load.tensor_bytes
    return loads_all and load.reuse_distance <= l2_retention_bytes(load.device, H200_CONSTANTS)


def overfetch_ratio(problem: Problem, stream: Stream, strides: TensorStrides) -> float:
    """Bytes that are fetched and never used, for each byte of a tensor that is used.

    Only for a tensor that is read at indices of another one. 0 for all others: what is fetched
    beside one load of them is used by another load.
    """
    if not stream.held_bytes:
        return 0.0
    elements, fetched = strides.touched(_whole(problem), FETCHED_BYTES)
    return max(fetched / (elements * stream.item_bytes) - 1.0, 0.0)


def _whole(problem: Problem) -> Tile:
    return tuple(max(float(size), 1.0) for size in problem.axes)


class PartialSector(NamedTuple):
    """The pairs of sectors that a program uses in part, because its tile ends inside them.

    Attributes
    ----------
    unused_bytes : float
        Bytes of these pairs that another program uses, and what short runs cost (``RUN_BYTES``).
    axis, div : int
        The stride term along which the tensor goes on behind the tile.
    distance_bound : float
        Upper bound of the reuse distance, in bytes.
    """

    unused_bytes: float
    axis: int
    div: int
    distance_bound: float


class BroadcastLoad(NamedTuple):
    """A tensor that several programs load alike, because it is broadcast along some axes.

    Attributes
    ----------
    loaded_bytes : float
        Bytes that each of these programs loads.
    tiles : tuple of (int, float)
        The axes that it is broadcast along, and the number of tiles along each of them.
    """

    loaded_bytes: float
    tiles: tuple[tuple[int, float], ...]


class ProgramOrder:
    """The order of programs in the grid, and how far it puts neighbouring tiles from each other.

    Parameters
    ----------
    axes : tuple of int
        Extents of the problem's axes.
    order : tuple of Side
        The sides of a tile. Program ids run along the first side fastest.
    """

    def __init__(self, axes: tuple[int, ...], order: tuple[Side, ...]) -> None:
        self._steps: dict[int, tuple[int, int, int]] = {}
        before = 1
        for number, side in enumerate(order):
            around = before * prod(other.block for other in order[number + 1 :])
            step = 1
            for place in reversed(side.places):
                self._steps[place] = step, side.block, around
                step *= axes[place]
            before *= step

    def distance(self, axis: int, div: int) -> float:
        """Positions that programs compute from one tile until the next tile along an axis, where
        the next one is at least ``div`` positions of that axis further on."""
        if axis not in self._steps:
            return 1.0
        step, block, around = self._steps[axis]
        return float(max(div * step, block) * around)


class L2Refetches:
    """The bytes of a problem's kernel that memory delivers again, for any order of programs."""

    def __init__(self, problem: Problem) -> None:
        self._axes = problem.axes
        self._positions = max(problem.parallel, 1) * max(problem.reduced, 1)
        self._total = problem.moved_bytes
        self._capacity = l2_retention_bytes(problem.device, H200_CONSTANTS)

    def in_order(self, order: tuple[Side, ...]) -> L2RefetchesInOrder:
        """The same for programs whose ids run along the first of these sides fastest."""
        programs = ProgramOrder(self._axes, order)
        return L2RefetchesInOrder(programs, self._positions, self._total, self._capacity)


class L2RefetchesInOrder(NamedTuple):
    """The bytes that memory delivers again in one order of programs.

    Attributes
    ----------
    order : ProgramOrder
        The order of programs.
    positions : int
        Positions that all programs compute.
    moved_bytes : int
        Bytes that all programs load and store.
    capacity : float
        ``l2_retention_bytes`` of the device.
    """

    order: ProgramOrder
    positions: int
    moved_bytes: int
    capacity: float

    def of_partial_sectors(self, found: Iterable[PartialSector]) -> float:
        """Bytes of partially used sectors that are fetched again, for each program."""
        refetched = 0.0
        for each in found:
            distance = min(self._reuse_distance(each.axis, each.div), each.distance_bound)
            refetched += each.unused_bytes * evicted_share(distance, self.capacity)
        return refetched

    def of_broadcasts(self, found: Iterable[BroadcastLoad]) -> float:
        """Bytes of broadcast tensors that are fetched again, for each program.

        The axes are taken in the order of their reuse distance. Programs along the nearest axis
        share what the first of them loaded; those along the next axis share what all programs along
        the nearer ones loaded, and so on.
        """
        refetched = 0.0
        for load in found:
            programs = 1.0
            for distance, count in sorted(
                (self._reuse_distance(axis, 1), count) for axis, count in load.tiles
            ):
                programs *= count
                again = load.loaded_bytes * (count - 1) / programs
                refetched += again * evicted_share(distance, self.capacity)
        return refetched

    def _reuse_distance(self, axis: int, div: int) -> float:
        """Bytes that all programs load and store from one tile to the next along an axis."""
        share = min(self.order.distance(axis, div) / self.positions, 1.0)
        return share * self.moved_bytes


def broadcast_tiles(
    extents: Sequence[int], has: Container[int], tile: Tile
) -> tuple[tuple[int, float], ...]:
    """The axes that a tensor is broadcast along, with the number of tiles along each of them.

    Axes with a single tile are left out.

    Parameters
    ----------
    extents : sequence of int
        Of the axes that programs are spread along, which are the first of all axes.
    has : container of int
        The axes that the tensor runs along.
    tile : tuple of float
        Positions of a program's tile along each axis.
    """
    return tuple(
        (axis, size / tile[axis])
        for axis, size in enumerate(extents)
        if axis not in has and size > tile[axis]
    )
