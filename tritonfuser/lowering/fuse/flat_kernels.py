"""Flat kernels: their times by the model, and what may be fused into one."""

from __future__ import annotations

from dataclasses import dataclass

from ...heuristics import pointwise, transpose
from ...heuristics.cost.kernels import predicted
from ...heuristics.cost.model import KernelTime
from ...heuristics.params import HeuristicParams
from ...heuristics.problem import ElementWork, Problem


@dataclass(frozen=True)
class JoinedKernels:
    """Two ways to compute a value beside a flat kernel: fused into it, or in a kernel of its own.

    Attributes
    ----------
    joined : Problem
        The flat kernel with the value fused into it.
    first : Problem
        The flat kernel without the value.
    second : Problem
        The value's own kernel.
    """

    joined: Problem
    first: Problem
    second: Problem


def is_slower_joined(kernels: JoinedKernels) -> bool:
    """Whether the fused kernel takes longer than both kernels and a second launch.

    The value's axes may differ from those of the flat kernel. Its elements are then matched with
    the kernel's positions by their row-major number, so its tensors may be accessed out of order.
    """
    apart = _flat_seconds(kernels.first) + _flat_seconds(kernels.second)
    return _flat_seconds(kernels.joined) > apart + kernels.joined.device.launch_s


def _flat_seconds(problem: Problem) -> float:
    """Busy seconds of the kernel that takes a flat problem."""
    if not problem.parallel or not problem.is_flat:
        return 0.0
    made = transpose if problem.across else pointwise
    return float(flat_time(problem, made.propose(problem)).busy)


def flat_time(problem: Problem, params: HeuristicParams) -> KernelTime:
    """The time of a flat problem's kernel by the model, before it is known what it computes."""
    found = predicted(problem, params, flat_work(problem))
    assert found is not None
    return found


def flat_work(problem: Problem) -> ElementWork:
    """The instructions of a flat problem by the number of its ops, with one random number where it
    draws any."""
    draws = int(problem.draws_random)
    return ElementWork(before=float(problem.ops_per_element), draws=draws)
