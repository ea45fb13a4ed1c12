"""Chooses the params of a kernel: by the rules, or by the cost model where that is much faster.

The rules were tuned by measurements of typical kernels, for which they are more precise than the
model. For other kernels they may be far off. So the model is asked if the predicted time of the
rules' params is far enough above the lower bound of the problem, and decides if it predicts a gain
that is larger than its own error (``thresholds.py``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

from ..cost.model import KernelTime
from ..params import (
    HeuristicParams,
    InnerPersistentParams,
    KernelParams,
    ReductionParams,
)
from ..problem import ElementWork, Problem
from ..schedulers import BY_NAME, kernel_seconds, propose
from .local_search import fastest_near
from .masked_steps import has_masks_for_programs, with_masks_for_programs
from .reread_order import with_shorter_reuse
from .thresholds import GAIN, LEAST_SAVED_S, seconds_to_beat
from .warps import Kernels, spread_over_warps

GAIN_OF_FLAT = 0.7
"""``GAIN`` of kernels without rows that read at no indices, whose rules the model knows no better:
of six of those kernels that are predicted at 0.66 to 0.9 times the rules' time, the rules' took
0.99 times as long."""

GAIN_OF_PADDED = 0.85
"""``GAIN`` of rows in registers that are rounded up where the rules hold their ends in tails. H200,
layer norms of random sizes: seven that are predicted at 0.90 to 0.94 times the rules' time take
0.93 to 1.04 times (1.00 in the geometric mean), one that is predicted at 0.75 takes 0.63."""

LOADED_PER_TURN = 64
"""Elements of a tile that a thread loads at once, about. A thread with more loads them in several
turns, whose latency the model does not count: such params have to save ``LEAST_SAVED_S`` for each
turn. H200, sums over columns by tiles of 16 x 1024: 4.6 us by 4 warps, for which 3.7 are predicted,
2.7 by 16."""

FAR_STORE_BYTES = 1024
"""Cost of a stored run that is far from the one before, as the bytes that memory moves in the same
time. Fitted to the one kernel in the docstring of ``_seconds_with_far_stores``."""

FAR_STRIDE_BYTES = 1 << 17
"""Bytes between two stored runs at which half of that cost is added."""


@lru_cache(maxsize=4096)
def chosen(problem: Problem, work: ElementWork) -> HeuristicParams:
    """The params of a kernel.

    Raises
    ------
    SchedulingError
        No scheduler takes the problem.
    """
    rules = propose(problem)
    if not isinstance(rules, KernelParams) or not can_vary(problem, rules):
        return rules
    kernels = Kernels(problem, work)
    found = spread_over_warps(kernels, _by_rules_or_model(kernels, rules))
    found = _sized_again(kernels, with_shorter_reuse(kernels, found), found)
    return with_masks_for_programs(kernels, found)


def _sized_again(
    kernels: Kernels, params: HeuristicParams, before: HeuristicParams
) -> HeuristicParams:
    """The params with sizes that were chosen anew for their order of axes, if they are much faster.

    The sizes were chosen for another order of axes (``before``), to avoid refetches in that order.
    """
    first = kernels.time(params) if params != before else None
    if first is None or not isinstance(params, KernelParams):
        return params
    given_order: dict[str, Any] = {"axes": getattr(params, "axes", ())}
    default_order: dict[str, Any] = {"axes": ()}
    most = seconds_to_beat(kernels.problem, first.seconds)
    found = fastest_near(kernels.in_order(params), replace(params, **default_order), most)
    return params if found is None else replace(found.params, **given_order)


def _by_rules_or_model(kernels: Kernels, rules: KernelParams) -> HeuristicParams:
    """The rules' params, or others that the model predicts to be much faster."""
    first, launch = kernels.time(rules), kernels.launch_s
    if first is None:
        return rules
    most = seconds_to_beat(kernels.problem, first.seconds, _gain(kernels.problem))
    if kernels.least_s - launch > most:
        return rules
    found = fastest_near(kernels, rules, most)
    if found is None or found.time.seconds > most:
        return rules
    before = _seconds_with_far_stores(kernels.problem, rules, first) + launch
    after = _seconds_with_far_stores(kernels.problem, found.params, found.time) + launch
    least_saved = LEAST_SAVED_S * _load_turns(kernels.problem, found.params)
    gain = GAIN_OF_PADDED if _is_padded(found.params, rules) else _gain(kernels.problem)
    return found.params if after <= min(gain * before, before - least_saved) else rules


def _is_padded(params: HeuristicParams, rules: KernelParams) -> bool:
    """Whether rows in registers are rounded up to a power of two, where the rules have tails."""
    if not isinstance(params, InnerPersistentParams) or not params.persistent:
        return False
    return isinstance(rules, InnerPersistentParams) and bool(rules.tails) and not params.tails


def _load_turns(problem: Problem, params: HeuristicParams) -> float:
    """Number of turns in which a thread loads its elements of a tile of rows; at least 1."""
    sides = (getattr(params, name, 1) for name in ("block_x", "block_m", "block_r"))
    threads = getattr(params, "num_warps", 1) * problem.device.warp_size
    return max(prod(sides) / (LOADED_PER_TURN * threads), 1.0)


def much_faster(
    problem: Problem, work: ElementWork, near: KernelParams, seconds: float
) -> KernelParams | None:
    """Params in the search space around ``near`` that are predicted to be much faster.

    None if there are none.

    Parameters
    ----------
    near : KernelParams
        Params from which the search starts, in the place of the rules'.
    seconds : float
        The time to beat.
    """
    kernels, most = Kernels(problem, work), seconds_to_beat(problem, seconds)
    if kernels.least_s - kernels.launch_s > most:
        return None
    first, found = kernels.time(near), fastest_near(kernels, near, most)
    if first is None or found is None:
        return None
    far_stores = _seconds_with_far_stores(problem, near, first) - float(first.seconds)
    after = _seconds_with_far_stores(problem, found.params, found.time)
    if after > seconds_to_beat(problem, seconds + far_stores):
        return None
    params = with_masks_for_programs(kernels, with_shorter_reuse(kernels, found.params))
    return params if isinstance(params, KernelParams) else None


def _gain(problem: Problem) -> float:
    """Share of the time of the rules' params that others may be predicted to take."""
    return GAIN_OF_FLAT if problem.is_flat and not problem.gathers else GAIN


def _seconds_with_far_stores(problem: Problem, params: HeuristicParams, time: KernelTime) -> float:
    """Predicted seconds, plus the cost of stores with large strides beside sums over columns: each
    row of a program's tile is a run of its own, a row's stride from the next one.

    The model does not count this cost. H200: a gelu backward with its bias gradient of 128 x 262144
    in bfloat16, whose rows are 512 KiB apart, took 1.7 times as long with pieces of 128 bytes in
    place of 4 KiB, 0.76 times by the model. What is loaded alone does not count: sums over columns
    of 544 x 296898 took 226 us by pieces of 4 KiB, 98 by torch.compile.
    """
    cost_bytes = 0.0
    for store in problem.full_stores if isinstance(params, ReductionParams) else ():
        stride = store.item_bytes * (store.r_stride or 0) / FAR_STRIDE_BYTES
        runs = store.total_bytes / (store.item_bytes * getattr(params, "block_x", 1))
        cost_bytes += runs * FAR_STORE_BYTES * stride**2 / (stride**2 + 1)
    return float(time.with_more_bytes(cost_bytes, problem.device).seconds)


def difference(problem: Problem, work: ElementWork, params: HeuristicParams) -> str:
    """Why params differ from the rules', in words for reports; empty if they do not."""
    rules = propose(problem)
    if params == rules:
        return ""
    if has_masks_for_programs(params, rules):
        return f"a step behind the loop would leave registers for fewer programs at a time: {rules}"
    before, after = (kernel_seconds(problem, each, work) for each in (rules, params))
    if before is None or after is None:
        return ""
    times = f"{1e6 * after.seconds:.3g} us by the cost model, {1e6 * before.seconds:.3g} us"
    return f"{times} by the rules' {rules}"


def can_vary(problem: Problem, params: KernelParams) -> bool:
    """Whether fields of params can be changed independently of each other.

    Not for schedulers whose fields depend on one another, for rows that programs share, and for
    co-reduced rows.
    """
    is_free = problem.co_reduced == 1 and getattr(params, "parts", 1) == 1
    return is_free and BY_NAME[params.scheduler].has_independent_fields
