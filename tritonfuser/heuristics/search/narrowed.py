"""What of a search space the cost model is asked about, and a coarse sample of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...device import SECTOR_BYTES
from ..params import KernelParams, ReductionParams
from ..problem import Problem
from .space import Alternative, Choice, SearchSpace
from .warps import are_many_warps

VARIED_FIELDS = ("num_warps", "block_x", "block_y", "block_m", "block_r")
"""Fields that are varied. What a longer pipeline or a cache hint gains is less than the error of
the model."""

RULED_FIELDS = ("first", "loads_first", "backwards", "evict_hints")
"""Fields by which the model tells nothing apart, or that depend on others: the rules' to say."""


def coarse(space: SearchSpace, rules: KernelParams) -> SearchSpace:
    """Every second value of sizes and warps, and the rules' values of all other fields."""
    return replace(space, alternatives=tuple(_thinned(a, rules) for a in space.alternatives))


def alternatives(space: SearchSpace, problem: Problem, rules: KernelParams) -> SearchSpace:
    """Rows that are gone through several times stay in registers, or in loops, as the rules say.
    The order of axes is theirs to say too, which is that of memory, and whether tiles begin at
    vectors: not all rows have whole ones.

    What a later pass finds in caches is what the model knows least: it takes rows of layer norms
    that are read twice for twice as slow as they are.
    """
    kept = [a for a in space.alternatives if "across" not in a.fixed and not _is_ordered(a)]
    if not isinstance(rules, ReductionParams):
        kept = [a for a in kept if _agrees(a, rules)]
    least = _fewest_columns(problem, rules)
    # For more warps registers are not estimated.
    kept = [_limited(a, "num_warps", lambda warps: not are_many_warps(warps)) for a in kept]
    if least > 1:
        kept = [_limited(a, "block_x", lambda columns: columns >= least) for a in kept]
    return replace(space, alternatives=tuple(_aligned_alike(a, rules) for a in kept))


def _fewest_columns(problem: Problem, rules: KernelParams) -> int:
    """Columns of a tile at least: those of a sector, which is read whole.

    H100, sums of 1792 x 128 partial results, twice: 4.2 us by 8 columns a program, 8.6 by one. The
    L2 cache gives sectors to several programs more slowly than the model knows.
    """
    if problem.inner or not problem.reduction_depth or rules.row_tiling is None:
        return 1
    return min(SECTOR_BYTES // problem.narrowest, rules.row_tiling.rows, problem.parallel)


def _limited(alternative: Alternative, field: str, allows: Callable[[int], bool]) -> Alternative:
    """The alternative with those values of a field that are allowed."""
    choices = tuple(
        replace(c, values=tuple(v for v in c.values if allows(*v))) if c.fields == (field,) else c
        for c in alternative.choices
    )
    return replace(alternative, choices=choices)


def _aligned_alike(alternative: Alternative, rules: KernelParams) -> Alternative:
    """The alternative without tiles that begin at vectors where those of the rules do not."""
    align = rules.row_tiling.align if rules.row_tiling else 1
    choices = []
    for choice in alternative.choices:
        if "align" in choice.fields:
            place = choice.fields.index("align")
            choice = replace(
                choice, values=tuple(v for v in choice.values if v[place] in (1, align))
            )
        choices.append(choice)
    return replace(alternative, choices=tuple(choices))


def _is_ordered(alternative: Alternative) -> bool:
    """Whether it has other orders of axes than that of the rules."""
    return any("axes" in choice.fields for choice in alternative.choices)


def _agrees(alternative: Alternative, rules: KernelParams) -> bool:
    return all(getattr(rules, name) == value for name, value in alternative.fixed.items())


def _thinned(alternative: Alternative, rules: KernelParams) -> Alternative:
    choices = tuple(_values(choice, rules) for choice in alternative.choices)
    return replace(alternative, choices=choices)


def _values(choice: Choice, rules: KernelParams) -> Choice:
    own = tuple(getattr(rules, name) for name in choice.fields)
    if len(choice.fields) > 1:
        return choice
    if choice.fields[0] in RULED_FIELDS:
        return replace(choice, values=(own,))
    if choice.fields[0] in VARIED_FIELDS:
        return replace(choice, values=tuple(sorted({*choice.values[::2], choice.values[-1]})))
    kept = (own, choice.values[0]) if own in choice.values else choice.values[:1]
    return replace(choice, values=tuple(dict.fromkeys(kept)))
