"""Whether fusing two flat kernels is faster than both of them."""

from __future__ import annotations

from dataclasses import dataclass

from ...heuristics import pointwise, transpose
from ...heuristics.cost.least.times import least_busy
from ...heuristics.problem import Problem
from .flat_kernels import flat_time, flat_work
from .second_sides import with_second_side


@dataclass(frozen=True)
class JoinedKernels:
    """A flat kernel and a value that may be fused into it, or have a kernel of its own.

    Attributes
    ----------
    joined : Problem
        The flat kernel with the value fused into it.
    first : Problem
        The flat kernel without the value. Its tiles may get a second side.
    second : Problem
        The value's own kernel. Its tiles may get a second side.
    """

    joined: Problem
    first: Problem
    second: Problem


def is_slower_joined(kernels: JoinedKernels) -> bool:
    """Whether the fused kernel takes longer than both kernels and a second launch.

    The value's axes may differ from those of the flat kernel. Its elements are then matched with
    the kernel's positions by their row-major number, so its tensors may be accessed out of order.

    A tile with a second side takes long to choose, so the two kernels get theirs only where lower
    bounds of their times leave the answer open.
    """
    joined, launch = _flat_seconds(kernels.joined), kernels.joined.device.launch_s
    alone = kernels.first, kernels.second
    seconds = [*map(_least_seconds, alone)]
    for place, each in enumerate(alone):
        if joined <= sum(seconds) + launch:
            return False
        seconds[place] = _flat_seconds(with_second_side(each))
    return joined > sum(seconds) + launch


def _flat_seconds(problem: Problem) -> float:
    """Busy seconds of the kernel that takes a flat problem."""
    if not problem.parallel or not problem.is_flat:
        return 0.0
    made = transpose if problem.across else pointwise
    return float(flat_time(problem, made.propose(problem)).busy)


def _least_seconds(problem: Problem) -> float:
    """A lower bound of ``_flat_seconds``, whatever sides its tiles have."""
    if not problem.parallel or not problem.is_flat:
        return 0.0
    return least_busy(problem, flat_work(problem))
