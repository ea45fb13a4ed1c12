"""The seconds of a kernel over the elements of its loop nest: of all without a core."""

from __future__ import annotations

from ..params import HeuristicParams, KernelParams
from ..problem import ElementWork, Problem
from .axis_order import in_order
from .counts import counts_of
from .model import KernelTime, kernel_time


def predicted(problem: Problem, params: HeuristicParams, work: ElementWork) -> KernelTime | None:
    """The time of a kernel by the model. None where no kernel runs, and in the interpreter.

    A reduction of no elements, or a result of none, takes the time of its start.
    """
    if not isinstance(params, KernelParams) or problem.on_cpu:
        return None
    return kernel_time(counts_of(in_order(problem, params), params, work), problem.device)
