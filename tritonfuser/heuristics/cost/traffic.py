"""Bytes, sectors, lines and instructions of the loads and stores of a tile.

What a tensor is, what a tile touches of it, and how the threads of a program load that are found
apart: params of one problem often have the same tile, and other warps.
"""

from __future__ import annotations

from math import ceil, gcd
from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, SECTOR_BYTES, VECTOR_BYTES
from ..params import KernelParams, PointwiseParams, TransposeParams
from ..problem import Problem
from ..streams import Stream
from .tiles import KernelTile

FETCHED_BYTES = 2 * SECTOR_BYTES
"""Bytes that the L2 cache fetches from memory at a time."""


class Traffic(NamedTuple):
    """What a step of a program loads and stores, addresses of a thread: see ``Counts``."""

    loaded_bytes: float = 0.0
    fetched_bytes: float = 0.0
    stored_bytes: float = 0.0
    sector_bytes: float = 0.0
    lines: float = 0.0
    accesses: float = 0.0
    extra_bytes: float = 0.0
    addresses: float = 0.0
    neighbours: float = 1.0


class _Tensor(NamedTuple):
    """A tensor, as far as no params change it.

    Attributes
    ----------
    item : int
        Bytes of an element.
    is_full : bool
        It runs over both axes, where there are two.
    vector : int
        Elements of a vector that its size is a multiple of, if its elements have addresses of their
        own: it is no linear function of the positions. 0 if they are offsets from one another.
    """

    stream: Stream
    item: int
    is_store: bool
    is_full: bool
    vector: int


class _Run(NamedTuple):
    """Elements that are neighbours in memory in a tile, and the bytes from one run to the next."""

    elements: int
    stride: int
    is_unit: bool = True


class _Touched(NamedTuple):
    """What a tile touches of a tensor.

    Attributes
    ----------
    elements : int
        Those of it.
    run_bytes, stride : int
        Bytes of a run, and from one to the next.
    widest : int
        Elements of a load or store of a thread at most.
    valid : float
        Share of the elements of all tiles that exist.
    """

    tensor: _Tensor
    elements: int
    run_bytes: int
    stride: int
    widest: int
    valid: float


class _TileTraffic(NamedTuple):
    """What all threads of a program load and store together in a step, and of which tensors."""

    loaded_bytes: float
    fetched_bytes: float
    stored_bytes: float
    sector_bytes: float
    extra_bytes: float
    touched: list[_Touched]


class Streams:
    """The loads and stores of all tensors of a problem, by params."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._tensors = [_tensor(problem, stream) for stream in problem.streams]
        self._tiles: dict[tuple[object, ...], _TileTraffic] = {}

    def traffic(self, params: KernelParams, tile: KernelTile, threads: int) -> Traffic:
        """Loads and stores of a step under params."""
        at_once = self._of_tile(params, tile)
        limit = getattr(params, "vectorization_factor", 0) or VECTOR_BYTES
        lines = accesses = addresses = 0.0
        neighbours = 1
        for tensor, count, run_bytes, stride, widest, valid in at_once.touched:
            width = max(min(widest, count // threads, limit), 1)
            loads = count / width / NVIDIA_WARP_SIZE
            accesses += loads
            lines += (
                loads * _lines(stride, run_bytes, NVIDIA_WARP_SIZE * width * tensor.item) * valid
            )
            if tensor.vector:
                addresses += max(count / min(width, tensor.vector) / threads, 1.0)
            if width > neighbours and tensor.is_full and not tensor.is_store:
                neighbours = width
        loaded, fetched, stored, sectors, extra, _ = at_once
        found = loaded, fetched, stored, sectors, lines, accesses, extra, addresses
        return Traffic(*found, float(neighbours))

    def _of_tile(self, params: KernelParams, tile: KernelTile) -> _TileTraffic:
        tiling = params.row_tiling
        align = 1 if tiling is None else tiling.align
        key = (tile, align, getattr(params, "block_y", 0))
        if key not in self._tiles:
            self._tiles[key] = self._touched(params, tile, align)
        return self._tiles[key]

    def _touched(self, params: KernelParams, tile: KernelTile, align: int) -> _TileTraffic:
        problem, flat = self._problem, isinstance(params, PointwiseParams | TransposeParams)
        loaded = fetched = stored = sectors = extra = 0.0
        positions = tile.programs * tile.steps * tile.x * tile.r
        valid = min(problem.parallel * max(problem.reduced, 1) / max(positions, 1), 1.0)
        touched = []
        for tensor in self._tensors:
            stream, item = tensor.stream, tensor.item
            count = tile.x * tile.r
            if not flat:
                count = (tile.x if stream.along_x else 1) * (tile.r if stream.along_r else 1)
            run = _run(problem, params, tile, stream)
            moved, run_bytes = count * item, run.elements * item
            # Neighbours that share an element find it in the L1 cache, or load it once where as
            # many as they are fill whole tiles.
            same = max(min(stream.r_same, tile.r), 1) if stream.along_r and not flat else 1
            count //= same & -same
            new = moved / same
            if tensor.is_store:
                stored += moved
            else:
                new *= stream.fresh_share / max(min(stream.x_same, tile.x), 1)
                loaded += moved
                fetched += new
            sectors += new * _sector_factor(run, run_bytes)
            if tensor.is_full:
                rest = max(FETCHED_BYTES / run_bytes, 1.0) - 1.0
                extra += rest * new * (2 if tensor.is_store else 1)
            share = valid if tensor.is_full else 1.0
            widest = _widest(stream, run, align)
            # Neighbours that share an element are in one line.
            touched.append(_Touched(tensor, count, run_bytes * same, run.stride, widest, share))
        return _TileTraffic(loaded, fetched, stored, sectors, extra, touched)


def _tensor(problem: Problem, stream: Stream) -> _Tensor:
    item = stream.item_bytes
    is_full = stream.along_x and (stream.along_r or problem.reduced <= 1)
    vector = 0
    if not stream.is_store and not is_linear(problem, stream):
        vector = max(gcd(stream.total_bytes, VECTOR_BYTES) // item, 1)
    return _Tensor(stream, item, stream.is_store, is_full, vector)


def is_linear(problem: Problem, stream: Stream) -> bool:
    """Whether elements are at ``x * x_stride + r * r_stride``: all are apart, and one axis lies
    within a step of the other."""
    rows = problem.parallel if stream.along_x else 1
    row = problem.reduced if stream.along_r else 1
    if stream.total_bytes < rows * row * stream.item_bytes:
        return False
    x_step = stream.x_stride if rows > 1 else 0
    r_step = stream.r_stride if row > 1 else 0
    if x_step is None or r_step is None:
        return False
    if rows == 1 or row == 1:
        return max(x_step, r_step) <= 1
    return (r_step == 1 and x_step >= row) or (x_step == 1 and r_step >= rows)


def _run(problem: Problem, params: KernelParams, tile: KernelTile, stream: Stream) -> _Run:
    item, rows, row = stream.item_bytes, max(problem.parallel, 1), max(problem.reduced, 1)
    if isinstance(params, PointwiseParams):
        run = min(stream.contiguous_run or rows, tile.x) if stream.x_stride == 1 else 1
        return _Run(run, stream.contiguous_run * item, stream.x_stride == 1)
    if isinstance(params, TransposeParams):
        along_x = stream.x_stride == 1
        across = max(problem.crossing, 1)
        other = max(rows // across, 1) if along_x else across
        return _Run(min(params.block_x if along_x else params.block_y, other), other * item)
    if stream.along_r and stream.r_stride == 1:
        stride, run = stream.x_stride or 0, min(tile.r, row)
        whole = run == row and stride == row
        return _Run(run * min(tile.x, rows) if whole else run, stride * item)
    if stream.along_x and stream.x_stride == 1:
        together = stream.contiguous_run or rows
        stride, run = stream.r_stride or 0, min(tile.x, together)
        whole = run == together and stride == together and stream.along_r
        return _Run(run * min(tile.r, row) if whole else run, stride * item)
    return _Run(1, (stream.x_stride or stream.r_stride or 0) * item, False)


def _widest(stream: Stream, run: _Run, align: int) -> int:
    """Elements of the widest load or store of a thread that the layout allows."""
    item = stream.item_bytes
    aligned = gcd(run.stride, VECTOR_BYTES) if run.stride else VECTOR_BYTES
    if align > 1 and stream.along_r:
        # Tiles begin at the first vector of each row; what all rows share is shifted against them.
        aligned = align * item if stream.along_x else item
    if not run.is_unit:
        aligned = item
    return min(VECTOR_BYTES // item, max(aligned // item, 1), run.elements)


def _sector_factor(run: _Run, run_bytes: int) -> float:
    """Bytes of the sectors that a run touches, for each of its bytes."""
    begins_inside = run.stride % SECTOR_BYTES != 0
    more = min(run_bytes, SECTOR_BYTES - 1) / SECTOR_BYTES if begins_inside else 0.0
    return SECTOR_BYTES * (ceil(run_bytes / SECTOR_BYTES) + more) / run_bytes


def _lines(stride: int, run_bytes: int, access_bytes: int) -> float:
    """Lines that one load of a warp touches: 1 to 32."""
    least = access_bytes / CACHE_LINE_BYTES
    if run_bytes >= access_bytes:
        return max(least, 1.0)
    runs = access_bytes / run_bytes
    apart = max(run_bytes, min(stride or run_bytes, CACHE_LINE_BYTES))
    return min(max(least, runs * apart / CACHE_LINE_BYTES, 1.0), float(NVIDIA_WARP_SIZE))
