"""The cost of random numbers: how many of them a thread draws by one Philox counter."""

from __future__ import annotations

from ..params import KernelParams, PointwiseParams
from ..problem import Problem
from .constants import MOVED_DRAW
from .tiles import KernelTile, is_flat_tile

RANDOM_WORDS = 4
"""Random words of one Philox counter. Where the length of rows is no multiple of it, they have to
be exchanged between lanes."""


def philox_cost(problem: Problem, params: KernelParams, tile: KernelTile, elements: float) -> float:
    """The cost of a random number, as a multiple of the cost where four numbers share one Philox
    counter.

    Parameters
    ----------
    elements : float
        Elements of a thread.
    """
    if tile.staged or _draws_singly(problem, params):
        return min(max(elements, 1.0), 1.0 * RANDOM_WORDS)
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
