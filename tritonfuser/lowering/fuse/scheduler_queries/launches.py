"""Which segments share a launch, and which the last programs of another kernel compute."""

from __future__ import annotations

from ....heuristics.params import KernelParams
from ....heuristics.programs import Finishing, Sharing, finishing_params, saves_by_sharing
from ....symbolic.choices import choose, env_among
from ...problem_sizes import env_of


def finishing(facts: Finishing) -> KernelParams | None:
    """The params by which the last programs of a kernel compute a segment. None for not."""
    env = env_of(facts.problem) or env_among(facts.counters)
    return choose(env, finishing_params, facts)


def shares_launch(facts: Sharing) -> bool:
    """Whether segments that need nothing of one another share a launch."""
    return choose(env_among(facts.moved), saves_by_sharing, facts)
