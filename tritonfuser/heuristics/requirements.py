"""Conditions that several schedulers put on a problem, with the reasons for a refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .problem import Problem
from .programs import share_of_bandwidth
from .rows_in_registers import fits_registers


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

NO_CROSSING_TENSOR = Requirement(
    lambda p: not (p.inner and p.crossing_loses), "a large tensor lies across the rows of a program"
)


def first_reason(problem: Problem, *requirements: Requirement) -> str | None:
    """The reason of the first requirement that a problem does not meet, or None."""
    for each in requirements:
        if not each.holds(problem):
            return each.reason
    return None


MAX_CO_REDUCED = 64
"""Most rows that one program may reduce together. With more, a step has less than a cache line of
each."""

SEPARATE_BYTES = 1.5
"""Bytes that separate kernels move (one for the reductions, one for the ops that follow) as a
multiple of those of one kernel: they read the rows twice."""


def normalization_reason(problem: Problem, programs: int) -> str | None:
    """None, or why one kernel should not normalize rows, by ``programs`` programs of one row each.

    A row is the work of one program, so a few long rows leave most of the device idle.
    """
    if not problem.normalizes:
        return "no result along the reduced axis depends on a reduction"
    together = problem.co_reduced
    if together > MAX_CO_REDUCED:
        return f"{together} rows are too many to reduce together"
    programs, row = programs // together, problem.reduced * together
    if problem.inner and not problem.on_cpu and _long_rows_lose(problem, programs, row):
        sms = problem.device.sm_count
        return f"{programs} programs of {row} elements a row leave {sms} SMs idle"
    return None


def _long_rows_lose(problem: Problem, programs: int, row: int) -> bool:
    """Whether separate kernels, for the reductions and for the ops that follow, take less time.

    They read the rows twice, with all SMs. One kernel reads rows that fit in registers once, with
    as many SMs as it has programs.
    """
    together = _seconds_of_bytes(problem) / share_of_bandwidth(problem, programs)
    if not fits_registers(row):
        together *= SEPARATE_BYTES
    return together > _seconds_separate(problem)


def _seconds_separate(problem: Problem) -> float:
    """Seconds of separate kernels, with two more launches: for the second step of the split rows,
    and for the ops that follow."""
    return SEPARATE_BYTES * _seconds_of_bytes(problem) + 2 * problem.device.launch_s


def _seconds_of_bytes(problem: Problem) -> float:
    """Seconds to move all tensors that run along rows once."""
    items = sum(stream.item_bytes for stream in problem.streams if stream.along_r)
    return problem.parallel * problem.reduced * items / problem.device.bandwidth_bytes_per_s
