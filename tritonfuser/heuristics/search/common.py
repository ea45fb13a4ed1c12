"""Parts shared by all search spaces: powers of two, numbers of warps, tiles that fit threads."""

from __future__ import annotations

from collections.abc import Iterator

from ..integers import next_power_of_2
from ..problem import Problem
from .space import AtMost, Choice

MOST_PER_THREAD = 128
"""Elements of a tile that a thread has at most. Each takes a register or more of its 255."""

LEAST_PER_WARP = 8
"""Elements of a tile that a warp has at least. With fewer most of its threads idle."""

MOST_STAGES = 4
"""Most stages of a pipeline that are tried. ``num_stages`` may be more."""

LOADS_FIRST = Choice(("loads_first",), ((False,), (True,)))
"""Whether loads come before what is computed. The rules' choice is one of both."""


def powers(low: int, high: int) -> Iterator[int]:
    """``low``, and its doubles up to ``high``."""
    return (low << n for n in range(max((high // low).bit_length(), 1)))


def warps(problem: Problem, most: int = 32) -> Choice:
    """Warps of a program. The interpreter has no threads."""
    if problem.on_cpu:
        return Choice.of("num_warps", (4,))
    return Choice.of("num_warps", tuple(powers(1, min(most, problem.device.max_warps_per_block))))


def fits_threads(problem: Problem, *sides: str) -> tuple[AtMost, ...]:
    """A warp has some elements of a tile, a thread not more than its registers hold."""
    if problem.on_cpu:
        return ()
    threads = problem.device.warp_size
    return (
        AtMost(sides, MOST_PER_THREAD * threads, ("num_warps",)),
        AtMost(("num_warps",), 1, sides, scale=LEAST_PER_WARP),
    )


def rows_up_to(rows: int, most: int) -> tuple[int, ...]:
    """Rows of a program: powers of two up to all rows, and to ``most``."""
    return tuple(powers(1, max(1, min(next_power_of_2(rows), most))))
