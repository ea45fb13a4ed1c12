"""The cost of random numbers: how many of them a thread draws by one Philox counter."""

from __future__ import annotations

from ..params import KernelParams, PointwiseParams
from ..problem import ElementWork, Problem
from .constants import MOVED_DRAW
from .tiles import KernelTile, is_flat_tile

RANDOM_WORDS = 4
"""Random words of one Philox counter; as many elements of a tensor share a counter. A thread should
have all of them. Where the length of rows is no multiple of it, lanes exchange them."""


def philox_cost(
    problem: Problem, work: ElementWork, params: KernelParams, tile: KernelTile, elements: float
) -> float:
    """The cost of the random numbers of an element. The unit is a number whose Philox counter four
    numbers share.

    Parameters
    ----------
    elements : float
        Elements of a thread.
    """
    alone = min(max(elements, 1.0), 1.0 * RANDOM_WORDS)
    shared = alone if tile.staged else _cost_of_shared(problem, params, elements, alone)
    return (work.draws - work.lone_draws) * shared + work.lone_draws * alone


def _cost_of_shared(problem: Problem, params: KernelParams, elements: float, alone: float) -> float:
    """The cost of a random number whose counter neighbours may share."""
    if _draws_singly(problem, params):
        return alone
    if not problem.is_flat and problem.reduced % RANDOM_WORDS:
        # Rows begin inside counters: eight adjacent elements need the words of three counters.
        return MOVED_DRAW * min(max(2 * RANDOM_WORDS / elements, 1.0), 2.0)
    return 1.0


def _draws_singly(problem: Problem, params: KernelParams) -> bool:
    """Whether each random number takes a Philox counter of its own: adjacent elements of a thread
    are not adjacent in the random tensor, as far as that is known."""
    if not is_flat_tile(problem, params):
        return not problem.inner
    if isinstance(params, PointwiseParams):
        return not _is_last_dim_innermost(problem, params)
    along_x = [n for place, n in enumerate(problem.axes) if place not in problem.across]
    dims = [n for n in along_x if n > 1]
    return len(dims) > 1 and dims[-1] % RANDOM_WORDS != 0


def _is_last_dim_innermost(problem: Problem, params: PointwiseParams) -> bool:
    """Whether the positions of a one-sided tile run along the last dim of the random tensor."""
    known = [number for free in problem.order for number in free]
    sizes = dict(zip(known, problem.axes, strict=False))
    order = [n for n in params.axes or known if sizes.get(n, 1) > 1]
    return not order or order[-1] == max(order)
