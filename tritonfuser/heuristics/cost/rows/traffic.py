"""The traffic of a tile of rows: bytes, sectors, cache lines and addresses.

A tile has a side along x and one along the row. The lanes of each load run along the side that the
tensor is contiguous along, or nearest, and each thread has the elements of a vector. Facts of a
tensor, of its tile, and of the loads of its threads are found separately and cached: many params of
a problem have the same tile, and different warps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ....device import NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...params import KernelParams
from ...problem import Problem
from ...streams import Stream
from ..digits import index_instructions
from ..footprint import Side, tile_over
from ..gathered import Gathered, concurrent_tile, max_resident_programs, sum_windows
from ..l1_reuse import L1Cache
from ..refetched import BroadcastLoad, L2Refetches, broadcast_tiles
from ..tiles import KernelTile
from ..traffic import Traffic, Windows
from .access import R, RowTensor, TileTensor, X, layout, main_side, slice_bytes
from .partial_sectors import PartialSectorBytes
from .staged import StagedTraffic, split_staged
from .step_bytes import TileTraffic, TileTrafficSum
from .warps import RowWarps


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
            for stream, times in Counter(streams).items()
        ]
        self._tiles: dict[tuple[KernelTile, int], TileTraffic] = {}
        self._warps = RowWarps(problem)
        self._refetches = L2Refetches(problem)
        self._partial_sectors = PartialSectorBytes(problem)
        self._broadcast = list(self._broadcast_tensors())
        digits = {digit for tensor in self.tensors for digit in tensor.digits}
        self._index_of_each = index_instructions(problem.axes, problem.places[R], digits)
        self._rereads: dict[KernelTile, dict[Stream, float]] = {}

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
        widths = [touched.width(threads) for touched in others]
        found = self._of_threads(params, tile, step, staged, others, widths)
        found = found._replace(addresses=_addresses(others, widths, threads))
        if params.prefetches:
            return found.prefetched(tile.steps)
        is_pipelined = tile.loops and params.num_stages > 1
        return found.pipelined(_most_slice_bytes(others, widths)) if is_pipelined else found

    def _of_threads(
        self,
        params: KernelParams,
        tile: KernelTile,
        step: TileTraffic,
        staged: StagedTraffic,
        others: Sequence[TileTensor],
        widths: Sequence[int],
    ) -> Traffic:
        """The traffic by the loads and stores of warps, without addresses.

        Parameters
        ----------
        others : sequence of TileTensor
            The tensors that are not staged.
        widths : sequence of int
            For each of them, the elements of one load of a thread.
        """
        widest = layout(others, widths)
        accesses, lines, written = staged.accesses, staged.lines, staged.written_bytes
        loads = positions = 0.0
        windows: list[Windows] = []
        vectors = [1, 1]
        for touched, width in zip(others, widths, strict=True):
            tensor, stream = touched.tensor, touched.tensor.stream
            warps = touched.elements / width / NVIDIA_WARP_SIZE
            accessing = touched.mean_per_step * max(warps, 1.0)
            instructions = accessing * tensor.issued
            accesses += instructions
            positions = max(positions, instructions if tensor.digits else 0.0)
            adjacent = widest[touched.side] if touched.has_layout else width
            new_lines = accessing * touched.valid * self._warps.lines(touched, adjacent)
            lines += new_lines
            if tensor.gathered:
                windows.append(self._windows(tensor.gathered, params, tile, new_lines))
            elif tensor.is_broadcast_over_rows:
                windows.append(self._l1_hits(touched, tile, step.moved.loaded_bytes, new_lines))
            if not stream.is_store:
                loads += instructions
                if width > vectors[touched.side] and tensor.is_full:
                    vectors[touched.side] = width
            elif not tensor.gathered:
                sector_bytes = self._warps.written_bytes(touched, adjacent)
                written += accessing * touched.valid * sector_bytes
        return Traffic(
            moved=step.moved,
            windows=sum_windows(windows),
            lines=lines,
            accesses=accesses,
            inner_vector=float(vectors[self._main_side]),
            cross_vector=float(vectors[1 - self._main_side]),
            loads=loads,
            loaded_elements=step.loaded_elements,
            index_instructions=positions * self._index_of_each + staged.index_instructions,
            written_bytes=written,
        )

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

    def _windows(
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
        if not self._broadcast:
            return {}
        if tile not in self._rereads:
            self._rereads[tile] = dict(self._reread(tile))
        return self._rereads[tile]

    def _broadcast_tensors(self) -> Iterator[tuple[RowTensor, set[int]]]:
        """The loaded tensors that are broadcast along some axes of the rows, with their own axes.

        Not those that all rows share: all programs read them at the same time.
        """
        rows = {place for place in self._problem.places[X] if self._problem.axes[place] > 1}
        for tensor in self.tensors:
            has = {term.axis for term in tensor.stream.stride_terms}
            if not tensor.stream.is_store and rows & has and rows - has:
                yield tensor, has

    def _reread(self, tile: KernelTile) -> Iterator[tuple[Stream, float]]:
        axes, places = self._problem.axes, self._problem.places
        sides = Side(places[X], tile.x), Side(places[R], tile.r)
        positions, refetches = tile_over(axes, sides), self._refetches.in_order(sides[::-1])
        for tensor, has in self._broadcast:
            stream = tensor.stream
            tiles = broadcast_tiles(axes[: len(places[X])], has, positions)
            if tiles:
                elements, _ = tensor.strides.touched(positions)
                new = elements * stream.item_bytes
                each = min(new * tile.steps, stream.total_bytes) * stream.fresh_share * tensor.times
                yield stream, refetches.of_broadcasts([BroadcastLoad(each, tiles)]) * tile.programs


def _addresses(others: Sequence[TileTensor], widths: Sequence[int], threads: int) -> float:
    """Addresses of a thread that are no linear functions of its positions."""
    found = 0.0
    for touched, width in zip(others, widths, strict=True):
        vector = touched.tensor.nonlinear_vector
        if vector:
            found += max(touched.elements / min(width, vector) / threads, 1.0) * touched.per_step
    return found


def _most_slice_bytes(others: Sequence[TileTensor], widths: Sequence[int]) -> float:
    """``slice_bytes`` of the tensor that has most of them, of those loaded by whole vectors."""
    found = 0.0
    for touched, width in zip(others, widths, strict=True):
        stream = touched.tensor.stream
        if not stream.is_store and width * stream.item_bytes == VECTOR_BYTES:
            found = max(found, slice_bytes(stream, touched.elements * touched.per_step))
    return found


def _warps_drift(params: KernelParams, tile: KernelTile) -> bool:
    """Whether warps pass through a loop along a row without barriers: loops with a pipeline have
    a barrier in each step."""
    return tile.loops and not tile.over_rows and params.num_stages == 1


def _stores_all_positions(tensor: RowTensor) -> bool:
    """Whether a tensor is stored at every position, and not at indices of another tensor."""
    return tensor.stream.is_store and tensor.is_full and tensor.gathered is None
