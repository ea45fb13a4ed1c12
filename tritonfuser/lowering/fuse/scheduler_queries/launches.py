"""Which segments share a launch, which ones the last programs of another kernel compute, and which
loads of a later kernel hit the L2 cache."""

from __future__ import annotations

from ....heuristics.cost.memory.refetched import LaterLoad, stays_in_cache
from ....heuristics.params import KernelParams
from ....heuristics.programs import Finishing, Sharing, finishing_params, saves_by_sharing
from ....symbolic.choices import choose, env_among
from ...problem_sizes import env_of


def finishing(facts: Finishing) -> KernelParams | None:
    """The params of a segment that the last programs of another kernel compute. None where a kernel
    of its own is faster."""
    env = env_of(facts.problem) or env_among(facts.counters)
    return choose(env, finishing_params, facts)


def may_hit_l2(load: LaterLoad) -> bool:
    """Whether a later kernel finds a tensor, which an earlier one loads, in the L2 cache."""
    env = env_among(load.reuse_distance, load.tensor_bytes, load.read_bytes)
    return choose(env, stays_in_cache, load)


def shares_launch(facts: Sharing) -> bool:
    """Whether independent segments share a launch."""
    return choose(env_among(facts.moved), saves_by_sharing, facts)
