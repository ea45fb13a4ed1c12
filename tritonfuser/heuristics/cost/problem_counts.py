"""What no params change in the counts of a problem's kernels."""

from __future__ import annotations

from ...device import WORD_BYTES
from ..problem import ElementWork, Problem
from .constants import CARRIED_BY_MOMENTS
from .counts import ProblemCounts
from .reduction_layout import column_operand_share


def problem_counts(problem: Problem, work: ElementWork) -> ProblemCounts:
    """The fields of ``Counts`` that no params change."""
    columns = problem.outer_members
    return ProblemCounts(
        loads=float(sum([not s.is_store for s in problem.streams])),
        draws=float(work.draws),
        reductions=float(work.reductions),
        columns=float(columns),
        scans=scan_share(problem, work) * work.reductions,
        loaded_words=problem.loaded_words,
        is_flat=float(not problem.reduction_depth and not columns and not problem.scans),
        register_factor=work.registers,
    )


def scan_share(problem: Problem, work: ElementWork) -> float:
    """The share of a kernel's reductions that are scans, which are done in every step of a loop.

    0 for a scan over a dim of one position, which ``ElementWork`` may not count as a reduction.
    """
    if not problem.scans:
        return 0.0
    return (work.reductions - work.carried) / max(work.reductions, 1)


def accumulators(problem: Problem, work: ElementWork) -> float:
    """Numbers that an element of a step carries along a row, in one of the passes over it.

    Threads carry the maximum of an online softmax and its sum, and programs the sums of columns.
    """
    if problem.outer_members or not work.reductions:
        return 0.0
    if problem.online_softmax:
        return 1.0
    moments = 0 if problem.scans else max(work.reductions - work.carried, 0)
    carried = work.carried + CARRIED_BY_MOMENTS * moments
    return max(carried / max(problem.passes_to_reduce, 1), 1.0)


def column_operands(problem: Problem, work: ElementWork) -> float:
    """Reductions along rows whose operand is contiguous along x although most bytes are not."""
    return work.reductions * column_operand_share(problem) if work.reductions else 0.0


def row_words(problem: Problem) -> float:
    """32-bit words that are loaded for a position of a row, of what lies along rows alone."""
    along = (s for s in problem.streams if s.along_r and not s.along_x and not s.is_store)
    return sum(max(s.item_bytes / WORD_BYTES, 0.5) for s in along)
