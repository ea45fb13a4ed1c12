"""The table of schedulers in order of priority, and the questions segmenting asks of them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..errors import SchedulingError
from . import inner_outer_persistent, matmul, no_op, persistent, pointwise, reduction, scan
from .params import HeuristicParams
from .problem import Problem


def _one(problem: Problem) -> int:
    return 1


def _none(problem: Problem) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A family of kernels: whether it takes a problem, with what params, in how many parts.

    ``interleave`` says whether rows go to the parts in turn: 0 where each part has neighbouring
    rows, else a number that the parts should be a multiple of.
    """

    name: str
    reject_reason: Callable[[Problem], str | None]
    propose: Callable[[Problem], HeuristicParams]
    split: Callable[[Problem], int] = _one
    interleave: Callable[[Problem], int] = _none


_OF_PRODUCTS = (Scheduler("matmul", matmul.reject_reason, matmul.propose, matmul.split),)

_OF_CO_REDUCED_ROWS = (
    Scheduler(
        "inner_persistent",
        partial(persistent.reject_reason, inner=True),
        persistent.propose_inner,
    ),
)

SCHEDULERS = (
    Scheduler("no_op", no_op.reject_reason, no_op.propose),
    *_OF_PRODUCTS,
    Scheduler("scan", scan.reject_reason, scan.propose),
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
        partial(persistent.reject_reason, inner=False),
        persistent.propose_outer,
        persistent.split_outer,
        persistent.interleave_outer,
    ),
    Scheduler(
        "reduction",
        reduction.reject_reason,
        reduction.propose,
        reduction.split,
        reduction.interleave,
    ),
    Scheduler("transpose", pointwise.transpose_reject_reason, pointwise.propose_transpose),
    Scheduler("pointwise", pointwise.reject_reason, pointwise.propose),
)
"""First that takes a segment wins."""


def _candidates(problem: Problem) -> tuple[Scheduler, ...]:
    """Those that can take it: what goes with a matrix product has only one, or none."""
    if problem.product is not None:
        return _OF_PRODUCTS
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


def propose(problem: Problem) -> tuple[str, HeuristicParams]:
    """The scheduler that takes the problem, and its params.

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
    return scheduler.name, scheduler.propose(problem)


def interleave(problem: Problem) -> int:
    """What the parts should be a multiple of where rows go to them in turn, or 0."""
    scheduler, _ = _first(problem)
    return 0 if scheduler is None else scheduler.interleave(problem)


def split(problem: Problem) -> int:
    """In how many parts the reductions of a problem should be done, 1 for one step."""
    scheduler, _ = _first(problem)
    return 1 if scheduler is None else scheduler.split(problem)
