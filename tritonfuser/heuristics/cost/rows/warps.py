"""The cache lines and sectors that one load or store of a warp touches, in a tile of rows."""

from __future__ import annotations

from ....device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, SECTOR_BYTES
from ...problem import Problem
from ..memory.footprint import TensorStrides, Tile, tile_over
from ..memory.traffic import FETCHED_BYTES, written_bytes
from .access import TileTensor

Warp = tuple[TensorStrides, int, int, int]
"""(strides, side, inner, outer): the strides of a tensor, the side that the lanes of a load run
along, and the positions of the warp along that side and along the other one."""


class RowWarps:
    """Cache lines and sectors of warps, found once for each tensor and shape of a warp's block."""

    def __init__(self, problem: Problem) -> None:
        self._axes, self._places = problem.axes, problem.places
        self._extents = max(problem.parallel, 1), max(problem.reduced, 1)
        self._lines: dict[Warp, float] = {}
        self._written: dict[Warp, float] = {}
        self._shared: dict[Warp, float] = {}

    def lines(self, touched: TileTensor, warp: Warp) -> float:
        """Cache lines (1 to 32) that a load of a warp touches."""
        found = self._lines.get(warp)
        if found is None:
            _, line_bytes = self._touched(warp, CACHE_LINE_BYTES)
            lines, gathered = line_bytes / CACHE_LINE_BYTES, touched.tensor.gathered
            if gathered is not None:
                lines = gathered.lines(self._tile(warp), lines)
            found = self._lines[warp] = min(lines, NVIDIA_WARP_SIZE)
        return found

    def written_bytes(self, warp: Warp) -> float:
        """Bytes of sectors that a store of a warp writes: see ``traffic.written_bytes``."""
        found = self._written.get(warp)
        if found is None:
            elements, sector_bytes = self._touched(warp, SECTOR_BYTES)
            found = written_bytes(elements * warp[0].item_bytes, sector_bytes)
            self._written[warp] = found
        return found

    def shared_bytes(self, touched: TileTensor, width: int) -> float:
        """Bytes of the pairs of sectors that a warp stores in part which other warps of the program
        store: its neighbours along the side that lanes run along. Of all warps, for a step, whose
        threads have ``width`` adjacent elements each."""
        block, _ = touched.blocks
        along = min(NVIDIA_WARP_SIZE * width, block)
        warp = touched.tensor.strides, touched.side, along, 1
        if warp not in self._shared:
            elements, pair_bytes = self._touched(warp, FETCHED_BYTES)
            own = (elements + touched.vector - 1) * touched.tensor.stream.item_bytes
            self._shared[warp] = max(pair_bytes - own, 0.0)
        pieces = touched.elements / along * (1 - along / block)
        return pieces * self._shared[warp] * touched.mean_per_step * touched.valid

    def padding(self, touched: TileTensor, warp: Warp) -> float:
        """Positions of a warp's block, over those of them that exist where rows or columns are
        shorter than the block: ``lines`` and ``written_bytes`` leave out what does not exist, and
        ``TileTensor.valid`` takes it off once more."""
        if not touched.tensor.is_full:
            return 1.0
        _, side, inner, outer = warp
        along, across = self._extents[side], self._extents[1 - side]
        return max(inner / along, 1.0) * max(outer / across, 1.0)

    def _touched(self, warp: Warp, granule: int) -> tuple[float, float]:
        return warp[0].touched(self._tile(warp), granule)

    def _tile(self, warp: Warp) -> Tile:
        _, side, inner, outer = warp
        places = (self._places[side], inner), (self._places[1 - side], outer)
        return tile_over(self._axes, places)


def warp_of(touched: TileTensor, width: int) -> Warp:
    """The block of a warp whose threads have ``width`` adjacent elements along the side."""
    block, across = touched.blocks
    along = NVIDIA_WARP_SIZE * width
    inner = min(along, block)
    return touched.tensor.strides, touched.side, inner, min(max(along // inner, 1), across)
