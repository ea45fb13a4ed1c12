"""Chooses the params of a kernel: by the rules, or by the cost model where that is much faster.

The rules were measured on what they are for, and near to their choices the model is rougher than
they are. Elsewhere they may be far off, and there the model sees it: it is asked where it predicts
a time so far above the bound of the problem that there is something to gain, and decides where it
predicts a gain that its own error does not explain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache
from math import inf, log2
from operator import itemgetter

from ...device import NVIDIA_WARP_SIZE
from ..cost.constants import constants_of
from ..cost.model import KernelTime, busy_seconds, memory_rate
from ..cost.tiles import tile_of
from ..params import HeuristicParams, KernelParams, ReductionParams
from ..problem import ElementWork, Problem
from ..programs import leaves_idle, programs_of
from ..schedulers import BY_NAME, kernel_seconds, propose
from .narrowed import VARIED_FIELDS, alternatives, coarse, within_registers
from .near import params_near
from .reread_order import with_rereads_near
from .spaces import SPACES
from .warps import Kernels, spread_over_warps

GAIN = 0.96
"""Share of the time of the rules' params, with a launch, that others have to be predicted to take
at most. H200, 140 random definitions that nothing was fitted to: the 21 that 0.9 in its place
changes took 0.91 times as long by 0.96 (geometric mean; 0.50 to 1.12)."""

GAIN_OF_FLAT = 0.7
"""``GAIN`` of kernels without rows, whose rules the model knows no better: of six of those kernels
that are predicted at 0.66 to 0.9 times the rules' time, the rules' took 0.99 times as long."""

WORTH_S = 1e-6
"""Seconds that others have to save at least. Kernels that follow one another overlap by about as
much, so that less is not seen."""

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
    if not isinstance(rules, KernelParams) or not _can_vary(problem, rules):
        return rules
    kernels = Kernels(problem, work)
    found = spread_over_warps(kernels, _by_rules_or_model(kernels, rules, work))
    return with_rereads_near(kernels, found)


def _by_rules_or_model(kernels: Kernels, rules: KernelParams, work: ElementWork) -> HeuristicParams:
    """The rules' params, or what the model finds much faster."""
    first, launch = kernels.time(rules), kernels.launch_s
    if first is None:
        return rules
    whole = first.seconds + launch
    most = min(_gain(kernels.problem) * whole, whole - WORTH_S)
    if _least(kernels.problem, work) > most:
        return rules
    found = _fastest(kernels, rules)
    if found is None or found[1].seconds + launch > most:
        return rules
    return rules if _is_uncertain(kernels.problem, rules, first, found[1]) else found[0]


def _gain(problem: Problem) -> float:
    """Share of the time of the rules' params that others may take."""
    return GAIN_OF_FLAT if problem.is_flat else GAIN


def _is_uncertain(
    problem: Problem, rules: KernelParams, before: KernelTime, after: KernelTime
) -> bool:
    """Whether all that other params of sums save is instructions, which the model knows least.

    H200: a gelu backward with its bias gradient of 128 x 262144 took 1.7 times as long, 0.76 times
    by the model. Where multiprocessors idle, the instructions of the others are the limit for a
    reason that the model knows.
    """
    limited = before.limit == after.limit == "instructions"
    is_sum = isinstance(rules, ReductionParams)
    return is_sum and limited and not leaves_idle(problem, programs_of(problem, rules))


def difference(problem: Problem, work: ElementWork, params: HeuristicParams) -> str:
    """What the model says of params that are not the rules': empty where they are."""
    rules = propose(problem)
    if params == rules:
        return ""
    before, after = (kernel_seconds(problem, each, work) for each in (rules, params))
    if before is None or after is None:
        return ""
    times = f"{1e6 * after.seconds:.3g} us by the cost model, {1e6 * before.seconds:.3g} us"
    return f"{times} by the rules' {rules}"


def _can_vary(problem: Problem, params: KernelParams) -> bool:
    """Whether fields can be changed independently.

    Not for schedulers whose fields depend on one another, for rows that programs share, and for
    rows that one program must hold together."""
    apart = problem.co_reduced == 1 and getattr(params, "parts", 1) == 1
    return apart and BY_NAME[params.scheduler].fields_apart


def _least(problem: Problem, work: ElementWork) -> float:
    """Seconds below which no params are predicted: start and end, and between them all resources
    busy at the same time, with each byte and each instruction once and warps enough."""
    c, device = constants_of(problem.device), problem.device
    clocks = device.sm_count * device.clock_hz
    elements = problem.parallel * max(problem.reduced, 1)
    instructions = (work.before + work.after + work.reducing) * c.element_instructions
    instructions += len(problem.full_loads) * c.load_instructions
    issue = device.rates.issue / NVIDIA_WARP_SIZE
    waits = 1 + c.latent_warps * device.warp_size / device.max_threads_per_sm
    warps = elements / device.warp_size * waits
    special = elements * (work.special_before + work.special_after) * c.sfu_clocks
    resources = {
        "memory": problem.moved_bytes / memory_rate(device, c),
        "L2 cache": problem.moved_bytes / (clocks * c.sm_bytes),
        "instructions": warps * instructions / (clocks * c.issue * issue),
        "special functions": special / (clocks * device.rates.sfu),
    }
    return c.launch_s + c.kernel_s + c.start_s + c.latency_s + float(busy_seconds(resources))


def _fastest(kernels: Kernels, rules: KernelParams) -> tuple[HeuristicParams, KernelTime] | None:
    """The fastest of a coarse sample, and then of what is beside it step by step. None where all
    may spill registers.

    Of those that are alike the nearest to the rules' are taken: sizes that are alike then have
    kernels that are.
    """
    problem = kernels.problem
    space = alternatives(SPACES[rules.scheduler](problem), problem, rules)
    space = within_registers(space, problem.device, kernels.registers_each)
    found: dict[HeuristicParams, KernelTime] = {}
    best = _first(kernels, coarse(space, rules), found)
    for _ in range(STEPS if best else 0):
        assert best is not None
        near = params_near(space, best, VARIED_FIELDS)
        beside = _first(kernels, near, found, least=found[best].seconds)
        if beside is None or found[beside].seconds >= found[best].seconds:
            break
        best = beside
    if best is None:
        return None
    least = found[best].seconds
    alike = (
        each for each, time in found.items() if kernels.within_model_error(time.seconds, least)
    )
    nearest = min(alike, key=lambda p: (_distance(p, rules), found[p].seconds))
    return nearest, found[nearest]


def _first(
    kernels: Kernels,
    params: Iterable[HeuristicParams],
    found: dict[HeuristicParams, KernelTime],
    least: float = inf,
) -> HeuristicParams | None:
    """The params with the least predicted time, the first of several; times are added to ``found``.

    Those come first that have the least bound. Where that is more than what is alike to the fastest
    so far, so are their times and those of the others, which are then not asked for.
    """
    bounds = [(_bound(kernels, each), place, each) for place, each in enumerate(params)]
    bounds = [each for each in bounds if each[0] < inf]
    times: dict[int, tuple[HeuristicParams, KernelTime]] = {}
    for bound, place, each in sorted(bounds, key=itemgetter(0)):
        if not kernels.within_model_error(bound, least):
            break
        time = _time(kernels, each)
        if time is not None:
            times[place] = each, time
            least = min(least, time.seconds)
    in_order = dict(times[place] for place in sorted(times))
    found.update(in_order)
    return min(in_order, key=lambda p: in_order[p].seconds, default=None)


def _distance(params: HeuristicParams, rules: KernelParams) -> float:
    """The distance to the rules' params: doublings of sizes and warps, other changed fields."""
    found = 0.0
    for field in fields(params):
        one, other = getattr(params, field.name), getattr(rules, field.name)
        sizes = field.name in VARIED_FIELDS
        found += abs(log2(one / other)) if sizes else float(one != other)
    return found


def _bound(kernels: Kernels, params: HeuristicParams) -> float:
    """Seconds below which a kernel's time is not predicted: infinite where its registers or its
    shared memory do not suffice."""
    if not isinstance(params, KernelParams):
        return inf
    if params.num_stages > 1:
        tile = tile_of(kernels.problem, params)
        if params.num_stages > kernels.problem.max_stages(tile.x * tile.r):
            return inf
    found = kernels.least_seconds(params)
    return inf if found is None else found


def _time(kernels: Kernels, params: HeuristicParams) -> KernelTime | None:
    """The time of a kernel. None where its registers may not suffice."""
    found = kernels.time(params)
    if found is None or not isinstance(params, KernelParams):
        return None
    return None if kernels.may_spill_registers(params, found) else found
