"""A local search for the params of the least predicted time, in the space around given ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from itertools import groupby
from math import log2

from ..params import HeuristicParams, KernelParams
from .candidates import Candidates, Timed
from .model_space import VARIED_FIELDS, limited_to_rules, with_sizes_varied, within_registers
from .spaces import SPACES
from .warps import Kernels

STEPS = 4
"""Most steps from the fastest params of the coarse sample."""


def fastest_near(kernels: Kernels, rules: KernelParams, most: float) -> Timed | None:
    """The fastest params by a local search, which starts from the fastest of a coarse sample.

    None if all may spill registers, or none takes ``most`` seconds or less. Of params that are
    equally fast, as far as the model can tell, those nearest to the rules' are taken, so that
    similar sizes have similar kernels.

    Parameters
    ----------
    rules : KernelParams
        Params whose scheduler, order of axes and alignment are kept.
    most : float
        Seconds that the params may be predicted to take.
    """
    problem = kernels.problem
    space = limited_to_rules(SPACES[rules.scheduler](problem), problem, rules)
    space = within_registers(space, problem.device, kernels.registers_per_element)
    candidates = Candidates(kernels, with_sizes_varied(space, rules))
    if candidates.all_exceed(most):
        return None
    asked = candidates.coarse()
    best = candidates.fastest(asked)
    for _ in range(STEPS if best else 0):
        assert best is not None
        near = [*candidates.neighbours(best.number)]
        asked += near
        faster = candidates.fastest(near, best.time.seconds)
        if faster is None or faster.time.seconds >= best.time.seconds:
            break
        best = faster
    if best is None or best.time.seconds > most:
        return None
    return _nearest(candidates, asked, best, rules)


def _nearest(
    candidates: Candidates, asked: Iterable[int], best: Timed, rules: KernelParams
) -> Timed:
    """Of the params that are as fast as the best, those nearest to the rules'."""
    near = candidates.may_be_as_fast(asked, best)
    distances = {number: _distance(params, rules) for number, params in near.items()}
    for _, group in groupby(sorted(near, key=distances.__getitem__), key=distances.__getitem__):
        as_fast = candidates.as_fast(group, best)
        if as_fast:
            return min(as_fast, key=lambda each: each.time.seconds)
    return best


def _distance(params: HeuristicParams, rules: KernelParams) -> float:
    """The distance to the rules' params: doublings of sizes and warps, and other changed fields."""
    found = 0.0
    for field in fields(params):
        one, other = getattr(params, field.name), getattr(rules, field.name)
        sizes = field.name in VARIED_FIELDS and one and other
        found += abs(log2(one / other)) if sizes else float(one != other)
    return found
