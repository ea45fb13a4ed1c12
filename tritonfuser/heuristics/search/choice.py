"""Chooses the params of a kernel: by the rules, or by the cost model where that is much faster.

The rules were measured on what they are for, and near to their choices the model is rougher than
they are. Elsewhere they may be far off, and there the model sees it: it is asked where it predicts
a time so far above the bound of the problem that there is something to gain, and decides where it
predicts a gain that its own error does not explain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import lru_cache
from itertools import groupby
from math import log2, prod
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
from .candidates import Candidates, Timed
from .masked_steps import has_masks_for_programs, with_masks_for_programs
from .narrowed import VARIED_FIELDS, alternatives, varied, within_registers
from .reread_order import with_rereads_near
from .spaces import SPACES
from .warps import Kernels, spread_over_warps
from .worth import GAIN, WORTH_S, worth_seconds

GAIN_OF_FLAT = 0.7
"""``GAIN`` of kernels without rows that read at no indices, whose rules the model knows no better:
of six of those kernels that are predicted at 0.66 to 0.9 times the rules' time, the rules' took
0.99 times as long."""

GAIN_OF_PADDED = 0.85
"""``GAIN`` of rows in registers that are rounded up where the rules hold their ends in tails. H200,
layer norms of random sizes: seven that are predicted at 0.90 to 0.94 times the rules' time take
0.93 to 1.04 times (1.00 in the geometric mean), one that is predicted at 0.75 takes 0.63."""

AT_ONCE = 64
"""Elements of a tile that a thread loads at once, about. One with more loads them in turns, which
the model does not count: such params have to save ``WORTH_S`` for each turn. H200, sums over
columns by tiles of 16 x 1024: 4.6 us by 4 warps, for which 3.7 are predicted, 2.7 by 16."""

PIECE_BYTES = 1024
"""Bytes that memory could move in the time in which it stores a piece that lies far from the one
before: what explains the one kernel that ``_with_pieces`` tells of."""

FAR_BYTES = 1 << 17
"""Bytes between pieces at which it takes half of that time."""

STEPS = 4
"""Steps from the fastest of the coarse sample at most."""


@lru_cache(maxsize=4096)
def chosen(problem: Problem, work: ElementWork) -> HeuristicParams:
    """The params of a kernel, with as many warps as hold what its tiles load.

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
    found = _sized_again(kernels, with_rereads_near(kernels, found), found)
    return with_masks_for_programs(kernels, found)


def _sized_again(
    kernels: Kernels, params: HeuristicParams, before: HeuristicParams
) -> HeuristicParams:
    """Params whose axes are in another order than before with the sizes that suit it, where those
    are much faster: others were chosen to lose less in the order that it was."""
    first = kernels.time(params) if params != before else None
    if first is None or not isinstance(params, KernelParams):
        return params
    own: dict[str, Any] = {"axes": getattr(params, "axes", ())}
    left: dict[str, Any] = {"axes": ()}
    most = worth_seconds(kernels.problem, first.seconds)
    found = _fastest(kernels.in_order(params), replace(params, **left), most)
    return params if found is None else replace(found.params, **own)


def _by_rules_or_model(kernels: Kernels, rules: KernelParams) -> HeuristicParams:
    """The rules' params, or what the model finds much faster."""
    first, launch = kernels.time(rules), kernels.launch_s
    if first is None:
        return rules
    most = worth_seconds(kernels.problem, first.seconds, _gain(kernels.problem))
    if kernels.least_s - launch > most:
        return rules
    found = _fastest(kernels, rules, most)
    if found is None or found.time.seconds > most:
        return rules
    before = _with_pieces(kernels.problem, rules, first) + launch
    after = _with_pieces(kernels.problem, found.params, found.time) + launch
    worth = WORTH_S * _turns(kernels.problem, found.params)
    gain = GAIN_OF_PADDED if _is_padded(found.params, rules) else _gain(kernels.problem)
    return found.params if after <= min(gain * before, before - worth) else rules


def _is_padded(params: HeuristicParams, rules: KernelParams) -> bool:
    """Whether rows in registers are rounded up where the rules have tails."""
    if not isinstance(params, InnerPersistentParams) or not params.persistent:
        return False
    return isinstance(rules, InnerPersistentParams) and bool(rules.tails) and not params.tails


def _turns(problem: Problem, params: HeuristicParams) -> float:
    """Turns in which a thread loads its elements of a tile of rows; at least 1."""
    sides = (getattr(params, name, 1) for name in ("block_x", "block_m", "block_r"))
    threads = getattr(params, "num_warps", 1) * problem.device.warp_size
    return max(prod(sides) / (AT_ONCE * threads), 1.0)


def much_faster(
    problem: Problem, work: ElementWork, near: KernelParams, seconds: float
) -> KernelParams | None:
    """The params beside others for which the model predicts much less than so many seconds.

    None where it does so for none.
    """
    kernels, most = Kernels(problem, work), worth_seconds(problem, seconds)
    if kernels.least_s - kernels.launch_s > most:
        return None
    first, found = kernels.time(near), _fastest(kernels, near, most)
    if first is None or found is None:
        return None
    more = _with_pieces(problem, near, first) - float(first.seconds)
    after = _with_pieces(problem, found.params, found.time)
    if after > worth_seconds(problem, seconds + more):
        return None
    params = with_masks_for_programs(kernels, with_rereads_near(kernels, found.params))
    return params if isinstance(params, KernelParams) else None


def _gain(problem: Problem) -> float:
    """Share of the time of the rules' params that others may take."""
    return GAIN_OF_FLAT if problem.is_flat and not problem.gathers else GAIN


def _with_pieces(problem: Problem, params: HeuristicParams, time: KernelTime) -> float:
    """The seconds of a kernel, with those in which memory goes from piece to piece of what is
    stored beside sums over columns: as many neighbours as a program has, rows apart.

    The model does not count these. H200: a gelu backward with its bias gradient of 128 x 262144 in
    bfloat16, whose rows are 512 KiB apart, took 1.7 times as long with pieces of 128 bytes in place
    of 4 KiB, 0.76 times by the model. What is loaded alone does not count: sums over columns of
    544 x 296898 took 226 us by pieces of 4 KiB, 98 by torch.compile.
    """
    more = 0.0
    for one in problem.full_stores if isinstance(params, ReductionParams) else ():
        apart = one.item_bytes * (one.r_stride or 0) / FAR_BYTES
        pieces = one.total_bytes / (one.item_bytes * getattr(params, "block_x", 1))
        more += pieces * PIECE_BYTES * apart**2 / (apart**2 + 1)
    return float(time.with_more_bytes(more, problem.device).seconds)


def difference(problem: Problem, work: ElementWork, params: HeuristicParams) -> str:
    """What the model says of params that are not the rules': empty where they are."""
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
    """Whether fields can be changed independently.

    Not for schedulers whose fields depend on one another, for rows that programs share, and for
    rows that one program must hold together."""
    apart = problem.co_reduced == 1 and getattr(params, "parts", 1) == 1
    return apart and BY_NAME[params.scheduler].fields_apart


def _fastest(kernels: Kernels, rules: KernelParams, most: float) -> Timed | None:
    """The fastest of a coarse sample, and then of what is beside it step by step. None where all
    may spill registers, or none takes ``most`` seconds or less.

    Of those that are alike the nearest to the rules' are taken: sizes that are alike then have
    kernels that are.
    """
    problem = kernels.problem
    space = alternatives(SPACES[rules.scheduler](problem), problem, rules)
    space = within_registers(space, problem.device, kernels.registers_each)
    candidates = Candidates(kernels, varied(space, rules))
    if candidates.all_exceed(most):
        return None
    asked = candidates.coarse()
    best = candidates.fastest(asked)
    for _ in range(STEPS if best else 0):
        assert best is not None
        near = [*candidates.beside(best.number)]
        asked += near
        beside = candidates.fastest(near, best.time.seconds)
        if beside is None or beside.time.seconds >= best.time.seconds:
            break
        best = beside
    if best is None or best.time.seconds > most:
        return None
    return _nearest(candidates, asked, best, rules)


def _nearest(
    candidates: Candidates, asked: Iterable[int], best: Timed, rules: KernelParams
) -> Timed:
    """The nearest to the rules' params of those that are alike to the fastest."""
    near = candidates.may_be_alike(asked, best)
    distances = {number: _distance(params, rules) for number, params in near.items()}
    for _, group in groupby(sorted(near, key=distances.__getitem__), key=distances.__getitem__):
        alike = candidates.alike(group, best)
        if alike:
            return min(alike, key=lambda each: each.time.seconds)
    return best


def _distance(params: HeuristicParams, rules: KernelParams) -> float:
    """The distance to the rules' params: doublings of sizes and warps, other changed fields."""
    found = 0.0
    for field in fields(params):
        one, other = getattr(params, field.name), getattr(rules, field.name)
        sizes = field.name in VARIED_FIELDS and one and other
        found += abs(log2(one / other)) if sizes else float(one != other)
    return found
