"""Bytes of a kernel that are fetched once more, since the L2 cache lost them before their use.

Memory is read in pairs of sectors. The rest of a pair, beside a program's tile, is used by another
program. A tensor that does not run along an axis is loaded again by the programs along it. Whether
these find it in the L2 cache depends on the order of programs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from ...device import DeviceProperties
from ..problem import Problem
from ..streams import Stream
from .constants import H200_CONSTANTS, cache_room, share_lost
from .footprint import Side, TensorStrides, Tile
from .traffic import FETCHED_BYTES


@dataclass(frozen=True, slots=True)
class Passing:
    """What passes the L2 cache between two kernels that load a tensor.

    Attributes
    ----------
    moved : int
        Bytes that the first kernel and those between them move.
    held, read : int
        Bytes of the tensor, and of all that the second kernel reads.
    device : DeviceProperties
        The device.
    """

    moved: int
    held: int
    read: int
    device: DeviceProperties


def stays_in_cache(facts: Passing) -> bool:
    """Whether the second kernel finds most of the tensor in the L2 cache, and loads all of it.

    What a first step leaves of a tensor for the second one to reduce, it has not loaded.
    """
    loads_all = facts.read >= facts.held
    return loads_all and facts.moved <= cache_room(facts.device, H200_CONSTANTS)


def unused_share(problem: Problem, stream: Stream, strides: TensorStrides) -> float:
    """Bytes that are fetched beside each byte of a tensor, and never used: around what is read at
    an index of another tensor. 0 for other tensors, of which other loads may use the rest."""
    if not stream.held_bytes:
        return 0.0
    elements, fetched = strides.touched(_whole(problem), FETCHED_BYTES)
    return max(fetched / (elements * stream.item_bytes) - 1.0, 0.0)


def _whole(problem: Problem) -> Tile:
    return tuple(max(float(size), 1.0) for size in problem.axes)


class SectorRest(NamedTuple):
    """The bytes that a program fetches of a tensor beside those of its tile.

    Attributes
    ----------
    fetched : float
        These bytes.
    axis, div : int
        Of the stride term by which the tensor goes on behind the tile.
    most_between : float
        Upper bound of the bytes fetched by all programs until the one runs that uses these.
    """

    fetched: float
    axis: int
    div: int
    most_between: float


class Reread(NamedTuple):
    """A tensor that several programs load.

    Attributes
    ----------
    fetched : float
        Bytes that each of them loads.
    along : tuple of (int, float)
        The axes that the tensor does not run along, and the tiles along each of them.
    """

    fetched: float
    along: tuple[tuple[int, float], ...]


class Neighbours:
    """How far programs are apart whose tiles are neighbours, in one order of programs.

    Programs go along the first of the sides first: all of it, before the next tile of the others.
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

    def apart(self, axis: int, div: int) -> float:
        """Positions of the grid between a tile and the one that goes on along an axis."""
        if axis not in self._steps:
            return 1.0
        step, block, around = self._steps[axis]
        return float(max(div * step, block) * around)


class LostBytes:
    """How much the L2 cache loses before its next use."""

    def __init__(self, problem: Problem) -> None:
        self._axes = problem.axes
        self._positions = max(problem.parallel, 1) * max(problem.reduced, 1)
        self._total = problem.moved_bytes
        self._room = cache_room(problem.device, H200_CONSTANTS)

    def in_order(self, order: tuple[Side, ...]) -> LostInOrder:
        """The same where programs run along the first of these sides first, before the others."""
        return LostInOrder(Neighbours(self._axes, order), self._positions, self._total, self._room)


class LostInOrder(NamedTuple):
    """How much it loses in one order of programs, of which ``positions`` move ``total`` bytes."""

    neighbours: Neighbours
    positions: int
    total: int
    room: float

    def rests(self, rests: Iterable[SectorRest]) -> float:
        """The bytes of rests of sectors that are lost for each program."""
        lost = 0.0
        for rest in rests:
            between = min(self._bytes_between(rest.axis, rest.div), rest.most_between)
            lost += rest.fetched * share_lost(between, self.room)
        return lost

    def rereads(self, rereads: Iterable[Reread]) -> float:
        """The bytes that are lost for each program of tensors that others have loaded.

        Programs along the axis whose neighbours run soonest find most, those along the others find
        what was loaded by all of them.
        """
        lost = 0.0
        for reread in rereads:
            programs = 1.0
            for between, count in sorted(
                (self._bytes_between(axis, 1), count) for axis, count in reread.along
            ):
                programs *= count
                lost += reread.fetched * (count - 1) / programs * share_lost(between, self.room)
        return lost

    def _bytes_between(self, axis: int, div: int) -> float:
        """Bytes that all programs fetch from one to its neighbour along an axis."""
        return min(self.neighbours.apart(axis, div) / self.positions, 1.0) * self.total


def tiles_beside(
    extents: Sequence[int], has: Container[int], tile: Tile
) -> tuple[tuple[int, float], ...]:
    """The axes that a tensor does not run along, with the tiles along each where there are several.

    Parameters
    ----------
    extents : sequence of int
        Of the axes along which programs are spread, the first of all axes.
    has : container of int
        The axes that the tensor runs along.
    tile : tuple of float
        Positions along each axis that a program has.
    """
    return tuple(
        (axis, size / tile[axis])
        for axis, size in enumerate(extents)
        if axis not in has and size > tile[axis]
    )
