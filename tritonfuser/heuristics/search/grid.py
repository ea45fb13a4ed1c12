"""One alternative of a search space as a grid: an axis for each choice, params at its points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from math import prod
from operator import and_
from typing import Any

import numpy as np

from ..cost.least.launches import flat_launches
from ..cost.numbers import ARRAYS
from ..cost.tiles import (
    FLAT_PARAMS,
    KernelTile,
    Launches,
    loop_along_rows,
    loop_over_rows,
    whole_rows,
)
from ..params import PARAMS, HeuristicParams, ReductionParams
from ..problem import Problem
from .model_space import VARIED_FIELDS, is_coarse
from .space import Alternative, Choice, params_of

_COUNTED = ("block_", "num_", "align", "prefetch", "unroll", "vectorization_factor")
"""How the names of numeric fields begin."""

Array = Any
"""Of numpy: an entry for each of many params."""


def concatenated(found: Sequence[Launches]) -> Launches:
    """The kernels of several alternatives as one sequence."""
    if len(found) == 1:
        return found[0]
    counts = [len(each.warps) for each in found]
    tile = KernelTile(
        *(_joined(n, counts) for n in zip(*(each.tile for each in found), strict=True))
    )
    warps, stages, prefetches = (
        _joined(numbers, counts) for numbers in zip(*(each[1:4] for each in found), strict=True)
    )
    blocks = tuple(map(np.concatenate, zip(*(each.blocks for each in found), strict=True)))
    vector = _joined([each.vector for each in found], counts)
    aligned = any(each.aligned for each in found)
    return Launches(tile, warps, stages, prefetches, aligned, blocks, vector)


def _joined(numbers: Sequence[Array], counts: Sequence[int]) -> Array:
    """The numbers of all kernels as one array, or one number if all have the same.

    Parameters
    ----------
    numbers : sequence of array
        For each alternative an array, or one number for all its kernels.
    counts : sequence of int
        Kernels of each alternative.
    """
    first = numbers[0]
    if not any(isinstance(each, np.ndarray) or each != first for each in numbers):
        return first
    return np.concatenate([np.full(n, each) for each, n in zip(numbers, counts, strict=True)])


class Grid:
    """The params of one alternative. Points are numbered in row-major order of the choices.

    Attributes
    ----------
    size : int
        Number of points.
    places : array of int
        The points at which the conditions of the alternative hold.
    """

    def __init__(self, scheduler: str, alternative: Alternative) -> None:
        self._scheduler, self._alternative = scheduler, alternative
        self._choices, self._align = alternative.choices, alternative.fixed.get("align", 1)
        self._shape = tuple(len(choice.values) for choice in self._choices)
        self.size = prod(self._shape)
        self._sizes = dict(_sizes(self._choices))
        fields = {name: self._along(*sizes) for name, sizes in self._sizes.items()}
        holds = (condition.holds(fields) for condition in alternative.conditions)
        self.places = np.flatnonzero(reduce(and_, holds, np.ones(self._shape, bool)))
        self._indices = np.unravel_index(self.places, self._shape)

    def coarse(self) -> Array:
        """The points of the coarse sample."""
        taken = (
            np.array(is_coarse(choice, self._alternative))[indices]
            for choice, indices in zip(self._choices, self._indices, strict=True)
        )
        return self.places[reduce(and_, taken, np.ones(len(self.places), bool))]

    def neighbours(self, place: int) -> Iterator[int]:
        """The points one step before and behind a point, along each axis that is varied."""
        step = self.size
        for choice in self._choices:
            count = len(choice.values)
            step //= count
            if choice.fields[0] in VARIED_FIELDS:
                along = place // step % count
                yield from [place - step] if along > 0 else []
                yield from [place + step] if along < count - 1 else []

    def params(self, place: int) -> HeuristicParams | None:
        """The params at a point."""
        step, values = self.size, [*self._alternative.fixed.items()]
        for choice in self._choices:
            count = len(choice.values)
            step //= count
            values += zip(choice.fields, choice.values[place // step % count], strict=True)
        return params_of(self._scheduler, tuple(values))

    def launches(self, problem: Problem) -> Launches:
        """The kernels at the points where the conditions hold.

        Tails count as part of their block, so that counts of the kernels are lower bounds.
        """
        of_each = {name: sizes[self._indices[axis]] for name, (axis, sizes) in self._sizes.items()}
        if issubclass(PARAMS[self._scheduler], FLAT_PARAMS):
            blocks = tuple(of_each[name] for name in ("block_x", "block_y") if name in of_each)
            factor = of_each.get("vectorization_factor", np.zeros(1))
            return flat_launches(problem, blocks, of_each["num_warps"], factor)
        tile, stages = self._tile(problem, of_each), of_each.get("num_stages", 1)
        prefetches = of_each.get("prefetch", 0)
        aligned = bool(np.any(of_each.get("align", self._align) > 1))
        return Launches(tile, of_each["num_warps"], stages, prefetches, aligned)

    def _tile(self, problem: Problem, sizes: dict[str, Array]) -> KernelTile:
        kind, tails = PARAMS[self._scheduler], sizes.get("tails", 0)
        staged = self._alternative.fixed.get("staged", False)
        if kind.loops_over_rows:
            row = sizes["block_r"] + tails
            return loop_over_rows(problem, sizes["block_m"], row, ARRAYS)._replace(staged=staged)
        rows, block = sizes["block_x"], sizes["block_r"]
        if self._alternative.fixed.get("persistent", False):
            return whole_rows(problem, rows, block + tails, staged=staged)
        is_reduction = issubclass(kind, ReductionParams)
        return loop_along_rows(problem, is_reduction, rows, block, tails, ARRAYS)

    def _along(self, axis: int, sizes: Array) -> Array:
        shape = [1] * len(self._shape)
        shape[axis] = self._shape[axis]
        return sizes.reshape(shape)


def _sizes(choices: Iterable[Choice]) -> Iterator[tuple[str, tuple[int, Array]]]:
    """The numeric fields, each with its axis and its values along it; for ``tails`` their sums.

    As floats, like everything that is counted: arithmetic of mixed types takes longer.
    """
    for axis, choice in enumerate(choices):
        for place, name in enumerate(choice.fields):
            values = [each[place] for each in choice.values]
            if name == "tails":
                yield name, (axis, np.array([*map(sum, values)], float))
            elif name.startswith(_COUNTED):
                yield name, (axis, np.array(values, float))
