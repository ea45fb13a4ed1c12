"""What all threads of a program load and store together in a step, whatever each has of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ....device import CACHE_LINE_BYTES
from ...problem import Problem
from ...streams import Stream
from ..footprint import Side, TensorStrides, Tile, tile_over
from ..tiles import KernelTile
from ..traffic import FETCHED_BYTES, partly_written_bytes
from .access import R, RowTensor, TileTensor, X, access, is_skewed
from .rests import RowRest, RowRests, row_rest


class TileTraffic(NamedTuple):
    """What all threads of a program load and store together in a step, and of which tensors."""

    loaded_bytes: float
    fetched_bytes: float
    again_bytes: float
    stored_bytes: float
    sector_bytes: float
    partly_bytes: float
    extra_bytes: float
    lost_bytes: float
    loaded_elements: float
    touched: list[TileTensor]


class StepBytes:
    """The bytes that a tile touches, added up over tensors."""

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
        # Positions behind the end are counted like others: what is valid is known of all tiles.
        self._more = max(tile.x / rows, 1.0), max(tile.r / row, 1.0)
        self._loaded = self._fetched = self._again = self._stored = self._partly = 0.0
        self._sectors = self._elements = 0.0
        self._touched: list[TileTensor] = []
        self._rests: list[RowRest] = []
        self._met_by: list[tuple[TensorStrides, Tile, int, float]] = []

    def of(self, tensors: Iterable[RowTensor], rests: RowRests) -> TileTraffic:
        """The bytes of all tensors of the problem."""
        for tensor in tensors:
            self._add(tensor)
        lines = _line_bytes(self._met_by) if self._rests else 0.0
        extra, lost = rests.of_step(self._rests, self._tile, lines) if self._rests else (0.0, 0.0)
        return TileTraffic(
            self._loaded,
            self._fetched,
            self._again,
            self._stored,
            self._sectors,
            self._partly,
            extra,
            lost,
            self._elements,
            self._touched,
        )

    def _add(self, tensor: RowTensor) -> None:
        stream, tile = tensor.stream, self._tile
        count = (tile.x if stream.along_x else 1) * (tile.r if stream.along_r else 1)
        is_before = _is_before(stream, tile)
        often = tensor.times / _steps_without(tensor, tile, is_before)
        in_last_pass = stream.is_in_last_pass and not is_before
        taken = often * (1 / tile.passes) if in_last_pass else often
        skewed = is_skewed(stream, self._align)
        self._add_bytes(tensor, count, often, taken, skewed)
        self._touched.append(self._tile_tensor(tensor, count, often, taken, skewed))

    def _add_bytes(
        self, tensor: RowTensor, count: int, often: float, taken: float, skewed: bool
    ) -> None:
        stream = tensor.stream
        more_x = self._more[X] if stream.along_x else 1.0
        more_r = self._more[R] if stream.along_r else 1.0
        scale = more_x * more_r * taken
        moved = count * stream.item_bytes
        met, times = (self._one_row, self._tile.x) if skewed else (self._positions, 1)
        distinct, sector_bytes = tensor.strides.touched(met)
        new, sector_bytes = times * distinct * stream.item_bytes, times * sector_bytes
        if stream.is_store:
            self._stored += moved * taken
            if not tensor.gathered:
                self._partly += partly_written_bytes(new, sector_bytes) * scale
        else:
            scale *= stream.fresh_share
            self._elements += count * taken
            self._loaded += moved * often
            self._fetched += new * scale
            self._again += 0.0 if stream.is_late else new * scale
        self._sectors += sector_bytes * scale
        if stream.along_x:
            scale /= _steps_of_a_row(tensor, self._tile)
            self._met_by.append((tensor.strides, met, times, scale))
            self._add_rest(tensor, met, times, new, sector_bytes, scale)

    def _add_rest(
        self,
        tensor: RowTensor,
        met: Tile,
        times: int,
        new: float,
        sector_bytes: float,
        scale: float,
    ) -> None:
        """What lies in the sectors of a tensor beside the bytes that the step asks for."""
        pair_bytes = times * tensor.strides.touched(met, FETCHED_BYTES)[1]
        beside = max(pair_bytes - new * (1 + tensor.unused), 0.0)
        if not beside:
            return
        near, far = beside, beside
        if tensor.stream.is_store:  # what is stored in part is read too
            near, far = 2 * beside, 2 * sector_bytes - new
        self._rests.append(row_rest(tensor.strides, met, near * scale, far * scale))

    def _tile_tensor(
        self, tensor: RowTensor, count: int, often: float, taken: float, skewed: bool
    ) -> TileTensor:
        """What threads share out of a tensor."""
        stream, tile = tensor.stream, self._tile
        same = max(min(stream.r_same, tile.r), 1) if stream.along_r else 1
        side, vector = access(tensor, tile, self._align)
        blocks = (1 if skewed else tile.x), tile.r
        shaped = not stream.is_store and stream.along_r and (tensor.is_full or tile.x == 1)
        return TileTensor(
            tensor=tensor,
            elements=count // (same & -same),
            valid=self._valid if tensor.is_full else 1.0,
            often=often,
            taken=taken,
            has_layout=shaped,
            side=side,
            vector=vector,
            blocks=blocks[::-1] if side else blocks,
        )


def _line_bytes(met_by: Iterable[tuple[TensorStrides, Tile, int, float]]) -> float:
    """Bytes of the cache lines that a step touches: of each tensor by positions, which it has so
    many times, and which count by a share."""
    found = 0.0
    for strides, met, times, share in met_by:
        found += times * strides.touched(met, CACHE_LINE_BYTES)[1] * share
    return found


def _steps_without(tensor: RowTensor, tile: KernelTile, is_before: bool) -> float:
    """The steps, or the steps of a pass, of which one loads or stores a tensor."""
    if is_before:
        return tile.steps * tile.passes
    ends = tensor.is_result and not tile.over_rows
    return tile.steps if ends else 1


def _steps_of_a_row(tensor: RowTensor, tile: KernelTile) -> float:
    """The steps that load the same elements of a tensor, since it does not run along their loop:
    the first of them fetches these."""
    is_same = not tensor.stream.along_r and not tile.over_rows and not tensor.is_result
    return tile.steps * tile.passes if is_same else 1


def _is_before(stream: Stream, tile: KernelTile) -> bool:
    """Whether a tensor is loaded before a loop over rows: all of them share it."""
    return tile.over_rows and not stream.along_x and not stream.is_store
