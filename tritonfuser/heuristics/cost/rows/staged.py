"""Tiles whose threads have whole rows: where they can be, and what passes through shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...problem import Problem
from ...streams import Stream
from ..tiles import KernelTile
from .access import TileTensor

TILES = (2, 4, 8, 16, 32, 64)
"""Elements of rows that a thread may have whole, it keeps them in registers, up to the next power
of two."""

FEWEST_WARPS = 2
"""Warps of a program whose threads have whole rows. Within one warp Triton moves elements by
shuffles of registers: 6248 instructions where two warps have 4424, and 240 bytes spilled."""

SHARED_LINES = 0.55
"""Lines of the L1 cache that an access to shared memory takes as long as. Both have one data path,
which shared memory has for a clock and a line for 1.81."""

WRITTEN = 2
"""Clocks of shared memory for an element of each lane that threads write there."""

PLACED = 2
"""Instructions for the place of an element on its way to the run that is stored, as for the digits
of positions (``index_instructions``). 26 kernels with short rows, H200: predicted are 0.98 of their
times (geometric mean), with a deviation of 0.22 in the logarithm; 0.16 of the same kernels without
``staged``."""


class Staged(NamedTuple):
    """What loads and stores of runs take in a step.

    Attributes
    ----------
    accesses, lines : float
        Of all warps, to memory and to shared memory.
    written_bytes : float
        That stores write: whole sectors of a run.
    index_instructions : float
        Of all warps, for the places of what is stored.
    """

    accesses: float = 0.0
    lines: float = 0.0
    written_bytes: float = 0.0
    index_instructions: float = 0.0


def may_be_staged(problem: Problem) -> bool:
    """Whether a search tries it where ``TILES`` has the tile of a row: for rows of fixed sizes that
    begin inside vectors, of which threads would load single elements or few."""
    fixed = not (problem.row_varies or problem.rows_vary)
    if problem.on_cpu or not (fixed and problem.inner and problem.reduced > 1):
        return False
    if problem.scans or problem.core is not None or problem.co_reduced > 1:
        return False
    loads = [s for s in problem.full_loads if is_run(problem, s)]
    return any(problem.reduced * s.item_bytes % VECTOR_BYTES for s in loads) and all_fit(problem)


def all_fit(problem: Problem) -> bool:
    """Whether threads can have whole rows of each tensor over both axes.

    It lies as runs, or with neighbouring rows beside each other: else the threads of a load lie
    along rows too, and Triton computes in their layout. What is stored needs a reduction of the
    kernel: else Triton computes it once more, in the layout in which it is stored.
    """
    if problem.independent_outputs:
        return False
    return all(is_run(problem, s) or s.x_stride == 1 for s in problem.full_streams)


def is_run(problem: Problem, stream: Stream) -> bool:
    """Whether the rows of a tensor lie one behind the other, in the order of axis x."""
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


def staged_apart(
    problem: Problem, tile: KernelTile, touched: Sequence[TileTensor]
) -> tuple[Staged, list[TileTensor]]:
    """What the tensors take whose rows are runs, where threads have whole rows; and the others."""
    if not tile.staged:
        return Staged(), list(touched)
    runs = [t for t in touched if t.tensor.is_full and is_run(problem, t.tensor.stream)]
    each = [_moved(t, tile, problem.reduced) for t in runs]
    total = Staged(*(sum(numbers) for numbers in zip(*each, strict=True))) if each else Staged()
    return total, [t for t in touched if t not in runs]


def _moved(touched: TileTensor, tile: KernelTile, row: int) -> Staged:
    """A tensor is loaded by vectors and stored by single elements.

    Threads read single elements from shared memory. They write there what they have of a row, with
    others of the same banks.
    """
    stream, taken, elements = touched.tensor.stream, touched.taken, tile.x * row
    moved = elements * stream.item_bytes
    whole, single = moved / CACHE_LINE_BYTES, elements / NVIDIA_WARP_SIZE
    vectors = tile.x * tile.r * stream.item_bytes / VECTOR_BYTES / NVIDIA_WARP_SIZE
    if not stream.is_store:
        lines = whole + SHARED_LINES * (whole + single)
        return Staged(taken * (single + 2 * vectors), taken * lines)
    lines = single * (1 + SHARED_LINES * (1 + WRITTEN))
    return Staged(taken * 3 * single, taken * lines, taken * moved, taken * PLACED * single)
