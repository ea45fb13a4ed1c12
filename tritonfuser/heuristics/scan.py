"""Scans: running sums, products and extrema along rows.

Takes problems with a scan and no reduction over rows. Decides the block of a row that a loop scans
in a step, and how many short rows a program has.
"""

from __future__ import annotations

from .integers import next_power_of_2, warps_for
from .interpreter_tiles import interpreter_tile
from .params import HeuristicParams, ScanParams
from .problem import Problem
from .requirements import HAS_SCAN, NO_OUTER_REDUCTION, first_reason

MAX_BLOCK_R = 2048
"""Elements of a row in a step."""

TILE_ELEMENTS = 1024
"""Elements of a tile that has several short rows."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    return first_reason(problem, NO_OUTER_REDUCTION, HAS_SCAN)


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    if problem.on_cpu:
        tile = interpreter_tile(problem)
        return ScanParams(block_x=tile.block_x, block_r=tile.block_r)
    block_r = min(next_power_of_2(problem.reduced), MAX_BLOCK_R)
    block_x = max(1, min(next_power_of_2(problem.parallel), TILE_ELEMENTS // block_r))
    return ScanParams(
        block_x=block_x, block_r=block_r, num_warps=warps_for(block_x * block_r, 8, most=8)
    )
