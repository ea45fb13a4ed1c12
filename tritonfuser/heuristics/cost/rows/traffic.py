"""The traffic of a tile of rows: bytes, sectors, cache lines and addresses.

A tile has a side along x and one along the row. The lanes of each load run along the side that the
tensor is contiguous along, or nearest, and each thread has the elements of a vector. Facts of a
tensor, of its tile, and of the loads of its threads are found separately and cached: many params of
a problem have the same tile, and different warps.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....device import NVIDIA_WARP_SIZE
from ...params import KernelParams
from ...problem import Problem
from ...streams import Stream, counted
from ..digits import index_instructions
from ..memory.footprint import Side, tile_over
from ..memory.gathered import Gathered, concurrent_tile, max_resident_programs, sum_windows
from ..memory.l1_reuse import L1Cache
from ..memory.traffic import Traffic, Windows
from ..tiles import KernelTile
from .access import R, RowTensor, TileTensor, layout, main_side
from .partial_sectors import PartialSectorBytes
from .rereads import RowRereads
from .staged import split_staged
from .step_bytes import TileTraffic, TileTrafficSum
from .warp_accesses import WarpAccesses, added_up
from .warps import RowWarps, warp_of


class RowStreams:
    """The loads and stores of all tensors of a problem with rows, by params.

    Attributes
    ----------
    tensors : list of RowTensor
        The tensors. Those with equal facts are one entry.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._main_side = problem, main_side(problem)
        self.tensors = [
            RowTensor(problem, stream, times, streams is problem.results)
            for streams in (problem.streams, problem.results)
            for stream, times in counted(streams).items()
        ]
        self._tiles: dict[tuple[KernelTile, int], TileTraffic] = {}
        self._warps = RowWarps(problem)
        self._partial_sectors = PartialSectorBytes(problem)
        digits = {digit for tensor in self.tensors for digit in tensor.digits}
        self._index_of_each = index_instructions(problem.axes, problem.places[R], digits)
        self._rereads = RowRereads(problem, self.tensors)

    def traffic(self, params: KernelParams, tile: KernelTile, align: int, threads: int) -> Traffic:
        """The traffic of a step.

        Parameters
        ----------
        align : int
            Elements that the beginning of the tile of every row is a multiple of.
        threads : int
            Of a program.
        """
        step = self._of_step(tile, align)
        staged, others = split_staged(self._problem, tile, step.tensors)
        accesses = self._accesses(others, threads)
        sums = added_up(accesses, staged, threads)
        found = Traffic(
            moved=step.moved,
            windows=self._windows(accesses, params, tile, step.moved.loaded_bytes),
            lines=sums.lines,
            accesses=sums.instructions,
            addresses=sums.addresses,
            inner_vector=float(sums.widest[self._main_side]),
            cross_vector=float(sums.widest[1 - self._main_side]),
            loads=sums.loads,
            loaded_elements=step.loaded_elements,
            index_instructions=sums.indexed * self._index_of_each + staged.index_instructions,
            written_bytes=sums.written_bytes,
        )
        if params.prefetches:
            return found.prefetched(tile.steps)
        if tile.loops and params.num_stages > 1:
            return found.pipelined(max((each.slice_bytes for each in accesses), default=0.0))
        return found

    def _accesses(self, tensors: Sequence[TileTensor], threads: int) -> list[WarpAccesses]:
        """The loads and stores of tensors that are not staged."""
        widths = [touched.width(threads) for touched in tensors]
        widest = layout(tensors, widths)
        return [
            self._of_tensor(touched, width, widest[touched.side] if touched.has_layout else width)
            for touched, width in zip(tensors, widths, strict=True)
        ]

    def _of_tensor(self, touched: TileTensor, width: int, adjacent: int) -> WarpAccesses:
        """The loads or stores of a tensor, by threads with ``adjacent`` adjacent elements."""
        warps = touched.elements / width / NVIDIA_WARP_SIZE
        accessing, warp = touched.mean_per_step * max(warps, 1.0), warp_of(touched, adjacent)
        valid, written = touched.valid * self._warps.padding(touched, warp), 0.0
        if touched.tensor.stream.is_store and not touched.tensor.gathered:
            written = accessing * valid * self._warps.written_bytes(warp)
        lines = accessing * valid * self._warps.lines(touched, warp)
        instructions = accessing * touched.tensor.issued
        return WarpAccesses(touched, width, instructions, lines, written)

    def _windows(
        self,
        accesses: Sequence[WarpAccesses],
        params: KernelParams,
        tile: KernelTile,
        loaded_bytes: float,
    ) -> Windows:
        """The reads that may hit caches: gathers, and tensors that all rows share."""
        found = []
        for each in accesses:
            tensor = each.touched.tensor
            if tensor.gathered:
                found.append(self._of_gather(tensor.gathered, params, tile, each.lines))
            elif tensor.is_broadcast_over_rows:
                found.append(self._l1_hits(each.touched, tile, loaded_bytes, each.lines))
        return sum_windows(found)

    def _l1_hits(
        self, touched: TileTensor, tile: KernelTile, loaded_bytes: float, lines: float
    ) -> Windows:
        """L1 hits of a tensor that all rows share: a program loads all of it for its rows, and the
        next program of the multiprocessor loads it again."""
        stream = touched.tensor.stream
        cache = L1Cache(self._problem.device, loaded_bytes * tile.steps, tile.programs)
        hit_rate = cache.hit_rate(stream, stream.total_bytes)
        moved = touched.elements * stream.item_bytes * touched.mean_per_step
        return Windows(hit_bytes=hit_rate * moved, hit_lines=hit_rate * lines)

    def sector_refetch_bytes(
        self, params: KernelParams, tile: KernelTile, align: int, threads: int
    ) -> float:
        """Bytes that the kernel moves again because the L2 cache evicts the rest of partially used
        sectors before its use, whatever runs at the same time."""
        step, between_warps = self._of_step(tile, align), 0.0
        if _warps_drift(params, tile):
            stores = [t for t in step.tensors if t.side and _stores_all_positions(t.tensor)]
            shared = sum(self._warps.shared_bytes(t, t.width(threads)) for t in stores)
            moved = step.moved.fetched_bytes + step.moved.stored_bytes
            if shared:
                between_warps = self._partial_sectors.between_warps(shared, moved, tile, threads)
        return (step.far_bytes + between_warps) * tile.programs * tile.steps * tile.passes

    def _of_step(self, tile: KernelTile, align: int) -> TileTraffic:
        """The bytes of a step, cached."""
        key = tile, align
        found = self._tiles.get(key)
        if found is None:
            step = TileTrafficSum(self._problem, tile, align)
            found = self._tiles[key] = step.of(self.tensors, self._partial_sectors)
        return found

    def _of_gather(
        self, tensor: Gathered, params: KernelParams, tile: KernelTile, lines: float
    ) -> Windows:
        """The windows of a gather, where programs that run at a time have whole rows open."""
        (rows, row), axes = self._problem.places, self._problem.axes
        side, programs = Side(rows, tile.x), max_resident_programs(self._problem, params.num_warps)
        step = tile_over(axes, (side, Side(row, tile.r)))
        whole_row = Side(row, max(self._problem.reduced, 1))
        return tensor.windows(step, concurrent_tile(axes, (side, whole_row), programs), lines)

    def reread_bytes(self, tile: KernelTile) -> dict[Stream, float]:
        """Bytes of each tensor that all programs load again, after the L2 cache evicted them."""
        return self._rereads.bytes(tile)


def _warps_drift(params: KernelParams, tile: KernelTile) -> bool:
    """Whether warps pass through a loop along a row without barriers: loops with a pipeline have
    a barrier in each step."""
    return tile.loops and not tile.over_rows and params.num_stages == 1


def _stores_all_positions(tensor: RowTensor) -> bool:
    """Whether a tensor is stored at every position, and not at indices of another tensor."""
    return tensor.stream.is_store and tensor.is_full and tensor.gathered is None
