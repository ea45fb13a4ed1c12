"""The table of schedulers in order of priority, and the queries that segmentation makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..device import DeviceProperties
from ..errors import SchedulingError
from . import (
    inner_outer_persistent,
    inner_persistent,
    matmul,
    no_op,
    outer_persistent,
    pointwise,
    reduction,
    scan,
    transpose,
)
from .cost.kernels import Times
from .cost.model import KernelTime
from .cost.product_time import product_times
from .params import HeuristicParams, KernelParams
from .problem import ElementWork, Problem

TimeOf = Callable[[HeuristicParams], KernelTime | None]
"""Params in, the time of their kernel out."""


def _one(problem: Problem) -> int:
    return 1


def _none(problem: Problem) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A family of kernels.

    Attributes
    ----------
    name : str
        Its name, as in its params class.
    reject_reason : callable
        None where it takes a problem, else why not.
    propose : callable
        The params of the kernel.
    split : callable
        In how many parts the reductions or scans should be done. 1 for one step.
    interleave : callable
        What the number of parts should be a multiple of, where parts take rows in turn. 0 where
        each part has neighbouring rows.
    times : callable
        The times of the kernels of a problem by the cost model, as a function of params. None where
        no kernel runs, and in the interpreter.
    has_independent_fields : bool
        Whether fields of the params can be changed one by one.
    """

    name: str
    reject_reason: Callable[[Problem], str | None]
    propose: Callable[[Problem], HeuristicParams]
    split: Callable[[Problem], int] = _one
    interleave: Callable[[Problem], int] = _none
    times: Callable[[Problem, ElementWork], TimeOf] = Times
    has_independent_fields: bool = True


OF_CORES = (
    Scheduler(
        "matmul",
        matmul.reject_reason,
        matmul.propose,
        matmul.split,
        times=product_times,
        has_independent_fields=False,
    ),
)
"""Of kernels that are built around an op: the op's facts name one of these."""

_OF_CO_REDUCED_ROWS = (
    Scheduler("inner_persistent", inner_persistent.reject_reason, inner_persistent.propose),
)

SCHEDULERS = (
    Scheduler("no_op", no_op.reject_reason, no_op.propose),
    *OF_CORES,
    Scheduler("scan", scan.reject_reason, scan.propose, scan.split),
    Scheduler(
        "inner_outer_persistent",
        inner_outer_persistent.reject_reason,
        inner_outer_persistent.propose,
        inner_outer_persistent.split,
        inner_outer_persistent.interleave,
    ),
    *_OF_CO_REDUCED_ROWS,
    Scheduler(
        "outer_persistent",
        outer_persistent.reject_reason,
        outer_persistent.propose,
        outer_persistent.split,
        outer_persistent.interleave,
    ),
    Scheduler(
        "reduction",
        reduction.reject_reason,
        reduction.propose,
        reduction.split,
        reduction.interleave,
    ),
    Scheduler("transpose", transpose.reject_reason, transpose.propose),
    Scheduler("pointwise", pointwise.reject_reason, pointwise.propose),
)
"""In order of priority: the first that takes a problem schedules it."""

BY_NAME = {row.name: row for row in SCHEDULERS}


def _candidates(problem: Problem) -> tuple[Scheduler, ...]:
    """The schedulers to ask. Kernels around an op, and rows reduced together, have one each."""
    if problem.core is not None:
        return (BY_NAME[problem.core.scheduler],)
    return _OF_CO_REDUCED_ROWS if problem.co_reduced > 1 else SCHEDULERS


def _first(problem: Problem) -> tuple[Scheduler | None, list[str]]:
    refusals: list[str] = []
    for scheduler in _candidates(problem):
        reason = scheduler.reject_reason(problem)
        if reason is None:
            return scheduler, refusals
        refusals.append(f"{scheduler.name}: {reason}")
    return None, refusals


def refusals(problem: Problem) -> list[str]:
    """Why each scheduler before the chosen one does not take the problem."""
    return _first(problem)[1]


def reject_reason(problem: Problem) -> str | None:
    """None where some scheduler takes the problem, else all their reasons."""
    scheduler, found = _first(problem)
    return None if scheduler is not None else "; ".join(found)


def propose(problem: Problem) -> HeuristicParams:
    """The params of the scheduler that takes the problem.

    Raises
    ------
    SchedulingError
        None does.
    """
    scheduler, found = _first(problem)
    if scheduler is None:
        raise SchedulingError(
            "Can not find a scheduler to schedule fusion segment: " + "; ".join(found)
        )
    return _launched(scheduler.propose(problem), problem.device)


def _launched(params: HeuristicParams, device: DeviceProperties) -> HeuristicParams:
    """Params of no more warps than a program of the device has: rules count warps of 32 threads."""
    if not isinstance(params, KernelParams) or params.num_warps <= device.max_warps_per_block:
        return params
    return replace(params, num_warps=device.max_warps_per_block)


def interleave(problem: Problem) -> int:
    """What interleaved parts should be a multiple of; 0 where parts have neighbouring rows."""
    scheduler, _ = _first(problem)
    return 0 if scheduler is None else scheduler.interleave(problem)


def split(problem: Problem) -> int:
    """In how many parts the reductions of a problem should be done, 1 for one step."""
    scheduler, _ = _first(problem)
    return 1 if scheduler is None else scheduler.split(problem)


def kernel_times(problem: Problem, work: ElementWork, scheduler: str) -> TimeOf:
    """The times of a scheduler's kernels by the model, as a function of params."""
    row = BY_NAME.get(scheduler)
    return _no_time if row is None else row.times(problem, work)


def _no_time(params: HeuristicParams) -> None:
    """No predicted time: torch runs the op."""


def kernel_seconds(
    problem: Problem, params: HeuristicParams, work: ElementWork
) -> KernelTime | None:
    """The time of a kernel by the model. None where no kernel runs, and in the interpreter."""
    return kernel_times(problem, work, params.scheduler)(params)
