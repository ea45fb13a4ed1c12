"""Tensors that programs with rows load again, after the L2 cache evicted them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...problem import Problem
from ...streams import Stream
from ..memory.footprint import Side, tile_over
from ..memory.refetched import BroadcastLoad, L2Refetches, broadcast_tiles
from ..tiles import KernelTile
from .access import R, RowTensor, X


class RowRereads:
    """The bytes of broadcast tensors that are loaded again, found once for each tile."""

    def __init__(self, problem: Problem, tensors: Sequence[RowTensor]) -> None:
        self._problem, self._tensors = problem, tensors
        self._broadcast = list(self._broadcast_tensors())
        self._found: dict[KernelTile, dict[Stream, float]] = {}

    def bytes(self, tile: KernelTile) -> dict[Stream, float]:
        """Bytes of each tensor that all programs load again."""
        if not self._broadcast:
            return {}
        if tile not in self._found:
            self._found[tile] = dict(self._reread(tile))
        return self._found[tile]

    def _broadcast_tensors(self) -> Iterator[tuple[RowTensor, set[int]]]:
        """The loaded tensors that are broadcast along some axes of the rows, with their own axes.

        Not those that all rows share: all programs read them at the same time.
        """
        rows = {place for place in self._problem.places[X] if self._problem.axes[place] > 1}
        if len(rows) <= 1:  # a tensor runs along all of them, or along none
            return
        for tensor in self._tensors:
            has = {term.axis for term in tensor.stream.stride_terms}
            if not tensor.stream.is_store and rows & has and rows - has:
                yield tensor, has

    def _reread(self, tile: KernelTile) -> Iterator[tuple[Stream, float]]:
        axes, places = self._problem.axes, self._problem.places
        sides = Side(places[X], tile.x), Side(places[R], tile.r)
        positions = tile_over(axes, sides)
        refetches = L2Refetches(self._problem).in_order(sides[::-1])
        for tensor, has in self._broadcast:
            stream = tensor.stream
            tiles = broadcast_tiles(axes[: len(places[X])], has, positions)
            if tiles:
                elements, _ = tensor.strides.touched(positions)
                new = elements * stream.item_bytes
                each = min(new * tile.steps, stream.total_bytes) * stream.fresh_share * tensor.times
                yield stream, refetches.of_broadcasts([BroadcastLoad(each, tiles)]) * tile.programs
