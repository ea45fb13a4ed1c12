"""Loads and stores of a tile of rows: bytes, sectors, lines and addresses.

A tile has a side along x and one along the row. The threads of each load are neighbours along the
side that the tensor is contiguous along, or nearest, each with the elements of a vector. What a
tensor is, what a tile touches of it, and how the threads of a program load that are found apart:
params of one problem often have the same tile, and other warps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ....device import NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...params import KernelParams
from ...problem import Problem
from ...streams import Stream
from ..digits import index_instructions
from ..footprint import Side, tile_over
from ..found_again import L1Cache
from ..gathered import Gathered, most_running, running, together
from ..refetched import LostBytes, Reread, tiles_beside
from ..tiles import KernelTile
from ..traffic import Traffic, Windows
from .access import R, RowTensor, TileTensor, X, layout, running_side, slice_bytes
from .rests import RowRests
from .staged import staged_apart
from .step_bytes import StepBytes, TileTraffic
from .warps import RowWarps


class RowStreams:
    """The loads and stores of all tensors of a problem with rows, by params.

    Attributes
    ----------
    tensors : list of RowTensor
        The tensors, each of them once.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._running = problem, running_side(problem)
        self.tensors = [
            RowTensor(problem, stream, times, streams is problem.results)
            for streams in (problem.streams, problem.results)
            for stream, times in Counter(streams).items()
        ]
        self._tiles: dict[tuple[KernelTile, int], TileTraffic] = {}
        self._warps = RowWarps(problem)
        self._lost = LostBytes(problem)
        self._rests = RowRests(problem)
        self._shared = list(self._shared_by_some())
        digits = {digit for tensor in self.tensors for digit in tensor.digits}
        self._index_of_each = index_instructions(problem.axes, problem.places[R], digits)
        self._rereads: dict[KernelTile, dict[Stream, float]] = {}

    def traffic(self, params: KernelParams, tile: KernelTile, align: int, threads: int) -> Traffic:
        """Loads and stores of a step under params, whose tiles begin at ``align`` elements."""
        at_once = self._at_once(tile, align)
        through, others = staged_apart(self._problem, tile, at_once.touched)
        widths = [touched.width(threads) for touched in others]
        widest = layout(others, widths)
        accesses, lines, written = through.accesses, through.lines, through.written_bytes
        addresses = only_loads = slices = positions = 0.0
        windows: list[Windows] = []
        neighbours = [1, 1]
        for touched, width in zip(others, widths, strict=True):
            tensor, count = touched.tensor, touched.elements
            loads = touched.taken * max(count / width / NVIDIA_WARP_SIZE, 1.0)
            accesses += loads
            positions = max(positions, loads if tensor.digits else 0.0)
            apart = widest[touched.side] if touched.has_layout else width
            met = loads * touched.valid * self._warps.lines(touched, apart)
            lines += met
            if tensor.gathered:
                windows.append(self._windows(tensor.gathered, params, tile, met))
            elif tensor.of_all_rows:
                windows.append(self._found_again(touched, tile, at_once.loaded_bytes, met))
            if tensor.linear_vector:
                own = max(count / min(width, tensor.linear_vector) / threads, 1.0)
                addresses += own * touched.often
            stream = tensor.stream
            if stream.is_store:
                if not tensor.gathered:
                    written += loads * touched.valid * self._warps.written_bytes(touched, apart)
                continue
            only_loads += loads
            if width * stream.item_bytes == VECTOR_BYTES:
                slices = max(slices, slice_bytes(stream, count * touched.often))
            if width > neighbours[touched.side] and tensor.is_full:
                neighbours[touched.side] = width
        made = Traffic(
            loaded_bytes=at_once.loaded_bytes,
            fetched_bytes=at_once.fetched_bytes,
            again_bytes=at_once.again_bytes,
            stored_bytes=at_once.stored_bytes,
            sector_bytes=at_once.sector_bytes,
            lines=lines,
            accesses=accesses,
            extra_bytes=at_once.extra_bytes,
            partly_bytes=at_once.partly_bytes,
            addresses=addresses,
            neighbours=float(neighbours[self._running]),
            beside=float(neighbours[1 - self._running]),
            loads=only_loads,
            loaded_elements=at_once.loaded_elements,
            index_instructions=positions * self._index_of_each + through.index_instructions,
            written_bytes=written,
            windows=together(windows),
        )
        if params.prefetches:
            return made.with_a_step_again(tile.steps)
        is_pipelined = tile.loops and params.num_stages > 1
        return made.through_shared_memory(slices) if is_pipelined else made

    def _found_again(
        self, touched: TileTensor, tile: KernelTile, loaded: float, lines: float
    ) -> Windows:
        """What the L1 cache has of weights, which the rows before had too. A program loads all of
        its row before others ask for them."""
        stream = touched.tensor.stream
        cache = L1Cache(self._problem.device, loaded * tile.steps, tile.programs)
        found = cache.found_share(stream, stream.total_bytes)
        moved = touched.elements * stream.item_bytes * touched.taken
        return Windows(hit_bytes=found * moved, hit_lines=found * lines)

    def lost_bytes(self, params: KernelParams, tile: KernelTile, align: int, threads: int) -> float:
        """Bytes that a kernel moves since the L2 cache loses parts of sectors before their use,
        whatever runs at the same time."""
        at_once, lost = self._at_once(tile, align), 0.0
        if _warps_drift(params, tile):
            stores = [t for t in at_once.touched if t.side and _is_stored_whole(t.tensor)]
            shared = sum(self._warps.shared_bytes(t, t.width(threads)) for t in stores)
            moved = at_once.fetched_bytes + at_once.stored_bytes
            lost = self._rests.between_warps(shared, moved, tile, threads) if shared else 0.0
        return (at_once.lost_bytes + lost) * tile.programs * tile.steps * tile.passes

    def _at_once(self, tile: KernelTile, align: int) -> TileTraffic:
        key = tile, align
        found = self._tiles.get(key)
        if found is None:
            found = self._tiles[key] = StepBytes(self._problem, tile, align).of(
                self.tensors, self._rests
            )
        return found

    def _windows(
        self, tensor: Gathered, params: KernelParams, tile: KernelTile, lines: float
    ) -> Windows:
        (rows, row), axes = self._problem.places, self._problem.axes
        side, many = Side(rows, tile.x), most_running(self._problem, params.num_warps)
        step = tile_over(axes, (side, Side(row, tile.r)))
        whole = Side(row, max(self._problem.reduced, 1))
        return tensor.windows(step, running(axes, (side, whole), many), lines)

    def reread_bytes(self, tile: KernelTile) -> dict[Stream, float]:
        """Bytes of each tensor that all programs load again, and that the L2 cache has lost."""
        if not self._shared:
            return {}
        if tile not in self._rereads:
            self._rereads[tile] = dict(self._reread(tile))
        return self._rereads[tile]

    def _shared_by_some(self) -> Iterator[tuple[RowTensor, set[int]]]:
        """The loaded tensors that some rows have alike, with the axes that they run along. What all
        rows have alike is read by all programs at the same time."""
        rows = {place for place in self._problem.places[X] if self._problem.axes[place] > 1}
        for tensor in self.tensors:
            has = {term.axis for term in tensor.stream.stride_terms}
            if not tensor.stream.is_store and rows & has and rows - has:
                yield tensor, has

    def _reread(self, tile: KernelTile) -> Iterator[tuple[Stream, float]]:
        axes, places = self._problem.axes, self._problem.places
        sides = Side(places[X], tile.x), Side(places[R], tile.r)
        positions, lost = tile_over(axes, sides), self._lost.in_order(sides[::-1])
        for tensor, has in self._shared:
            stream = tensor.stream
            along = tiles_beside(axes[: len(places[X])], has, positions)
            if along:
                elements, _ = tensor.strides.touched(positions)
                new = elements * stream.item_bytes
                each = min(new * tile.steps, stream.total_bytes) * stream.fresh_share * tensor.times
                yield stream, lost.rereads([Reread(each, along)]) * tile.programs


def _warps_drift(params: KernelParams, tile: KernelTile) -> bool:
    """Whether warps do not meet in the steps of a loop along a row: only pipelines make them."""
    return tile.loops and not tile.over_rows and params.num_stages == 1


def _is_stored_whole(tensor: RowTensor) -> bool:
    """Whether all positions are stored, at no indices of another tensor."""
    return tensor.stream.is_store and tensor.is_full and tensor.gathered is None
