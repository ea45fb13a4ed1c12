"""Search spaces of flat kernels: pointwise and transpose."""

from __future__ import annotations

from math import prod
from typing import Any

from ...device import VECTOR_BYTES
from ..cost.sides import broadcast_side, sides_along
from ..integers import next_power_of_2
from ..problem import Problem
from .common import LOADS_FIRST, fits_threads, powers, warps
from .orders import with_orders
from .space import Alternative, Choice, SearchSpace

LONGEST_BLOCK = 1 << 14
"""Elements of a program of a flat kernel, at most."""

SIDES = (16, 256)
"""Least and most elements of a side of a transposed tile."""


def pointwise_space(problem: Problem) -> SearchSpace:
    """Elements of a program, its warps, and the neighbouring elements of a thread.

    Many warps where tensors are read at indices of others: a program reads much of a window then.
    """
    most = min(next_power_of_2(problem.parallel), LONGEST_BLOCK)
    vector = max(VECTOR_BYTES // problem.narrowest, 1)
    choices = (
        Choice.of("block_x", tuple(powers(min(32, most), most))),
        Choice.of("vectorization_factor", (0, *powers(1, vector))),
        LOADS_FIRST,
        warps(problem, most=32 if problem.gathers else 16),
    )
    found = Alternative({}, choices, fits_threads(problem, "block_x"))
    return SearchSpace("pointwise", with_orders(problem, [found]))


def transpose_space(problem: Problem) -> SearchSpace:
    """The sides of a tile, which programs run along first, warps, and the axes of the sides."""
    found = [_sides_of(problem, problem.crossing, {})]
    own = tuple(number for group in problem.order for number in group)
    for side in _other_sides(problem):
        axes = tuple(own[place] for place in range(len(own)) if place not in side)
        fixed = {"axes": axes, "across": tuple(own[place] for place in side)}
        found.append(_sides_of(problem, prod(problem.axes[place] for place in side), fixed))
    return SearchSpace("transpose", tuple(found))


def _sides_of(problem: Problem, crossing: int, fixed: dict[str, Any]) -> Alternative:
    """Tiles whose second side runs over ``crossing`` positions."""
    low, high = SIDES
    x = next_power_of_2(problem.parallel // max(crossing, 1))
    y = next_power_of_2(crossing)
    choices = (
        Choice.of("block_x", tuple(powers(min(low, x), min(high, x)))),
        Choice.of("block_y", tuple(powers(min(low, y), min(high, y)))),
        Choice(("first",), (("x",), ("y",))),
        LOADS_FIRST,
        warps(problem, most=16),
    )
    return Alternative(fixed, choices, fits_threads(problem, "block_x", "block_y"))


def _other_sides(problem: Problem) -> list[tuple[int, ...]]:
    """Places of the axes of other second sides: those along the memory of a tensor, and those that
    one is broadcast along."""
    if not problem.order:
        return []
    along = (side for stream in problem.streams for side in sides_along(problem, stream))
    beside = (broadcast_side(problem, stream) for stream in problem.streams)
    found = dict.fromkeys((*along, *beside))
    return [side for side in found if side and side != problem.across]
