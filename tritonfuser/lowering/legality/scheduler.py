"""Whether a scheduler's kernels can compute a segment. Returns a reason, or None.

Whether the scheduler's kernels are fast there is not asked: that is for ``heuristics``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...heuristics.problem import Problem
from ...symbolic.queries import assume_equal, is_known_equal


class _Rule(NamedTuple):
    """What a problem must be.

    Attributes
    ----------
    holds : callable
        Whether one is.
    reason : str
        What is in the way of one that is not.
    """

    holds: Callable[[Problem], bool]
    reason: str


def _reduces(problem: Problem) -> bool:
    """Whether the kernel has reductions or scans, or is built around an op."""
    along = bool(problem.reduction_depth) or problem.scans or problem.core is not None
    return along or bool(problem.outer_members)


_FLAT = _Rule(lambda p: not _reduces(p), "the kernel has reductions")
_REDUCES = _Rule(_reduces, "the kernel has no reduction")
_NO_SCAN = _Rule(lambda p: not p.scans, "the kernel has a scan")
_ROWS = _Rule(lambda p: not p.outer_members, "the kernel reduces over its rows as well")
_NOT_CO_REDUCED = _Rule(
    lambda p: is_known_equal(p.co_reduced, 1), "the kernel reduces results of its own rows"
)
_ONE_PASS = _Rule(
    lambda p: p.reduction_depth <= 1 and not p.dependent_outputs,
    "a reduction's result is used along the reduced axis",
)
_EMPTY = _Rule(
    # A reduction of no elements has results all the same, so rows of no elements do not count.
    lambda p: assume_equal(p.parallel, 0) and not p.outer_members,
    "there are elements to compute",
)

_NORMALIZES = (_REDUCES, _NO_SCAN, _ROWS)
_RULES: dict[str, tuple[_Rule, ...]] = {
    "no_op": (_EMPTY,),
    "pointwise": (_FLAT,),
    "transpose": (_FLAT,),
    "reduction": (*_NORMALIZES, _NOT_CO_REDUCED, _ONE_PASS),
    "inner_persistent": _NORMALIZES,
    "outer_persistent": (*_NORMALIZES, _NOT_CO_REDUCED),
    "inner_outer_persistent": (
        _Rule(lambda p: p.outer_members > 0, "the kernel does not reduce over its rows"),
        _NO_SCAN,
    ),
    "scan": (_Rule(lambda p: p.scans, "the kernel has no scan"), _ROWS),
    "matmul": (_Rule(lambda p: p.core is not None, "the kernel has no matrix product"),),
}


def why_not_scheduler(scheduler: str, problem: Problem | None) -> str | None:
    """None, or why no kernel of a scheduler can compute what a segment has.

    Parameters
    ----------
    problem : Problem or None
        The segment's facts. None for an op that torch runs.
    """
    if problem is None:
        return None if scheduler == "expr_eval" else "its scheduler is expr_eval"
    if scheduler == "expr_eval":
        return "torch does not run what is in the kernel"
    if problem.core is not None and scheduler != problem.core.scheduler:
        return f"the kernel has {problem.core.words}"
    return next((rule.reason for rule in _RULES[scheduler] if not rule.holds(problem)), None)
