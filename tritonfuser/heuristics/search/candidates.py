"""The params of a search space, numbered: lower bounds of the times of all, times of a few.

Most params objects are never created, because the bounds show that they are slower than others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from ..cost.model import KernelTime
from ..cost.tiles import Launches
from ..params import HeuristicParams, KernelParams
from ..problem import Problem
from .grid import Array, Grid, concatenated
from .space import SearchSpace
from .warps import Kernels

ROUNDED_DOWN = 1 - 1e-9
"""Factor on bounds: arrays add in another order than floats, so a bound may exceed an equal
time."""


class Timed(NamedTuple):
    """Params with their number, and the predicted time of their kernel."""

    number: int
    params: KernelParams
    time: KernelTime


class Candidates:
    """The params of a space, numbered in its order.

    Each has a bound, which its predicted time is not below. The bound is infinite for numbers whose
    params do not satisfy the conditions of the space, or exceed registers or shared memory.
    """

    def __init__(self, kernels: Kernels, space: SearchSpace) -> None:
        self._kernels = kernels
        self._grids = [Grid(space.scheduler, each) for each in space.alternatives]
        sizes = [grid.size for grid in self._grids]
        self._first = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
        self._bounds: list[float] = (ROUNDED_DOWN * self._bounds_of_all()).tolist()
        self._timed: dict[int, Timed | None] = {}

    def numbers(self) -> list[int]:
        """The numbers of all params that satisfy the conditions of the space."""
        return [n for first, grid in self._numbered_grids() for n in (first + grid.places).tolist()]

    def bound(self, number: int) -> float:
        """The lower bound of the predicted seconds of params."""
        return self._bounds[number]

    def all_exceed(self, seconds: float) -> bool:
        """Whether the bounds of all params are above so many seconds."""
        return min(self._bounds, default=inf) > seconds

    def coarse(self) -> list[int]:
        """The numbers of the coarse sample."""
        return [
            n for first, grid in self._numbered_grids() for n in (first + grid.coarse()).tolist()
        ]

    def neighbours(self, number: int) -> Iterator[int]:
        """The numbers of params that differ by one step of one size, or of the warps."""
        first, grid = self._grid_of(number)
        yield from (first + place for place in grid.neighbours(number - first))

    def params(self, number: int) -> HeuristicParams | None:
        """Params by their number; None where they exceed the limits of any kernel."""
        first, grid = self._grid_of(number)
        return grid.params(number - first)

    def time(self, number: int) -> Timed | None:
        """Params with the time of their kernel. None where its registers may not suffice."""
        if number not in self._timed:
            self._timed[number] = self._time(number)
        return self._timed[number]

    def fastest(self, numbers: Sequence[int], least: float = inf) -> Timed | None:
        """The params with the least predicted time; the first of several. None if there are none,
        or all bounds are above ``least`` seconds.

        Params are timed in the order of their bounds, until a bound is above the least time so far:
        then neither these params nor the remaining ones can be faster.
        """
        found: dict[int, Timed] = {}
        in_order = sorted((self._bounds[number], place) for place, number in enumerate(numbers))
        for bound, place in in_order:
            if bound > least or bound == inf:
                break
            timed = self.time(numbers[place])
            if timed is not None:
                found[place] = timed
                least = min(least, timed.time.seconds)
        first = min(found, key=lambda place: (found[place].time.seconds, place), default=None)
        return None if first is None else found[first]

    def may_be_as_fast(self, numbers: Iterable[int], best: Timed) -> dict[int, HeuristicParams]:
        """The params whose bounds are within the model's error of the fastest time."""
        within, least = self._kernels.within_model_error, best.time.seconds
        near = dict.fromkeys(number for number in numbers if within(self._bounds[number], least))
        made = ((number, self.params(number)) for number in near)
        return {number: params for number, params in made if params is not None}

    def as_fast(self, numbers: Iterable[int], best: Timed) -> list[Timed]:
        """The params whose times are within the model's error of the fastest time."""
        timed = (self.time(number) for number in numbers)
        within, least = self._kernels.within_model_error, best.time.seconds
        return [each for each in timed if each and within(each.time.seconds, least)]

    def _time(self, number: int) -> Timed | None:
        params = self.params(number)
        if not isinstance(params, KernelParams):
            return None
        time = self._kernels.time(params)
        if time is None or self._kernels.exceeds_registers(params, time):
            return None
        return Timed(number, params, time)

    def _numbered_grids(self) -> Iterator[tuple[int, Grid]]:
        """The grids, each with the number of its first point."""
        return zip(self._first, self._grids, strict=False)

    def _grid_of(self, number: int) -> tuple[int, Grid]:
        places = enumerate(pairwise(self._first))
        return next((low, self._grids[n]) for n, (low, high) in places if low <= number < high)

    def _bounds_of_all(self) -> Array:
        """The bounds of all numbers."""
        found = np.full(self._first[-1], inf)
        places = [first + grid.places for first, grid in self._numbered_grids()]
        numbers = np.concatenate(places) if places else np.array([], int)
        if not len(numbers):
            return found
        kernels = self._kernels
        many = concatenated([grid.launches(kernels.problem) for grid in self._grids])
        bounds = kernels.least_seconds(many)
        found[numbers] = np.where(_fits_shared_memory(kernels.problem, many), bounds, inf)
        return found


def _fits_shared_memory(problem: Problem, many: Launches) -> Array:
    """Whether shared memory has room for the stages of pipelines: see ``Problem.max_stages``."""
    each = sum(stream.item_bytes for stream in problem.full_loads)
    ahead = (many.stages - 1) * many.tile.x * many.tile.r * each
    return ahead <= problem.device.stage_bytes_per_block
