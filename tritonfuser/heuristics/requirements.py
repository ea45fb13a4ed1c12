"""What several schedulers require of a problem, and the reasons they give for refusing one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .problem import Problem


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on problems.

    Attributes
    ----------
    holds : callable
        Whether a problem meets it.
    reason : str
        Why a scheduler refuses a problem that does not, as a clause about the segment.
    """

    holds: Callable[[Problem], bool]
    reason: str


HAS_REDUCTION = Requirement(lambda p: p.reduction_depth > 0, "it has no reduction")
HAS_SCAN = Requirement(lambda p: p.scans, "it has no scan")
NO_SCAN = Requirement(lambda p: not p.scans, "it has a scan")
NO_OUTER_REDUCTION = Requirement(lambda p: not p.outer_members, "it reduces over rows as well")
FLAT = Requirement(lambda p: not (p.reduction_depth or p.outer_members), "it has reductions")
ROWS_ALONG_MEMORY = Requirement(lambda p: p.inner, "rows lie across memory")
ROWS_ACROSS_MEMORY = Requirement(lambda p: not p.inner, "rows lie along memory")

ROWS_APART = Requirement(
    lambda p: not (p.inner and p.crosses), "a large tensor lies across the rows of a program"
)


def first_reason(problem: Problem, *requirements: Requirement) -> str | None:
    """The reason of the first requirement that a problem does not meet, or None."""
    return next((each.reason for each in requirements if not each.holds(problem)), None)


MAX_CO_REDUCED = 64
"""Rows that one program may reduce together. Of more, a step has less than a cache line each."""

LONG_ROW_ELEMENTS = 1 << 16
"""Elements of a row from which separate kernels beat a few programs: a pass takes one SM some 3 us
(H200)."""


def normalization_reason(problem: Problem, programs: int) -> str | None:
    """Why one kernel should not normalize rows with ``programs`` programs of a row, or None.

    A row is the work of one program, so a few long rows leave most of the device idle.
    """
    if problem.reduction_depth < 2 and not problem.dependent_outputs:
        return "no result along the reduced axis depends on a reduction"
    together = problem.co_reduced
    if together > MAX_CO_REDUCED:
        return f"{together} rows are too many to reduce together"
    programs, row = programs // together, problem.reduced * together
    sms = problem.device.sm_count
    if not problem.on_cpu and programs * 4 < sms * 3 and row > LONG_ROW_ELEMENTS:
        return f"{programs} programs of {row} elements a row leave {sms} SMs idle"
    return None
