"""Programs, steps and tiles of a kernel, by its params."""

from __future__ import annotations

from typing import NamedTuple

from ..integers import ceil_div
from ..params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    PointwiseParams,
    ReductionParams,
    TransposeParams,
)
from ..problem import Problem


class KernelTile(NamedTuple):
    """What one program has in a step.

    Attributes
    ----------
    programs : int
        Programs of the kernel.
    steps : int
        Steps of the loop of one of them. 1 without a loop.
    passes : int
        How often the loop runs over the same elements.
    x, r : int
        Positions of axis x and of axis r in a step, tails among them where they are in registers.
    loops : bool
        Whether there is a loop.
    keeps_rows : bool
        Whether rows are whole in registers.
    kept : int
        Elements of the end of a row that stay in registers while a loop reads the rest.
    over_rows : bool
        Whether the loop is over rows: what all rows share is loaded once, before it.
    pieces : int
        Parts of a row that are reduced apart: its blocks of one size, and each tail.
    """

    programs: int
    steps: int
    passes: int
    x: int
    r: int
    loops: bool = False
    keeps_rows: bool = False
    kept: int = 0
    over_rows: bool = False
    pieces: int = 1


def tile_of(problem: Problem, params: HeuristicParams) -> KernelTile:
    """The tile of a kernel."""
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
    batch = max(problem.outer_batch, 1)
    steps = max(ceil_div(ceil_div(problem.parallel, batch), params.block_m), 1)
    row = params.block_r + sum(params.tails)
    passes = 1 if params.parts == 1 else 2
    tile = KernelTile(batch * params.parts, steps, passes, params.block_m, row)
    return tile._replace(loops=True, over_rows=True, pieces=1 + len(params.tails))


def _rows(problem: Problem, params: HeuristicParams) -> KernelTile:
    tiling = params.row_tiling
    if tiling is None:
        return KernelTile(1, 1, 1, max(problem.parallel, 1), 1)
    programs, tails = ceil_div(problem.parallel, tiling.rows), sum(tiling.tails)
    pieces = 1 + len(tiling.tails)
    if tiling.in_registers:
        row = tiling.block + tails
        return KernelTile(programs, 1, 1, tiling.rows, row, keeps_rows=True, pieces=pieces)
    steps = max(ceil_div(max(problem.reduced, 1) - tails, tiling.block), 1)
    passes = 1
    if not isinstance(params, ReductionParams) and not problem.scans:
        passes = max(problem.passes_to_reduce + problem.dependent_outputs, 1)
    kept = tiling.rows * tails if passes > 1 else 0
    tile = KernelTile(programs, steps, passes, tiling.rows, tiling.block)
    return tile._replace(loops=True, kept=kept, pieces=pieces)
