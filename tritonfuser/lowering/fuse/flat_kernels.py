"""Predicted times of flat kernels, and whether fusing two of them is faster."""

from __future__ import annotations

from dataclasses import dataclass

from ...heuristics import pointwise, transpose
from ...heuristics.cost.kernels import predicted
from ...heuristics.cost.model import KernelTime
from ...heuristics.params import HeuristicParams
from ...heuristics.problem import ElementWork, Problem


@dataclass(frozen=True)
class JoinedKernels:
    """A flat kernel and a value that may be fused into it, or have a kernel of its own.

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
    separate = _flat_seconds(kernels.first) + _flat_seconds(kernels.second)
    return _flat_seconds(kernels.joined) > separate + kernels.joined.device.launch_s


def _flat_seconds(problem: Problem) -> float:
    """Busy seconds of the kernel that takes a flat problem."""
    if not problem.parallel or not problem.is_flat:
        return 0.0
    made = transpose if problem.across else pointwise
    return float(flat_time(problem, made.propose(problem)).busy)


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
