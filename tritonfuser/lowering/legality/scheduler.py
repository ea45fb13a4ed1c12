"""Whether kernels of a scheduler can compute what a group has. A reason is the answer, or None.

Whether the scheduler's kernels are fast there is not asked: that is for ``heuristics``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...symbolic.queries import assume_equal
from ..groups.fusion_group import FusionGroup


class _Rule(NamedTuple):
    """What a group must be.

    Attributes
    ----------
    holds : callable
        Whether a group is.
    reason : str
        What is in the way of one that is not.
    """

    holds: Callable[[FusionGroup], bool]
    reason: str


_FLAT = _Rule(lambda g: not (g.members or g.outer), "the kernel has reductions")
_NO_PRODUCT = _Rule(lambda g: g.product is None, "the kernel has a matrix product")
_REDUCES = _Rule(lambda g: bool(g.members or g.outer), "the kernel has no reduction")
_NO_SCAN = _Rule(lambda g: not g.scans, "the kernel has a scan")
_ROWS = _Rule(lambda g: not g.outer, "the kernel reduces over its rows as well")
_APART = _Rule(lambda g: not g.co_reduced, "the kernel reduces results of its own rows")
_ONE_PASS = _Rule(
    lambda g: g.depth <= 1 and not g.dependent_outputs,
    "a reduction's result is used along the reduced axis",
)
_EMPTY = _Rule(
    lambda g: assume_equal(g.loops.row_extent * g.loops.inner_extent, 0) and not g.outer,
    "there are elements to compute",
)

_NORMALIZES = (_REDUCES, _NO_PRODUCT, _NO_SCAN, _ROWS)
_RULES: dict[str, tuple[_Rule, ...]] = {
    "no_op": (_EMPTY,),
    "pointwise": (_FLAT,),
    "transpose": (_FLAT,),
    "reduction": (*_NORMALIZES, _APART, _ONE_PASS),
    "inner_persistent": _NORMALIZES,
    "outer_persistent": (*_NORMALIZES, _APART),
    "inner_outer_persistent": (
        _Rule(lambda g: bool(g.outer), "the kernel does not reduce over its rows"),
        _NO_PRODUCT,
        _NO_SCAN,
    ),
    "scan": (_Rule(lambda g: g.scans, "the kernel has no scan"), _ROWS),
    "matmul": (_Rule(lambda g: g.product is not None, "the kernel has no matrix product"),),
}


def why_not_scheduler(scheduler: str, group: FusionGroup | None) -> str | None:
    """None, or why no kernel of a scheduler can be that of a group.

    Parameters
    ----------
    group : FusionGroup or None
        None for an op that torch runs.
    """
    if group is None:
        return None if scheduler == "expr_eval" else "its scheduler is expr_eval"
    if scheduler == "expr_eval":
        return "torch does not run what is in the kernel"
    return next((rule.reason for rule in _RULES[scheduler] if not rule.holds(group)), None)
