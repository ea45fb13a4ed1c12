"""Staged tiles: each thread has whole rows, which pass through shared memory on their way.

A tensor whose rows follow one another in memory is loaded and stored as one contiguous run, by
vectors; ``tl.gather`` moves the elements to the threads of their rows and back. This module says
where such tiles are possible, and what they add to the traffic of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...problem import Problem
from ...streams import Stream
from ..tiles import KernelTile
from .access import TileTensor

TILES = (2, 4, 8, 16, 32, 64)
"""Tiles of rows (their length, rounded up to a power of two) that a thread may keep whole in
registers."""

FEWEST_WARPS = 2
"""Least warps of a program with staged tiles. Within a single warp Triton moves elements by
shuffles instead of shared memory: 6248 instructions where two warps have 4424, and 240 bytes
spilled."""

SHARED_LINES = 0.55
"""Time of an access to shared memory, in lines of the L1 cache. Both use one data path: an access
to shared memory for 1 clock, a line for 1.81 clocks (``line_clocks``)."""

WRITE_CLOCKS = 2
"""Clocks of shared memory in which the lanes of a warp write one element each."""

POSITION_INSTRUCTIONS = 2
"""Instructions for the position of an element in the run that is stored, in the units of
``index_instructions``. 26 kernels with short rows, H200: predicted are 0.98 of their
times (geometric mean), with a deviation of 0.22 in the logarithm; 0.16 of the same kernels without
``staged``."""


class StagedTraffic(NamedTuple):
    """Traffic of a step for tensors that are loaded and stored as contiguous runs.

    Attributes
    ----------
    accesses, lines : float
        Accesses of all warps to memory and to shared memory, and their lines.
    written_bytes : float
        Bytes of the sectors that stores write: all of them whole.
    index_instructions : float
        Instructions of all warps for positions of stored elements.
    """

    accesses: float = 0.0
    lines: float = 0.0
    written_bytes: float = 0.0
    index_instructions: float = 0.0


def may_be_staged(problem: Problem) -> bool:
    """Whether a search may try staged tiles (of the lengths in ``TILES``).

    For rows of constant sizes that begin inside vectors: without staging, threads would load single
    elements of them, or few.
    """
    fixed = not (problem.row_varies or problem.rows_vary)
    if problem.on_cpu or not (fixed and problem.inner and problem.reduced > 1):
        return False
    if problem.scans or problem.core is not None or problem.co_reduced > 1:
        return False
    loads = [s for s in problem.full_loads if is_run(problem, s)]
    return any(problem.reduced * s.item_bytes % VECTOR_BYTES for s in loads) and all_fit(problem)


def all_fit(problem: Problem) -> bool:
    """Whether threads can have whole rows of every tensor that runs along both axes.

    The tensor is one run (``is_run``), or contiguous along x. Otherwise the lanes of its loads run
    along rows, and Triton computes in their layout. And each stored tensor depends on a reduction
    of the kernel. Otherwise Triton computes it a second time, in the layout of its store.
    """
    if problem.independent_outputs:
        return False
    return all(is_run(problem, s) or s.x_stride == 1 for s in problem.full_streams)


def is_run(problem: Problem, stream: Stream) -> bool:
    """Whether the rows of a tensor follow one another in memory without gaps, in order of x."""
    if stream.held_bytes or stream.accessed != (1, 1):
        return False
    steps = {term.axis: term.step for term in stream.stride_terms if term.div == 1}
    if len(steps) != len(stream.stride_terms):
        return False
    step = 1
    for axis in reversed(range(len(problem.axes))):
        extent = problem.axes[axis]
        if extent > 1 and steps.get(axis) != step:
            return False
        step *= extent
    return True


def split_staged(
    problem: Problem, tile: KernelTile, touched: Sequence[TileTensor]
) -> tuple[StagedTraffic, list[TileTensor]]:
    """The traffic of the tensors that are staged, and the tensors that are not."""
    if not tile.staged:
        return StagedTraffic(), list(touched)
    runs = [t for t in touched if t.tensor.is_full and is_run(problem, t.tensor.stream)]
    each = [_staged_traffic(t, tile, problem.reduced) for t in runs]
    total = StagedTraffic(*map(sum, zip(*each, strict=True))) if each else StagedTraffic()
    return total, [t for t in touched if t not in runs]


def _staged_traffic(touched: TileTensor, tile: KernelTile, row: int) -> StagedTraffic:
    """The traffic of one tensor: loaded by vectors, stored by single elements.

    Threads read single elements from shared memory. They write the elements of their rows there,
    with bank conflicts.
    """
    stream, times, elements = touched.tensor.stream, touched.mean_per_step, tile.x * row
    moved = elements * stream.item_bytes
    whole, single = moved / CACHE_LINE_BYTES, elements / NVIDIA_WARP_SIZE
    vectors = tile.x * tile.r * stream.item_bytes / VECTOR_BYTES / NVIDIA_WARP_SIZE
    if not stream.is_store:
        lines = whole + SHARED_LINES * (whole + single)
        return StagedTraffic(times * (single + 2 * vectors), times * lines)
    lines = single * (1 + SHARED_LINES * (1 + WRITE_CLOCKS))
    positions = times * POSITION_INSTRUCTIONS * single
    return StagedTraffic(times * 3 * single, times * lines, times * moved, positions)
