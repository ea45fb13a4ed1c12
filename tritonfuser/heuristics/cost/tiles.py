"""``KernelTile``: programs, steps and tile sizes of a kernel, from its params."""

from __future__ import annotations

from typing import NamedTuple

from ...device import VECTOR_BYTES
from ..integers import ceil_div
from ..params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    KernelParams,
    PointwiseParams,
    ReductionParams,
    RowTiling,
    TransposeParams,
)
from ..problem import Problem
from .counts import Number
from .numbers import PLAIN, Numbers


class KernelTile(NamedTuple):
    """The tile of a program in one step, and the number of steps.

    Attributes
    ----------
    programs : int
        Programs of the kernel.
    steps : float
        Steps of a program's loop in one pass; 1 without a loop. A tail behind the loop counts as a
        fraction of a step.
    passes : int
        How often the loop runs over the same elements.
    x, r : int
        Positions of axis x and of axis r in a step. With rows in registers, ``r`` includes tails.
    loops : bool
        Whether there is a loop: along rows, or over rows.
    keeps_rows : bool
        Whether whole rows are in registers.
    kept : int
        Elements of tails that stay in registers from one pass of a loop to the next.
    over_rows : bool
        Whether the loop is over rows: tensors that all rows share are loaded once, before it.
    pieces : int
        Number of pieces of a row that are reduced separately: see ``_pieces``.
    masked : bool
        Whether loads in the loop have masks.
    staged : bool
        Whether each thread has whole rows, which pass through shared memory.
    """

    programs: int
    steps: float
    passes: int
    x: int
    r: int
    loops: bool = False
    keeps_rows: bool = False
    kept: int = 0
    over_rows: bool = False
    pieces: int = 1
    masked: bool = False
    staged: bool = False


def tile_of(problem: Problem, params: HeuristicParams) -> KernelTile:
    """The tile of the kernel with these params."""
    if isinstance(params, PointwiseParams):
        return KernelTile(ceil_div(problem.parallel, params.block_x), 1, 1, params.block_x, 1)
    if isinstance(params, TransposeParams):
        return _transposed(problem, params)
    if isinstance(params, InnerOuterPersistentParams):
        return _over_rows(problem, params)
    return _rows(problem, params)


def _transposed(problem: Problem, params: TransposeParams) -> KernelTile:
    across = max(problem.crossing, 1)
    along = ceil_div(problem.parallel, across)
    programs = ceil_div(along, params.block_x) * ceil_div(across, params.block_y)
    return KernelTile(programs, 1, 1, params.block_x * params.block_y, 1)


def _over_rows(problem: Problem, params: InnerOuterPersistentParams) -> KernelTile:
    row = params.block_r + sum(params.tails)
    tile = loop_over_rows(problem, params.block_m, row, PLAIN)
    rows = ceil_div(problem.parallel, max(problem.outer_batch, 1))
    masked = row != max(problem.reduced, 1) or rows % params.block_m != 0
    pieces = _pieces(problem, params, params.row_tiling)
    tile = tile._replace(pieces=pieces, masked=masked, staged=params.staged)
    if params.parts == 1:
        return tile
    return tile._replace(passes=2 * tile.passes, programs=tile.programs * params.parts)


FLAT_PARAMS = (PointwiseParams, TransposeParams)


def is_flat_tile(problem: Problem, params: HeuristicParams) -> bool:
    """Whether tiles run over the axes of a problem without rows."""
    return problem.is_flat and isinstance(params, FLAT_PARAMS)


def _rows(problem: Problem, params: HeuristicParams) -> KernelTile:
    tiling = params.row_tiling
    if tiling is None:
        return KernelTile(1, 1, 1, max(problem.parallel, 1), 1)
    assert isinstance(params, KernelParams)
    tails, sums = sum(tiling.tails), isinstance(params, ReductionParams)
    in_one_step = sums and tiling.block + tails >= max(problem.reduced, 1)
    if tiling.in_registers or in_one_step:
        pieces = _pieces(problem, params, tiling)
        row = tiling.block + tails
        return whole_rows(problem, tiling.rows, row, pieces=pieces, staged=tiling.staged)
    tile = loop_along_rows(problem, sums, tiling.rows, tiling.block, tails, PLAIN)
    past_end = not tails and max(problem.reduced, 1) % tiling.block != 0
    # rows seldom have masks (lowering/tile/overlaps.py)
    return tile._replace(masked=past_end, pieces=_pieces(problem, params, tiling))


def _pieces(problem: Problem, params: KernelParams, tiling: RowTiling) -> int:
    """Number of pieces of a row that are reduced separately.

    Tails as wide as the block are first added to it, except the edges of rows that begin inside
    vectors. All pieces that have elements for every thread are then reduced as one. A program with
    several rows gives each thread whole vectors, so a piece needs more elements to reach all
    threads.
    """
    rows, block, edges = tiling.rows, tiling.block, tiling.tails if tiling.align > 1 else ()
    tails = [*(n for n in tiling.tails if n != block), *(n for n in edges[-1:] if n == block)]
    if not tails or not problem.inner:
        return 1 + len(tails)
    reached = params.num_warps * problem.device.warp_size
    if rows > 1:
        narrowest = min((s.item_bytes for s in problem.streams if s.along_r), default=VECTOR_BYTES)
        reached *= VECTOR_BYTES // narrowest
    joined = sum(width >= reached for width in (block, *tails))
    return 1 + len(tails) - max(joined - 1, 0)


class Launches(NamedTuple):
    """Many kernels: numbers are arrays with an entry for each of them, or one that all have.

    Attributes
    ----------
    tile : KernelTile
        Their tiles.
    warps, stages, prefetches : array
        ``num_warps``, ``num_stages`` and ``prefetches`` of their params.
    aligned : bool
        Whether some of them have tiles that begin at vectors (``align``).
    blocks : tuple of array
        The lengths of the sides of flat tiles. Empty for tiles of rows.
    vector : array
        Most adjacent elements of a thread in flat kernels.
    """

    tile: KernelTile
    warps: Number
    stages: Number
    prefetches: Number
    aligned: bool = False
    blocks: tuple[Number, ...] = ()
    vector: Number = VECTOR_BYTES


# --- tiles of rows, of one kernel or of many: numbers may be arrays -------------------------------


def whole_rows(
    problem: Problem, rows: Number, row: Number, pieces: int = 1, staged: bool = False
) -> KernelTile:
    """The tile of programs that keep rows in registers."""
    programs = ceil_div(problem.parallel, rows)
    return KernelTile(programs, 1, 1, rows, row, keeps_rows=True, pieces=pieces, staged=staged)


def loop_over_rows(problem: Problem, rows: Number, row: Number, m: Numbers) -> KernelTile:
    """The tile of programs that loop over rows."""
    batch = max(problem.outer_batch, 1)
    steps = m.maximum(ceil_div(ceil_div(problem.parallel, batch), rows), 1)
    passes = problem.outer_loops
    return KernelTile(batch, steps, passes, rows, row, loops=True, over_rows=True)


def loop_along_rows(
    problem: Problem, is_reduction: bool, rows: Number, block: Number, tails: Number, m: Numbers
) -> KernelTile:
    """The tile of programs that loop along rows: in one pass if they only reduce them.

    A scan needs no pass of its own before its results are used: they are known in the same step.
    With several passes, tails stay in registers; with one, they count as a fraction of a step.
    """
    whole = m.maximum(ceil_div(max(problem.reduced, 1) - tails, block), 1)
    steps = whole + (tails / block if is_reduction else 0)
    passes = 1
    if not is_reduction:
        passes = max(problem.passes_to_reduce + problem.dependent_outputs - problem.scans, 1)
    kept = rows * tails if passes > 1 else 0
    programs = ceil_div(problem.parallel, rows)
    return KernelTile(programs, steps, passes, rows, block, loops=whole > 1, kept=kept)
