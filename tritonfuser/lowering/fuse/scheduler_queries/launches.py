"""Which segments share a launch, which the last programs of another kernel compute, and what later
kernels find in the L2 cache."""

from __future__ import annotations

from ....heuristics.cost.refetched import Passing, stays_in_cache
from ....heuristics.params import KernelParams
from ....heuristics.programs import Finishing, Sharing, finishing_params, saves_by_sharing
from ....symbolic.choices import choose, env_among
from ...problem_sizes import env_of


def finishing(facts: Finishing) -> KernelParams | None:
    """The params by which the last programs of a kernel compute a segment. None for not."""
    env = env_of(facts.problem) or env_among(facts.counters)
    return choose(env, finishing_params, facts)


def may_find_again(facts: Passing) -> bool:
    """Whether a later kernel finds what one has loaded in the L2 cache."""
    return choose(env_among(facts.moved, facts.held, facts.read), stays_in_cache, facts)


def shares_launch(facts: Sharing) -> bool:
    """Whether segments that need nothing of one another share a launch."""
    return choose(env_among(facts.moved), saves_by_sharing, facts)
