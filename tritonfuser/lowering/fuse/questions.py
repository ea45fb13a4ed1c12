"""What is asked of schedulers about a group, by the sizes of this run.

Where sizes vary each question is kept, so that it can be asked at other sizes: a variant whose
schedule another size would not choose is not taken for that size.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from ...device import DeviceProperties
from ...heuristics import schedulers
from ...heuristics.integers import next_power_of_2
from ...heuristics.params import HeuristicParams
from ...heuristics.problem import Problem, Product, Stream
from ...heuristics.product_gain import FusedWork, gain
from ...symbolic.choices import choose, env_among, hinted
from ...symbolic.shape_env import ShapeEnv


def reject_reason(problem: Problem) -> str | None:
    """None where some scheduler takes the problem, else all their reasons."""
    env = env_of(problem)
    reason = schedulers.reject_reason(hinted(env, problem))
    if reason is not None:
        choose(env, is_refused, problem)
    return reason


def refusals(problem: Problem) -> list[str]:
    """Why each scheduler before the chosen one does not take the problem."""
    return schedulers.refusals(hinted(env_of(problem), problem))


def propose(problem: Problem) -> HeuristicParams:
    """The params of the scheduler that takes the problem; errors as ``schedulers.propose``."""
    return choose(env_of(problem), proposed, problem)


def split(problem: Problem) -> tuple[int, int]:
    """In how many parts the reductions should be done, and what that should be a multiple of."""
    return choose(env_of(problem), parts, problem)


def is_slow(product: Product, fused: FusedWork, device: DeviceProperties) -> bool:
    """Whether torch is expected to compute a product faster than a kernel with what is fused."""
    env = env_among(product.batch, product.m)
    return choose(env, loses, (product, fused, device))


def env_of(problem: Problem) -> ShapeEnv | None:
    """The shape env of the sizes in a problem. None where none varies."""
    p = problem
    sizes = chain.from_iterable(map(_sizes, p.streams))
    product = () if p.product is None else (p.product.batch, p.product.m)
    extents = (p.parallel, p.reduced, p.outer_batch, p.co_reduced, p.crossing)
    return env_among(*extents, *sizes, *product)


def _sizes(stream: Stream) -> tuple[int, ...]:
    steps = (stream.x_stride, stream.r_stride)
    return (*(s for s in steps if s is not None), stream.contiguous_run, stream.total_bytes)


# --- the questions, in plain numbers -------------------------------------------------------------


def is_refused(problem: Problem) -> bool:
    """Whether no scheduler takes the problem."""
    return schedulers.reject_reason(problem) is not None


def proposed(problem: Problem) -> HeuristicParams:
    """The params of the scheduler that takes the problem.

    A row that varies has no tails. Where its params would have some, it counts as the block that
    it needs.
    """
    found = schedulers.propose(problem)
    tiling = found.row_tiling
    if not problem.row_varies or tiling is None or not tiling.tails:
        return found
    return schedulers.propose(replace(problem, reduced=next_power_of_2(problem.reduced)))


def parts(problem: Problem) -> tuple[int, int]:
    """In how many parts the reductions should be done, and what that should be a multiple of."""
    return schedulers.split(problem), schedulers.interleave(problem)


def loses(facts: tuple[Product, FusedWork, DeviceProperties]) -> bool:
    """Whether one kernel for a product and what is fused with it saves no time."""
    return gain(*facts) <= 0
