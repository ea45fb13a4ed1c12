"""Sectors that a tile of rows uses in part, while another tile uses the rest of them.

If the other tile runs at the same time, the rest hits the L2 cache, unless what all running tiles
load exceeds the cache (``kernel_time``). If the order of programs, or of the steps of a program,
puts more bytes between the two tiles than the cache holds, the rest is fetched once more, and a
sector that is stored in part is read and written once more.

H200: softmax over 3 positions, whose results are 6 bytes long and 266 KB from each other, moved
1,975 MB of memory for 430 MB of tensors where a reuse distance of 12 MB was between the tiles of a
sector, and 438 MB where these were neighbouring programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...problem import Problem
from ..constants import H200_CONSTANTS, evicted_share, l2_retention_bytes
from ..memory.footprint import Side, TensorStrides, Tile
from ..memory.refetched import ProgramOrder
from ..tiles import KernelTile


class PartialSectors(NamedTuple):
    """The sectors of one tensor that a step uses in part.

    Attributes
    ----------
    near_bytes : float
        Bytes that are moved beside those of the step if another tile that runs at the same time
        uses the rest, and finds it evicted.
    far_bytes : float
        The same if the other tile runs later.
    axis, div : int
        The stride term along which the tensor goes on behind the tile. An axis of -1 if the tile
        has all of the tensor.
    """

    near_bytes: float
    far_bytes: float
    axis: int
    div: int


def partial_sectors_of(
    strides: TensorStrides, tile: Tile, near_bytes: float, far_bytes: float
) -> PartialSectors:
    """The partially used sectors of a tile, with the direction in which the tensor goes on."""
    axis, div = strides.first_partial_term(tile) or (-1, 1)
    return PartialSectors(near_bytes, far_bytes, axis, div)


class PartialSectorBytes:
    """Bytes that kernels of a problem with rows move for partially used sectors, by tile."""

    def __init__(self, problem: Problem) -> None:
        self._axes, self._places = problem.axes, problem.places
        self._row = max(problem.reduced, 1)
        self._positions = max(problem.parallel, 1) * self._row
        self._device = problem.device
        self._capacity = l2_retention_bytes(problem.device, H200_CONSTANTS)

    def of_step(
        self, tensors: Iterable[PartialSectors], tile: KernelTile, line_bytes: float
    ) -> tuple[float, float]:
        """(near, far) bytes that a step moves beside its own.

        Near bytes hit the L2 cache or not, depending on what runs at the same time. Far bytes miss
        it whatever runs.

        Parameters
        ----------
        line_bytes : float
            Bytes of the cache lines that a step touches. The cache allocates whole lines, some of
            whose sectors stay empty.
        """
        along_x, along_r = self._places
        order = ProgramOrder(self._axes, (Side(along_r, tile.r), Side(along_x, tile.x)))
        total = line_bytes * tile.programs * tile.steps
        near = far = 0.0
        for each in tensors:
            distance = order.distance(each.axis, each.div) if each.axis >= 0 else 0.0
            reuse_distance = self._share_between(distance, tile) * total
            evicted = evicted_share(reuse_distance, self._capacity)
            near += each.near_bytes * (1 - evicted)
            far += each.far_bytes * evicted
        return near, far

    def between_warps(
        self, shared: float, step_bytes: float, tile: KernelTile, threads: int
    ) -> float:
        """Bytes that a step moves again because warps store parts of one sector at different times:
        the sector is read once more, and written once more.

        Warps go through a loop along a row without waiting for each other, so they drift apart as
        programs do that loop over rows. H200, 283 programs with 474,322 elements of 2 bytes of each
        tensor, three of them read and two stored: by pieces of 4 bytes 1.5 times the bytes were
        read from memory and 1.15 times as many written, in 843 us; by vectors it took 384 us.

        Parameters
        ----------
        shared : float
            Bytes of a step in sectors of one warp that other warps store.
        step_bytes : float
            Bytes that a step of a program loads and stores.
        threads : int
            Of a program.
        """
        device = self._device
        running = min(tile.programs, device.sm_count * (device.max_threads_per_sm // threads))
        reuse_distance = H200_CONSTANTS.drift * running * tile.steps * step_bytes
        return 2 * shared * float(evicted_share(reuse_distance, self._capacity))

    def _share_between(self, distance: float, tile: KernelTile) -> float:
        """Share of a kernel's bytes that it moves between two tiles so many positions from each
        other.

        Programs that loop over rows run at the same time, so the distance counts in steps: 0 for
        the same step or the next one. Between later steps programs drift apart. If another program
        has the other tile, it may be as many steps earlier as later.
        """
        if not tile.over_rows:
            return min(distance / self._positions, 1.0)
        steps = distance / (tile.x * self._row)
        if steps <= 1:
            return 0.0
        later = steps % tile.steps
        if steps > tile.steps:
            later = min(later, tile.steps - later)
        return H200_CONSTANTS.drift * later / tile.steps
