"""Sectors of which a tile of rows uses a part, and another tile, much later, the rest.

Where these are tiles that run at the same time, the L2 cache has the rest unless what all of them
load exceeds it (``kernel_time``). Where the order of programs, or of the steps of one program, puts
more between them than the cache holds, the rest is fetched once more, and what is stored in part is
read and written once more. H200: softmax over 3 positions, whose results are 6 bytes long and lie
266 KB apart, moved 1,975 MB for 430 with a sector's neighbours 12 MB of loads apart, 438 with them
in neighbouring programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...problem import Problem
from ..constants import H200_CONSTANTS, cache_room, share_lost
from ..footprint import Side, TensorStrides, Tile
from ..refetched import Neighbours
from ..tiles import KernelTile


class RowRest(NamedTuple):
    """What a step moves of a tensor beside its own bytes.

    Attributes
    ----------
    near : float
        Bytes, if tiles that run at the same time use the rest and the cache has lost it.
    far : float
        Bytes, if tiles that run later use it and the cache has lost it.
    axis, div : int
        Of the stride term by which the tensor goes on behind the tile. An axis of -1: it ends.
    """

    near: float
    far: float
    axis: int
    div: int


def row_rest(strides: TensorStrides, tile: Tile, near: float, far: float) -> RowRest:
    """The rest of the sectors of a tile, by where the tensor goes on."""
    axis, div = strides.end_of(tile) or (-1, 1)
    return RowRest(near, far, axis, div)


class RowRests:
    """Bytes beside those of the tiles of a problem with rows, by tile."""

    def __init__(self, problem: Problem) -> None:
        self._axes, self._places = problem.axes, problem.places
        self._row = max(problem.reduced, 1)
        self._positions = max(problem.parallel, 1) * self._row
        self._device = problem.device
        self._room = cache_room(problem.device, H200_CONSTANTS)

    def of_step(
        self, rests: Iterable[RowRest], tile: KernelTile, lines: float
    ) -> tuple[float, float]:
        """(near, far): bytes of a step beside its own that the L2 cache has or loses by what runs
        at the same time, and those that it has lost whatever runs.

        Parameters
        ----------
        lines : float
            Bytes of the cache lines that a step touches: the cache keeps lines, some of whose
            sectors may be empty.
        """
        along_x, along_r = self._places
        sides = Side(along_r, tile.r), Side(along_x, tile.x)
        neighbours = Neighbours(self._axes, sides)
        total = lines * tile.programs * tile.steps
        near = far = 0.0
        for rest in rests:
            apart = neighbours.apart(rest.axis, rest.div) if rest.axis >= 0 else 0.0
            lost = share_lost(self._share_between(apart, tile) * total, self._room)
            near += rest.near * (1 - lost)
            far += rest.far * lost
        return near, far

    def between_warps(self, shared: float, moved: float, tile: KernelTile, threads: int) -> float:
        """Bytes of a step that are moved again since warps that store parts of one sector do so at
        different times: it is read once more, and written once more.

        Warps go through a loop along a row without waiting for each other, so they drift apart as
        programs do that loop over rows. H200, 283 programs with 474,322 elements of 2 bytes of each
        tensor, three of them read and two stored: by pieces of 4 bytes 1.5 times the bytes were
        read from memory and 1.15 times as many written, in 843 us; by vectors it took 384 us.

        Parameters
        ----------
        shared : float
            Bytes of a step that other warps store beside the own ones of each.
        moved : float
            Bytes that a step of a program loads and stores.
        threads : int
            Of a program.
        """
        device = self._device
        at_once = min(tile.programs, device.sm_count * (device.max_threads_per_sm // threads))
        apart = H200_CONSTANTS.drift * at_once * tile.steps * moved
        return 2 * shared * float(share_lost(apart, self._room))

    def _share_between(self, apart: float, tile: KernelTile) -> float:
        """Share of what a kernel loads and stores that it does between tiles so many positions
        apart.

        Programs that loop over rows do so at the same time. What the next step uses is near, and
        between more steps programs drift apart as they do between two. What another program uses it
        may do in a step as much later or earlier.
        """
        if not tile.over_rows:
            return min(apart / self._positions, 1.0)
        steps = apart / (tile.x * self._row)
        if steps <= 1:
            return 0.0
        later = steps % tile.steps
        if steps > tile.steps:
            later = min(later, tile.steps - later)
        return H200_CONSTANTS.drift * later / tile.steps
