"""The table of schedulers in order of priority, and the queries that segmentation asks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

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
"""Params in, the predicted time of their kernel out."""


def _one(problem: Problem) -> int:
    return 1


def _none(problem: Problem) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A family of kernels: one row of the table.

    Attributes
    ----------
    name : str
        Its name, as in its params class.
    reject_reason : callable
        None if it accepts a problem; otherwise the reason why not.
    propose : callable
        The params of the kernel, by rules.
    split : callable
        The number of parts into which reductions or scans should be split. 1 for no split.
    interleave : callable
        A divisor of the number of parts, where parts have interleaved rows. 0 where each part has
        adjacent rows.
    times : callable
        The predicted times of a problem's kernels, as a function of params: None for segments
        without a kernel, and for the interpreter.
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
"""The schedulers of kernels that are built around an op: ``Core.scheduler`` names one of them."""

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
"""In order of priority: the first one that accepts a problem schedules it."""

BY_NAME = {row.name: row for row in SCHEDULERS}


def _candidates(problem: Problem) -> tuple[Scheduler, ...]:
    """The schedulers to ask: a single one for kernels around an op, and for co-reduced rows."""
    if problem.core is not None:
        return (BY_NAME[problem.core.scheduler],)
    return _OF_CO_REDUCED_ROWS if problem.co_reduced > 1 else SCHEDULERS


def _accepting(problem: Problem) -> Scheduler | None:
    """The first scheduler that accepts a problem."""
    for scheduler in _candidates(problem):
        if scheduler.reject_reason(problem) is None:
            return scheduler
    return None


def refusals(problem: Problem) -> list[str]:
    """The reasons of the schedulers before the accepting one."""
    found: list[str] = []
    for scheduler in _candidates(problem):
        reason = scheduler.reject_reason(problem)
        if reason is None:
            break
        found.append(f"{scheduler.name}: {reason}")
    return found


def reject_reason(problem: Problem) -> str | None:
    """None if some scheduler accepts the problem; otherwise the reasons of all."""
    return None if _accepting(problem) is not None else "; ".join(refusals(problem))


def propose(problem: Problem) -> HeuristicParams:
    """The params that the accepting scheduler proposes.

    Raises
    ------
    SchedulingError
        No scheduler accepts the problem.
    """
    scheduler = _accepting(problem)
    if scheduler is None:
        raise SchedulingError(
            "Can not find a scheduler to schedule fusion segment: " + "; ".join(refusals(problem))
        )
    return _launched(scheduler.propose(problem), problem.device)


def _launched(params: HeuristicParams, device: DeviceProperties) -> HeuristicParams:
    """Params with at most as many warps as the device allows: rules count warps of 32 threads."""
    if not isinstance(params, KernelParams) or params.num_warps <= device.max_warps_per_block:
        return params
    return replace(params, num_warps=device.max_warps_per_block)


def interleave(problem: Problem) -> int:
    """A divisor of the number of interleaved parts; 0 where parts have adjacent rows."""
    scheduler = _accepting(problem)
    return 0 if scheduler is None else scheduler.interleave(problem)


def split(problem: Problem) -> int:
    """The number of parts into which the reductions of a problem should be split; 1 for no
    split."""
    scheduler = _accepting(problem)
    return 1 if scheduler is None else scheduler.split(problem)


def kernel_times(problem: Problem, work: ElementWork, scheduler: str) -> TimeOf:
    """The predicted times of a scheduler's kernels, as a function of params."""
    row = BY_NAME.get(scheduler)
    return _no_time if row is None else row.times(problem, work)


def _no_time(params: HeuristicParams) -> None:
    """No predicted time: torch runs the op."""


@lru_cache(maxsize=1024)
def kernel_seconds(
    problem: Problem, params: HeuristicParams, work: ElementWork
) -> KernelTime | None:
    """The predicted time of a kernel. None without a kernel, and for the interpreter.

    Cached: segmentations of a fusion have most of their kernels in common.
    """
    return kernel_times(problem, work, params.scheduler)(params)
