"""Segments with nothing to compute: results without elements. There is nothing to decide."""

from __future__ import annotations

from .params import HeuristicParams, NoOpParams
from .problem import Problem


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if problem.outer_members:
        return "a reduction over no rows has results"
    return None if problem.parallel == 0 else "there are elements to compute"


def propose(problem: Problem) -> HeuristicParams:
    """The params of the segment."""
    return NoOpParams()
