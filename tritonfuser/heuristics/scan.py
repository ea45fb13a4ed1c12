"""Running sums, products and extrema along one axis."""

from __future__ import annotations

from .integers import next_power_of_2
from .params import HeuristicParams, ScanParams
from .problem import Problem
from .reduction import cpu_tile


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if problem.outer_members:
        return "it reduces over rows as well"
    return None if problem.scans else "it has no scan"


def propose(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, _ = cpu_tile(problem)
        return ScanParams(block_x=x, block_r=r)
    block_r = min(next_power_of_2(problem.reduced), 2048)
    block_x = max(1, min(next_power_of_2(problem.parallel), 1024 // block_r))
    warps = max(1, min(8, block_x * block_r // 256))
    return ScanParams(block_x=block_x, block_r=block_r, num_warps=warps)
