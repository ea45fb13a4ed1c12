"""The bytes of one step of a program, whichever thread loads or stores them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ....device import CACHE_LINE_BYTES
from ...problem import Problem
from ...streams import Stream
from ..memory.footprint import Side, TensorStrides, Tile, tile_over
from ..memory.traffic import FETCHED_BYTES, StepBytes, partial_sector_bytes_of
from ..tiles import KernelTile
from .access import R, RowTensor, TileTensor, X, access, is_skewed
from .partial_sectors import PartialSectorBytes, PartialSectors, partial_sectors_of


class TileTraffic(NamedTuple):
    """The bytes of one step of a program, and the tile of each tensor.

    Attributes
    ----------
    moved : StepBytes
        Its bytes.
    far_bytes : float
        Bytes that are moved again for partially used sectors, whatever runs at the same time.
    loaded_elements : float
        Elements of all tensors that it loads.
    tensors : list of TileTensor
        The tile of each tensor.
    """

    moved: StepBytes
    far_bytes: float
    loaded_elements: float
    tensors: list[TileTensor]


class _Footprint(NamedTuple):
    """The memory of a tensor that a step touches.

    Attributes
    ----------
    tile : tuple of float
        Positions along each axis.
    times : int
        How often the tensor has such a footprint in the step: once, or for each row of the tile
        where rows are skewed (``is_skewed``).
    new_bytes : float
        Bytes of its distinct elements.
    sector_bytes : float
        Bytes of their sectors.
    """

    tile: Tile
    times: int
    new_bytes: float
    sector_bytes: float


class TileTrafficSum:
    """The ``TileTraffic`` of a tile, added up over tensors."""

    def __init__(self, problem: Problem, tile: KernelTile, align: int) -> None:
        places, (rows, row) = problem.places, (max(problem.parallel, 1), max(problem.reduced, 1))
        sides = Side(places[X], tile.x), Side(places[R], tile.r)
        self._tile, self._align = tile, align
        self._positions = tile_over(problem.axes, sides)
        self._one_row = self._positions
        if align > 1:
            self._one_row = tile_over(problem.axes, (Side(places[X], 1), sides[R]))
        all_positions = tile.programs * tile.steps * tile.x * tile.r
        self._valid = min(problem.parallel * row / max(all_positions, 1), 1.0)
        # Positions behind the end count like others: ``valid`` takes them off, for all tiles alike.
        self._padding = max(tile.x / rows, 1.0), max(tile.r / row, 1.0)
        self._loaded = self._fetched = self._reloaded = self._stored = self._partial = 0.0
        self._sectors = self._elements = 0.0
        self._tensors: list[TileTensor] = []
        self._partial_sectors: list[PartialSectors] = []
        self._footprints: list[tuple[TensorStrides, Tile, float]] = []

    def of(self, tensors: Iterable[RowTensor], partial: PartialSectorBytes) -> TileTraffic:
        """The bytes of all tensors of the problem."""
        for tensor in tensors:
            self._add(tensor)
        near = far = 0.0
        if self._partial_sectors:
            line_bytes = _line_bytes(self._footprints)
            near, far = partial.of_step(self._partial_sectors, self._tile, line_bytes)
        moved = StepBytes(
            self._loaded,
            self._fetched,
            self._reloaded,
            self._stored,
            self._sectors,
            self._partial,
            near,
        )
        return TileTraffic(moved, far, self._elements, self._tensors)

    def _add(self, tensor: RowTensor) -> None:
        stream, tile = tensor.stream, self._tile
        count = (tile.x if stream.along_x else 1) * (tile.r if stream.along_r else 1)
        is_before = _is_before_loop(stream, tile)
        per_step = tensor.times / _steps_per_access(tensor, tile, is_before)
        in_last_pass = stream.is_in_last_pass and not is_before
        mean_per_step = per_step * (1 / tile.passes) if in_last_pass else per_step
        skewed = is_skewed(stream, self._align)
        self._add_bytes(tensor, count, per_step, mean_per_step, skewed)
        self._tensors.append(self._tile_tensor(tensor, count, per_step, mean_per_step, skewed))

    def _add_bytes(
        self, tensor: RowTensor, count: int, per_step: float, mean_per_step: float, skewed: bool
    ) -> None:
        stream = tensor.stream
        padding_x = self._padding[X] if stream.along_x else 1.0
        padding_r = self._padding[R] if stream.along_r else 1.0
        scale = padding_x * padding_r * mean_per_step
        moved = count * stream.item_bytes
        found = self._footprint(tensor, skewed)
        if stream.is_store:
            self._stored += moved * mean_per_step
            if not tensor.gathered:
                partial = partial_sector_bytes_of(found.new_bytes, found.sector_bytes)
                self._partial += partial * scale
        else:
            scale *= stream.fresh_share
            self._elements += count * mean_per_step * tensor.issued
            self._loaded += moved * per_step
            self._fetched += found.new_bytes * scale
            self._reloaded += 0.0 if stream.is_late else found.new_bytes * scale
        self._sectors += found.sector_bytes * scale
        if stream.along_x:
            scale /= _steps_with_same_elements(tensor, self._tile)
            self._footprints.append((tensor.strides, found.tile, found.times * scale))
            self._add_partial_sectors(tensor, found, scale)

    def _footprint(self, tensor: RowTensor, skewed: bool) -> _Footprint:
        tile, times = (self._one_row, self._tile.x) if skewed else (self._positions, 1)
        distinct, sector_bytes = tensor.strides.touched(tile)
        new_bytes = times * distinct * tensor.stream.item_bytes
        return _Footprint(tile, times, new_bytes, times * sector_bytes)

    def _add_partial_sectors(self, tensor: RowTensor, found: _Footprint, scale: float) -> None:
        """Adds the sectors whose rest the step does not use."""
        pair_bytes = found.times * tensor.strides.touched(found.tile, FETCHED_BYTES)[1]
        unused = max(pair_bytes - found.new_bytes * (1 + tensor.overfetch), 0.0)
        if not unused:
            return
        near, far = unused, unused
        if tensor.stream.is_store:  # a sector that is stored in part is read too
            near, far = 2 * unused, 2 * found.sector_bytes - found.new_bytes
        self._partial_sectors.append(
            partial_sectors_of(tensor.strides, found.tile, near * scale, far * scale)
        )

    def _tile_tensor(
        self, tensor: RowTensor, count: int, per_step: float, mean_per_step: float, skewed: bool
    ) -> TileTensor:
        """What the threads of a program divide among them."""
        stream, tile = tensor.stream, self._tile
        same = max(min(stream.r_same, tile.r), 1) if stream.along_r else 1
        side, vector = access(tensor, tile, self._align)
        blocks = (1 if skewed else tile.x), tile.r
        shaped = not stream.is_store and stream.along_r and (tensor.is_full or tile.x == 1)
        return TileTensor(
            tensor,
            count // (same & -same),
            self._valid if tensor.is_full else 1.0,
            per_step,
            mean_per_step,
            shaped,
            side,
            vector,
            blocks[::-1] if side else blocks,
        )


def _line_bytes(footprints: Iterable[tuple[TensorStrides, Tile, float]]) -> float:
    """Bytes of the cache lines of footprints, each of which counts by its weight."""
    found = 0.0
    for strides, tile, weight in footprints:
        found += strides.touched(tile, CACHE_LINE_BYTES)[1] * weight
    return found


def _steps_per_access(tensor: RowTensor, tile: KernelTile, is_before: bool) -> float:
    """Steps of a pass, or of all passes, in one of which a tensor is loaded or stored."""
    if is_before:
        return tile.steps * tile.passes
    ends = tensor.is_result and not tile.over_rows
    return tile.steps if ends else 1


def _steps_with_same_elements(tensor: RowTensor, tile: KernelTile) -> float:
    """Steps that load the same elements of a tensor, because it does not run along their loop: the
    first of them fetches these, the others hit caches."""
    is_same = not tensor.stream.along_r and not tile.over_rows and not tensor.is_result
    return tile.steps * tile.passes if is_same else 1


def _is_before_loop(stream: Stream, tile: KernelTile) -> bool:
    """Whether a tensor is loaded once, before a loop over rows: all rows share it."""
    return tile.over_rows and not stream.along_x and not stream.is_store
