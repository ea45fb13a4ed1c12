"""The part of a search space in which the cost model may choose, and a coarse sample of it.

What the model predicts poorly stays as the rules decide it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import ceil

from ...device import MAX_REGISTERS_PER_THREAD, SECTOR_BYTES, DeviceProperties
from ..params import InnerPersistentParams, KernelParams, ReductionParams
from ..problem import Problem
from .allowed_values import AllowedValues
from .space import Alternative, AtMost, Choice, SearchSpace

VARIED_FIELDS = ("num_warps", "block_x", "block_y", "block_m", "block_r", "vectorization_factor")
"""Fields that take all values of the search space. What other fields gain, as the number of stages
or a cache hint, is less than the error of the model."""

RULED_FIELDS = ("first", "loads_first", "backwards", "evict_hints")
"""Fields that the rules decide: the model predicts equal times by them, or they follow from
others."""

SEARCHED_FIELDS = ("staged",)
"""Fields that only the model sets: the rules leave their defaults."""

ONE_ROW_WITH_TAILS = AtMost(("block_x", "tails"), 1, ("tails",))
"""A program with rows in registers and tails has one row. For several rows Triton gives a short
tail another layout than the blocks, with fewer adjacent elements a thread, and converts the blocks
to that layout and back, through shared memory. H200, 15 kernels of norms and softmaxes with tails,
of random sizes: by two rows or more they take 0.98 to 1.9 times as long as by one (1.19 in the
geometric mean), for which the model predicts 0.92 to 1.07."""


def with_sizes_varied(space: SearchSpace, rules: KernelParams) -> SearchSpace:
    """The space with all values of ``VARIED_FIELDS``, and the rules' values of other fields."""
    found = tuple(_with_sizes_varied(a, rules) for a in space.alternatives)
    return SearchSpace(space.scheduler, found)


def is_coarse(choice: Choice, alternative: Alternative) -> list[bool]:
    """Which values of a choice are in the coarse sample.

    Every second value of sizes and warps, and the last one. All values if some differ in other
    fields than the size alone. Two rows too, where programs with tails have one row: no single step
    leads from those to two rows without tails.
    """
    sizes = {value[0] for value in choice.values}
    takes_all = len(sizes) < len(choice.values) or choice.fields[0] not in VARIED_FIELDS
    taken = {len(choice.values) - 1, *range(0, len(choice.values), 2)}
    if choice.fields == ("block_x",) and ONE_ROW_WITH_TAILS in alternative.conditions:
        taken |= {1}
    return [takes_all or place in taken for place in range(len(choice.values))]


def limited_to_rules(space: SearchSpace, problem: Problem, rules: KernelParams) -> SearchSpace:
    """The space without what the model predicts poorly, which stays as the rules decide it.

    That is the order of axes, whether several programs share a row, whether tiles begin at vectors
    (not all rows have whole ones), and, for rows that are read in several passes, whether they stay
    in registers. What a later pass finds in caches is what the model knows least: for layer norms
    that read their rows twice it predicts twice the time. A program that loops along rows has no
    more of them than the rules decide, for the same reason. H200, ten norms and softmaxes of 20,480
    to 77,944 columns: the fastest of two or four rows takes 1.10 to 1.66 times as long as the
    fastest of one, predicted are 0.96 to 1.51.
    """
    kept = [a for a in space.alternatives if "across" not in a.fixed and not _has_other_axes(a)]
    if not isinstance(rules, ReductionParams):
        kept = [a for a in kept if _agrees_with_rules(a, rules)]
    align = rules.row_tiling.align if rules.row_tiling else 1
    kept = [a for a in kept if a.fixed.get("align", 1) in (1, align)]
    allowed = AllowedValues(
        columns=_least_columns(problem, rules),
        align=align,
        factor=None if problem.gathers else getattr(rules, "vectorization_factor", None),
        prefetches=_prefetches(rules),
        stages=tuple(dict.fromkeys([rules.num_stages, 1])),
        many_warps=problem.gathers and problem.is_flat,
    )
    if isinstance(rules, InnerPersistentParams):
        rows = ONE_ROW_WITH_TAILS if rules.persistent else AtMost(("block_x",), rules.block_x)
        kept = [Alternative(a.fixed, a.choices, (*a.conditions, rows)) for a in kept]
    found = (Alternative(a.fixed, allowed.of(a.choices), a.conditions) for a in kept)
    return SearchSpace(space.scheduler, tuple(found))


def within_registers(
    space: SearchSpace, device: DeviceProperties, each: Callable[[bool], float]
) -> SearchSpace:
    """The space without tiles that would spill: whose elements have more registers than a thread,
    or than a multiprocessor.

    Parameters
    ----------
    each : callable
        Least registers of an element, by whether rows stay in registers.
    """
    found = []
    for alternative in space.alternatives:
        most = each(alternative.fixed.get("persistent", False))
        conditions = tuple(_with_registers(alternative.conditions, device, most))
        found.append(Alternative(alternative.fixed, alternative.choices, conditions))
    return SearchSpace(space.scheduler, tuple(found))


def _with_registers(
    conditions: Iterable[AtMost], device: DeviceProperties, each: float
) -> Iterator[AtMost]:
    for condition in conditions:
        if condition.limit_product == ("num_warps",):
            of_warp = ceil(MAX_REGISTERS_PER_THREAD * device.warp_size / each)
            limit = min(condition.limit, of_warp)
            yield AtMost(condition.product, limit, condition.limit_product, condition.scale)
            yield AtMost(condition.product, ceil(device.registers_per_sm / each))
        else:
            yield condition


def _least_columns(problem: Problem, rules: KernelParams) -> int:
    """The least columns of a tile: those of one sector.

    H100, sums of 1792 x 128 partial results, twice: 4.2 us by 8 columns a program, 8.6 by one. The
    L2 cache serves a sector to several programs more slowly than the model predicts.
    """
    if problem.inner or not problem.reduction_depth or rules.row_tiling is None:
        return 1
    return min(SECTOR_BYTES // problem.narrowest, rules.row_tiling.rows, problem.parallel)


def _prefetches(rules: KernelParams) -> tuple[tuple[int, bool], ...]:
    """Values of (num_stages, prefetch) of a loop over rows: the rules', and none of both if the
    rules have a pipeline.

    What either gains is less than the error of the model. H100, 67 backwards of norms with 9
    measured schedules each: those chosen among the ones that prefetch take 1.11 times as long as
    the fastest, those chosen among all 1.14 times.
    """
    own = rules.num_stages, rules.prefetches
    return (own,) if rules.prefetches else tuple(dict.fromkeys([own, (1, False)]))


def _has_other_axes(alternative: Alternative) -> bool:
    """Whether it has other orders of axes than the rules, or rows that several programs share."""
    return not {"axes", "parts"}.isdisjoint(alternative.fields)


def _agrees_with_rules(alternative: Alternative, rules: KernelParams) -> bool:
    """Whether its fixed fields have the rules' values."""
    decided = ((n, value) for n, value in alternative.fixed.items() if n not in SEARCHED_FIELDS)
    return all(getattr(rules, name) == value for name, value in decided)


def _with_sizes_varied(alternative: Alternative, rules: KernelParams) -> Alternative:
    choices = tuple(_varied_or_ruled(choice, rules) for choice in alternative.choices)
    return Alternative(alternative.fixed, choices, alternative.conditions)


def _varied_or_ruled(choice: Choice, rules: KernelParams) -> Choice:
    own = tuple(getattr(rules, name) for name in choice.fields)
    if len(choice.fields) > 1 or choice.fields[0] in VARIED_FIELDS:
        return choice
    if choice.fields[0] in RULED_FIELDS:
        return Choice(choice.fields, (own,))
    kept = (own, choice.values[0]) if own in choice.values else choice.values[:1]
    return Choice(choice.fields, tuple(dict.fromkeys(kept)))
