"""Search spaces of flat kernels: pointwise and transpose."""

from __future__ import annotations

from ...device import VECTOR_BYTES
from ..integers import next_power_of_2
from ..problem import Problem
from .common import fits_threads, powers, warps
from .space import Alternative, Choice, SearchSpace

LONGEST_BLOCK = 1 << 14
"""Elements of a program of a flat kernel, at most."""

SIDES = (16, 256)
"""Least and most elements of a side of a transposed tile."""


def pointwise_space(problem: Problem) -> SearchSpace:
    """Elements of a program, its warps, and the neighbouring elements of a thread."""
    most = min(next_power_of_2(problem.parallel), LONGEST_BLOCK)
    vector = max(VECTOR_BYTES // problem.narrowest, 1)
    choices = (
        Choice.of("block_x", tuple(powers(min(32, most), most))),
        Choice.of("vectorization_factor", (0, *powers(1, vector))),
        warps(problem, most=16),
    )
    found = Alternative({}, choices, fits_threads(problem, "block_x"))
    return SearchSpace("pointwise", (found,))


def transpose_space(problem: Problem) -> SearchSpace:
    """The sides of a tile, and its warps."""
    low, high = SIDES
    x = next_power_of_2(problem.parallel // max(problem.crossing, 1))
    y = next_power_of_2(problem.crossing)
    choices = (
        Choice.of("block_x", tuple(powers(min(low, x), min(high, x)))),
        Choice.of("block_y", tuple(powers(min(low, y), min(high, y)))),
        warps(problem, most=16),
    )
    found = Alternative({}, choices, fits_threads(problem, "block_x", "block_y"))
    return SearchSpace("transpose", (found,))
