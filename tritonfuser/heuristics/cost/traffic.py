"""Bytes, sectors, lines and instructions of the loads and stores of a tile."""

from __future__ import annotations

from math import ceil, gcd
from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, SECTOR_BYTES, VECTOR_BYTES
from ..params import KernelParams, PointwiseParams, TransposeParams
from ..problem import Problem, Stream
from .tiles import KernelTile

FETCHED_BYTES = 2 * SECTOR_BYTES
"""Bytes that the L2 cache fetches from memory at a time."""


class Traffic(NamedTuple):
    """What a step of a program loads and stores, addresses of a thread: see ``Counts``."""

    loaded_bytes: float = 0.0
    stored_bytes: float = 0.0
    sector_bytes: float = 0.0
    lines: float = 0.0
    accesses: float = 0.0
    extra_bytes: float = 0.0
    addresses: float = 0.0
    neighbours: float = 1.0


class _Run(NamedTuple):
    """Elements that are neighbours in memory in a tile, and the bytes from one run to the next."""

    elements: int
    stride: int
    is_unit: bool = True


def traffic_of(problem: Problem, params: KernelParams, tile: KernelTile, threads: int) -> Traffic:
    """The loads and stores of all tensors in a step."""
    loaded = stored = sectors = lines = accesses = extra = addresses = 0.0
    neighbours = 1
    positions = tile.programs * tile.steps * tile.x * tile.r
    valid = min(problem.parallel * max(problem.reduced, 1) / max(positions, 1), 1.0)
    flat = isinstance(params, PointwiseParams | TransposeParams)
    for stream in problem.streams:
        count = tile.x * tile.r
        if not flat:
            count = (tile.x if stream.along_x else 1) * (tile.r if stream.along_r else 1)
        is_full = stream.along_x and (stream.along_r or problem.reduced <= 1)
        run = _run(problem, params, tile, stream)
        item, moved = stream.item_bytes, count * stream.item_bytes
        width = _width(params, stream, run, count // threads)
        run_bytes = run.elements * item
        if stream.is_store:
            stored += moved
        else:
            loaded += moved
        sectors += moved * _sector_factor(run, run_bytes)
        if is_full:
            rest = max(FETCHED_BYTES / run_bytes, 1.0) - 1.0
            extra += rest * moved * (2 if stream.is_store else 1)
        accesses += count / width / NVIDIA_WARP_SIZE
        if not stream.is_store and not is_linear(problem, stream):
            whole = max(gcd(stream.total_bytes, VECTOR_BYTES) // item, 1)
            addresses += max(count / min(width, whole) / threads, 1.0)
        if is_full and not stream.is_store:
            neighbours = max(neighbours, width)
        touched = _lines(run, run_bytes, NVIDIA_WARP_SIZE * width * item)
        lines += count / width / NVIDIA_WARP_SIZE * touched * (valid if is_full else 1.0)
    found = loaded, stored, sectors, lines, accesses, extra, addresses
    return Traffic(*found, float(neighbours))


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


def _width(params: KernelParams, stream: Stream, run: _Run, per_thread: int) -> int:
    """Elements of one load or store of a thread."""
    item, tiling = stream.item_bytes, params.row_tiling
    aligned = gcd(run.stride, VECTOR_BYTES) if run.stride else VECTOR_BYTES
    if tiling is not None and tiling.align > 1 and stream.along_r:
        # Tiles begin at the first vector of each row; what all rows share is shifted against them.
        aligned = tiling.align * item if stream.along_x else item
    if not run.is_unit:
        aligned = item
    width = min(VECTOR_BYTES // item, max(aligned // item, 1), max(per_thread, 1), run.elements)
    if isinstance(params, PointwiseParams) and params.vectorization_factor:
        width = min(width, params.vectorization_factor)
    return max(width, 1)


def _sector_factor(run: _Run, run_bytes: int) -> float:
    """Bytes of the sectors that a run touches, for each of its bytes."""
    begins_inside = run.stride % SECTOR_BYTES != 0
    more = min(run_bytes, SECTOR_BYTES - 1) / SECTOR_BYTES if begins_inside else 0.0
    return SECTOR_BYTES * (ceil(run_bytes / SECTOR_BYTES) + more) / run_bytes


def _lines(run: _Run, run_bytes: int, access_bytes: int) -> float:
    """Lines that one load of a warp touches: 1 to 32."""
    least = access_bytes / CACHE_LINE_BYTES
    if run_bytes >= access_bytes:
        return max(least, 1.0)
    runs = access_bytes / run_bytes
    apart = max(run_bytes, min(run.stride or run_bytes, CACHE_LINE_BYTES))
    return min(max(least, runs * apart / CACHE_LINE_BYTES, 1.0), float(NVIDIA_WARP_SIZE))
