"""Loads and stores of a tile of rows: bytes, sectors, lines and addresses.

A tile has a side along x and one along the row. The threads of each load are neighbours along the
side that the tensor is contiguous along, or nearest, each with the elements of a vector. What a
tensor is, what a tile touches of it, and how the threads of a program load that are found apart:
params of one problem often have the same tile, and other warps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, VECTOR_BYTES
from ..params import KernelParams
from ..problem import Problem
from ..streams import Stream
from .footprint import Side, TensorStrides, Tile, run_along, tile_over, touched_bytes, warp_bytes
from .tiles import KernelTile
from .traffic import FETCHED_BYTES, Traffic, is_linear

X, R = 0, 1
"""The sides of a tile."""


class _Tensor(NamedTuple):
    """A tensor, as far as no params change it.

    Attributes
    ----------
    times : int
        Loads or stores that are alike.
    is_full : bool
        It runs over both axes, where there are two.
    vectors : tuple of int
        Elements of the widest vector along each side, wherever tiles begin.
    nearer : int
        The side whose neighbours are nearer in memory.
    linear_vector : int
        Elements of a vector that its size is a multiple of, if its elements have addresses of their
        own: it is no linear function of the positions. 0 if they are offsets from one another.
    """

    stream: Stream
    times: int
    strides: TensorStrides
    is_full: bool
    vectors: tuple[int, int]
    nearer: int
    linear_vector: int


class _Touched(NamedTuple):
    """What a tile touches of a tensor.

    Attributes
    ----------
    elements : int
        Those that the threads of a program load, those that neighbours share once.
    valid : float
        Share of the elements of all tiles that exist.
    """

    tensor: _Tensor
    elements: int
    valid: float


class _TileTraffic(NamedTuple):
    """What all threads of a program load and store together in a step, and of which tensors."""

    loaded_bytes: float
    fetched_bytes: float
    stored_bytes: float
    sector_bytes: float
    extra_bytes: float
    sides: tuple[Side, Side]
    touched: list[_Touched]


class RowStreams:
    """The loads and stores of all tensors of a problem with rows, by params."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._tensors = [
            _tensor(problem, stream, times) for stream, times in Counter(problem.streams).items()
        ]
        self._tiles: dict[KernelTile, _TileTraffic] = {}
        self._lines: dict[tuple[object, ...], float] = {}

    def traffic(self, params: KernelParams, tile: KernelTile, threads: int) -> Traffic:
        """Loads and stores of a step under params."""
        tiling = params.row_tiling
        align = 1 if tiling is None else tiling.align
        if tile not in self._tiles:
            self._tiles[tile] = self._touched(tile)
        at_once = self._tiles[tile]
        lines = accesses = addresses = only_loads = 0.0
        neighbours = 1
        for number, (tensor, count, valid) in enumerate(at_once.touched):
            side, width = _access(tensor, tile, align, max(count // threads, 1))
            loads = tensor.times * max(count / width / NVIDIA_WARP_SIZE, 1.0)
            accesses += loads
            only_loads += 0.0 if tensor.stream.is_store else loads
            lines += loads * valid * self._lines_of(number, tensor, at_once.sides, side, width)
            if tensor.linear_vector:
                each = max(count / min(width, tensor.linear_vector) / threads, 1.0)
                addresses += each * tensor.times
            if width > neighbours and tensor.is_full and not tensor.stream.is_store:
                neighbours = width
        loaded, fetched, stored, sectors, extra, *_ = at_once
        found = loaded, fetched, stored, sectors, lines, accesses, extra, addresses
        return Traffic(*found, float(neighbours), only_loads)

    def _touched(self, tile: KernelTile) -> _TileTraffic:
        problem = self._problem
        places, (rows, row) = problem.places, (max(problem.parallel, 1), max(problem.reduced, 1))
        sides = Side(places[X], tile.x), Side(places[R], tile.r)
        positions = tile_over(problem.axes, sides)
        all_positions = tile.programs * tile.steps * tile.x * tile.r
        valid = min(problem.parallel * row / max(all_positions, 1), 1.0)
        # Positions behind the end are counted like others: what is valid is known of all tiles.
        more = max(tile.x / rows, 1.0), max(tile.r / row, 1.0)
        loaded = fetched = stored = sectors = extra = 0.0
        touched = []
        for tensor in self._tensors:
            stream = tensor.stream
            along_x, along_r = stream.along_x, stream.along_r
            count = (tile.x if along_x else 1) * (tile.r if along_r else 1)
            scale = (more[X] if along_x else 1.0) * (more[R] if along_r else 1.0) * tensor.times
            same = max(min(stream.r_same, tile.r), 1) if along_r else 1
            moved, found = count * stream.item_bytes, _bytes_of(tensor, positions)
            if stream.is_store:
                stored += moved * tensor.times
            else:
                scale *= stream.fresh_share
                loaded += moved * tensor.times
                fetched += found.new * scale
            sectors += found.sectors * scale
            if tensor.is_full:
                extra += found.extra * scale * (2 if stream.is_store else 1)
            share = valid if tensor.is_full else 1.0
            touched.append(_Touched(tensor, count // (same & -same), share))
        return _TileTraffic(loaded, fetched, stored, sectors, extra, sides, touched)

    def _lines_of(
        self, number: int, tensor: _Tensor, sides: tuple[Side, Side], side: int, width: int
    ) -> float:
        """Lines that a load of a warp touches: 1 to 32."""
        key = (number, sides, side, width)
        if key not in self._lines:
            along = NVIDIA_WARP_SIZE * width
            counts = [min(along, part.block) for part in sides]
            counts[1 - side] = min(max(along // counts[side], 1), sides[1 - side].block)
            warp = [(p.places, float(n)) for p, n in zip(sides, counts, strict=True)]
            found = tensor.strides.footprint(tile_over(self._problem.axes, warp), CACHE_LINE_BYTES)
            bytes_ = touched_bytes(tensor.stream, found, CACHE_LINE_BYTES)
            self._lines[key] = min(bytes_ / CACHE_LINE_BYTES, NVIDIA_WARP_SIZE)
        return self._lines[key]


class _Bytes(NamedTuple):
    """Bytes of a tensor that a tile touches: elements, sectors, fetched beside its elements."""

    new: float
    sectors: float
    extra: float


def _bytes_of(tensor: _Tensor, positions: Tile) -> _Bytes:
    stream, found = tensor.stream, tensor.strides.footprint(positions)
    new = found.elements * stream.item_bytes
    pairs = tensor.strides.footprint(positions, FETCHED_BYTES)
    extra = max(touched_bytes(stream, pairs, FETCHED_BYTES) - new, 0.0)
    return _Bytes(new, touched_bytes(stream, found), extra)


def _tensor(problem: Problem, stream: Stream, times: int) -> _Tensor:
    vectors = tuple(_vector(problem, stream, places) for places in problem.places)
    sides, nearer = problem.places, X
    if all(sides):
        near = [warp_bytes(stream, problem.axes, sides, side) for side in (X, R)]
        nearer = X if near[X] < near[R] else R
    own = 0
    if not stream.is_store and not is_linear(problem, stream):
        own = max(gcd(stream.total_bytes, VECTOR_BYTES) // stream.item_bytes, 1)
    full = stream.along_x and (stream.along_r or problem.reduced <= 1)
    return _Tensor(
        stream, times, TensorStrides(stream), full, (vectors[X], vectors[R]), nearer, own
    )


def _vector(problem: Problem, stream: Stream, places: Sequence[int]) -> int:
    """Elements of a vectorized load along a side. 1 where neighbours are not contiguous.

    Where a tile ends inside a vector, its last part is loaded without vectors.
    """
    run = run_along(stream, problem.axes, places)
    if run == 1:
        return 1
    most = VECTOR_BYTES // stream.item_bytes
    found = gcd(most, run)
    length = run or prod(problem.axes[place] for place in places)
    for term in stream.stride_terms:
        is_inside = term.axis in places and term.div == 1 and 0 < term.step < length
        found = found if is_inside else gcd(found, term.step)
    return max(found, 1)


def _access(tensor: _Tensor, tile: KernelTile, align: int, each: int) -> tuple[int, int]:
    """The side that the threads of a load are neighbours along, and the elements of each.

    Tiles of rows that begin inside vectors begin at the first vector of each row (``align``); what
    all rows share is shifted against them.
    """
    stream, along_x, along_r = tensor.stream, *tensor.vectors
    if align > 1 and stream.along_r:
        along_r = align if stream.along_x and stream.r_stride == 1 else 1
    widths = [min(along_x, tile.x), min(along_r, tile.r)]
    side = tensor.nearer if widths[X] == widths[R] else (X if widths[X] > widths[R] else R)
    width = min(widths[side], each, VECTOR_BYTES // stream.item_bytes)
    return side, 1 << max(width, 1).bit_length() - 1
