"""What of a search space the cost model is asked about, and which values are a coarse sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import Any

from ...device import MAX_REGISTERS_PER_THREAD, SECTOR_BYTES, DeviceProperties
from ..params import InnerPersistentParams, KernelParams, ReductionParams
from ..problem import Problem
from .space import Alternative, AtMost, Choice, SearchSpace
from .warps import are_many_warps

VARIED_FIELDS = ("num_warps", "block_x", "block_y", "block_m", "block_r", "vectorization_factor")
"""Fields that are varied. What a longer pipeline or a cache hint gains is less than the error of
the model."""

RULED_FIELDS = ("first", "loads_first", "backwards", "evict_hints")
"""Fields by which the model tells nothing apart, or that depend on others: the rules' to say."""

SEARCHED_FIELDS = ("staged",)
"""Fields that the rules leave as they are: the model alone chooses them."""

ONE_ROW_WITH_TAILS = AtMost(("block_x", "tails"), 1, ("tails",))
"""Rows in registers with tails are one in a program. Triton lays a short tail of several rows by
fewer neighbours of a thread than the blocks, and takes the blocks through shared memory to the
tail's layout and back. H200, 15 kernels of norms and softmaxes with tails, of random sizes: by two
rows or more they take 0.98 to 1.9 times as long as by one (1.19 in the geometric mean), for which
the model predicts 0.92 to 1.07."""


def varied(space: SearchSpace, rules: KernelParams) -> SearchSpace:
    """All values of sizes and warps, and the rules' values of all other fields."""
    return SearchSpace(space.scheduler, tuple(_varied(a, rules) for a in space.alternatives))


def is_coarse(choice: Choice, alternative: Alternative) -> list[bool]:
    """Which values are in a coarse sample: every second one of sizes and warps, and the last. All
    where a size has several values of other fields. Two rows too, where rows with tails are one in
    a program: no step leads from those to two rows without tails."""
    firsts = {value[0] for value in choice.values}
    whole = len(firsts) < len(choice.values) or choice.fields[0] not in VARIED_FIELDS
    taken = {len(choice.values) - 1, *range(0, len(choice.values), 2)}
    if choice.fields == ("block_x",) and ONE_ROW_WITH_TAILS in alternative.conditions:
        taken |= {1}
    return [whole or place in taken for place in range(len(choice.values))]


def alternatives(space: SearchSpace, problem: Problem, rules: KernelParams) -> SearchSpace:
    """Rows that are gone through several times stay in registers, or in loops, as the rules say.
    The order of axes is theirs to say too, which is that of memory, whether several programs share
    rows, and whether tiles begin at vectors: not all rows have whole ones.

    What a later pass finds in caches is what the model knows least: it takes rows of layer norms
    that are read twice for twice as slow as they are. Rows in loops are as many in a program as the
    rules say, too. H200, ten norms and softmaxes of 20,480 to 77,944 columns: the fastest of two or
    four rows takes 1.10 to 1.66 times as long as the fastest of one, predicted are 0.96 to 1.51.
    """
    kept = [a for a in space.alternatives if "across" not in a.fixed and not _is_others(a)]
    if not isinstance(rules, ReductionParams):
        kept = [a for a in kept if _agrees(a, rules)]
    align = rules.row_tiling.align if rules.row_tiling else 1
    kept = [a for a in kept if a.fixed.get("align", 1) in (1, align)]
    allowed = _Allowed(
        columns=_fewest_columns(problem, rules),
        align=align,
        factor=None if problem.gathers else getattr(rules, "vectorization_factor", None),
        ahead=_ahead(rules),
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
    """The tiles whose elements have registers, those of a thread and those of a multiprocessor.
    Others would spill, so nothing is asked about them.

    Parameters
    ----------
    each : callable
        Registers that an element takes at least, by whether rows stay in registers.
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


def _fewest_columns(problem: Problem, rules: KernelParams) -> int:
    """Columns of a tile at least: those of a sector, which is read whole.

    H100, sums of 1792 x 128 partial results, twice: 4.2 us by 8 columns a program, 8.6 by one. The
    L2 cache gives sectors to several programs more slowly than the model knows.
    """
    if problem.inner or not problem.reduction_depth or rules.row_tiling is None:
        return 1
    return min(SECTOR_BYTES // problem.narrowest, rules.row_tiling.rows, problem.parallel)


def _ahead(rules: KernelParams) -> tuple[tuple[int, bool], ...]:
    """How loads of a loop over rows are begun ahead: as by the rules, or not at all where these say
    a pipeline.

    What each gains is less than the error of the model. H100, 67 backwards of norms with 9 measured
    schedules each: those chosen among the ones that prefetch take 1.11 times as long as the
    fastest, those chosen among all 1.14 times.
    """
    own = rules.num_stages, rules.prefetches
    return (own,) if rules.prefetches else tuple(dict.fromkeys([own, (1, False)]))


class _Allowed:
    """The values of fields that are left.

    Parameters
    ----------
    columns : int
        Columns of a tile at least.
    align : int
        Of the rules. Other tiles begin at vectors only where theirs do.
    factor : int or None
        Neighbours of a thread: the rules'. None for any number, where tensors are read at indices
        of others and each neighbour may lie in another row. H200, the gathers of the suite: 0.83 to
        1.00 of the time by one or two. What is read in order has the widest loads: the last kernel
        of a softmax backward over columns of 8192 x 8193 took 91 us, and 92 by two.
    ahead : tuple of (int, bool)
        Stages, and whether loads are begun a step ahead in registers, of loops over rows.
    stages : tuple of int
        Of loops along rows, whose steps are left to the compiler to unroll.
    many_warps : bool
        Whether programs may have more warps than registers are estimated for. Gathers without rows
        take few of these, and fewer programs have fewer windows open. H200, 14 of them: the fastest
        of 32 warps takes 0.94 of the time of the fastest of fewer (geometric mean; 0.80 to 1.11).
    """

    def __init__(
        self,
        *,
        columns: int,
        align: int,
        factor: int | None,
        ahead: tuple[tuple[int, bool], ...],
        stages: tuple[int, ...],
        many_warps: bool,
    ) -> None:
        self._columns, self._aligns = columns, (1, align)
        self._factor, self._many_warps = factor, many_warps
        self._ahead, self._stages = ahead, tuple((each, 1) for each in stages)

    def of(self, choices: Iterable[Choice]) -> tuple[Choice, ...]:
        """The choices with these values of fields."""
        return tuple(self._of_one(choice) for choice in choices)

    def _of_one(self, choice: Choice) -> Choice:
        values: Iterable[tuple[Any, ...]] = choice.values
        if choice.fields == ("num_warps",):
            values = (v for v in values if self._many_warps or not are_many_warps(*v))
        elif choice.fields == ("block_x",):
            values = (v for v in values if v[0] >= self._columns)
        elif choice.fields == ("vectorization_factor",):
            values = (v for v in values if self._factor in (None, *v))
        elif choice.fields == ("num_stages", "prefetch"):
            values = self._ahead
        elif choice.fields == ("num_stages", "unroll"):
            values = (each for each in self._stages if each in choice.values)
        elif choice.fields == ("block_r", "tails"):
            # Of each block the last of its ends: what a loop leaves is behind it where it can be.
            values = dict(choice.values).items()
        elif "align" in choice.fields:
            place = choice.fields.index("align")
            values = (v for v in values if v[place] in self._aligns)
        else:
            return choice
        return Choice(choice.fields, tuple(values))


def _is_others(alternative: Alternative) -> bool:
    """Whether it has other orders of axes than that of the rules, or rows that programs share."""
    return not {"axes", "parts"}.isdisjoint(alternative.fields)


def _agrees(alternative: Alternative, rules: KernelParams) -> bool:
    """Whether it has what the rules say."""
    said = ((n, value) for n, value in alternative.fixed.items() if n not in SEARCHED_FIELDS)
    return all(getattr(rules, name) == value for name, value in said)


def _varied(alternative: Alternative, rules: KernelParams) -> Alternative:
    choices = tuple(_values(choice, rules) for choice in alternative.choices)
    return Alternative(alternative.fixed, choices, alternative.conditions)


def _values(choice: Choice, rules: KernelParams) -> Choice:
    own = tuple(getattr(rules, name) for name in choice.fields)
    if len(choice.fields) > 1 or choice.fields[0] in VARIED_FIELDS:
        return choice
    if choice.fields[0] in RULED_FIELDS:
        return Choice(choice.fields, (own,))
    kept = (own, choice.values[0]) if own in choice.values else choice.values[:1]
    return Choice(choice.fields, tuple(dict.fromkeys(kept)))
