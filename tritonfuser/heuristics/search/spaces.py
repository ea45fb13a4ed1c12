"""The search space of each scheduler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..problem import Problem
from .flat import pointwise_space, transpose_space
from .products import matmul_space
from .rows import inner_outer_space, rows_space, scan_space
from .space import Alternative, SearchSpace


def _nothing(scheduler: str, problem: Problem) -> SearchSpace:
    """Nothing to decide."""
    return SearchSpace(scheduler, (Alternative({}, ()),))


SPACES: dict[str, Callable[[Problem], SearchSpace]] = {
    "no_op": partial(_nothing, "no_op"),
    "expr_eval": partial(_nothing, "expr_eval"),
    "pointwise": pointwise_space,
    "transpose": transpose_space,
    "reduction": partial(rows_space, "reduction"),
    "inner_persistent": partial(rows_space, "inner_persistent"),
    "outer_persistent": partial(rows_space, "outer_persistent"),
    "inner_outer_persistent": inner_outer_space,
    "scan": scan_space,
    "matmul": matmul_space,
}
"""By the name of the scheduler."""
