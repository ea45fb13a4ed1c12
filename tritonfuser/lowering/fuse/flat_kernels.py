"""Predicted times of flat kernels whose instructions are not known yet."""

from __future__ import annotations

from ...heuristics.cost.kernels import predicted
from ...heuristics.cost.model import KernelTime
from ...heuristics.params import HeuristicParams
from ...heuristics.problem import ElementWork, Problem


def flat_time(problem: Problem, params: HeuristicParams) -> KernelTime:
    """The predicted time of a flat kernel whose instructions are not known yet."""
    found = predicted(problem, params, flat_work(problem))
    assert found is not None
    return found


def flat_work(problem: Problem) -> ElementWork:
    """An estimate of a flat kernel's work: an instruction for each op, and one random number if it
    draws any."""
    draws = int(problem.draws_random)
    return ElementWork(before=float(problem.ops_per_element), draws=draws)
