"""How a row is cut into tiles whose sides are powers of two."""

from __future__ import annotations

from math import ceil

from .integers import next_power_of_2
from .params import MAX_TAILS
from .problem import Problem

SHORT_ROW = 1024
"""Elements of a row that one tile takes whatever it wastes: programs have several such rows."""

WASTE = 0.06
"""Part of a row by which its tiles may reach past its end, where cutting on can help it."""

SMALLEST = 16
"""Elements of a tail."""

JOINS = 6
"""Reductions of tails that a row may have: each is one more over all lanes, with its barriers."""


def most_tails(reductions: int) -> int:
    """Tails of a row that so many reductions run over: of few, that waste a little less."""
    return max(1, min(MAX_TAILS, JOINS // max(reductions, 1)))


def tails_of(row: int, block: int, most: int = MAX_TAILS) -> tuple[int, ...]:
    """Tiles for what whole blocks leave of a row: ``12544, 8192 -> (4096, 256)``."""
    left: int = row % block if row > block else 0
    found: list[int] = []
    while left > 0:
        above = max(next_power_of_2(left), SMALLEST)
        if above - left <= WASTE * row or len(found) == most - 1:
            return (*found, above)
        found.append(above // 2)
        left -= above // 2
    return tuple(found)


ITEMS_A_THREAD = 32
"""Elements of a row in the registers of a thread; on an H200 16 and 64 were slower at 8192."""

SLACK = 1.25
"""How many more they may be, of a row that is no power of two."""

LEAST_ALIGNED = 512
"""Elements of a row that are worth edges: of shorter ones loads of two bytes are hidden."""


def align_of(problem: Problem) -> int:
    """The elements of a vector that tiles of rows should begin at, or 1.

    What is the same for all rows, such as weights, is then read element by element. On an H200 a
    layer norm of 8192 x 8193 in bfloat16, which reads two of those and writes one tensor, took
    126 us so and 99 with all rows alike; of a sum with a dropout it took 155 and 348.
    """
    whole = sum(s.along_x and s.along_r for s in problem.streams)
    weights = sum(s.along_r and not s.along_x and not s.is_store for s in problem.streams)
    cheap = weights * problem.vector_elements < whole * 8
    return problem.vector_elements if problem.reduced >= LEAST_ALIGNED and cheap else 1


def row_tiles(problem: Problem, align: int, most: int = MAX_TAILS) -> tuple[int, tuple[int, ...]]:
    """A kept row as one block and its tails, the last of them the edges where tiles are aligned."""
    if align == 1:
        return whole_row(problem.reduced, most)
    block, tails = whole_row(problem.reduced // align * align, max(most - 1, 1))
    return block, (*tails, max(2 * align, SMALLEST))


def whole_row(row: int, most: int = MAX_TAILS) -> tuple[int, tuple[int, ...]]:
    """A row as one block and its tails: ``8200 -> 8192, (16,)`` and ``1000 -> 1024, ()``."""
    above = next_power_of_2(row)
    if row <= SHORT_ROW or above - row <= WASTE * row:
        return above, ()
    tails = tails_of(row, above // 2, most)
    return (above // 2, tails) if sum(tails) < above // 2 else (above, ())


AT_ONCE = {4: 8, 8: ITEMS_A_THREAD, 16: 16}
"""Programs for each multiprocessor up to which a thread has so many elements: few should be done
soon. On an H200 a layer norm with a dropout of 512 x 1024 took 5.5 us so, 6.2 with 32, a layer norm
of 2048 x 4096 13.0 and 14.0; but an rmsnorm with a residual of 1024 x 4096 11.2 with 16 and 10.0
with 32."""


def warps_of(problem: Problem, tile: int, block_x: int = 1) -> int:
    """Warps of a program that keeps ``block_x`` rows, ``tile`` elements together."""
    device = problem.device
    programs = problem.parallel / block_x / device.sm_count
    items = next((n for most, n in AT_ONCE.items() if programs <= most), ITEMS_A_THREAD)
    return max(1, min(16, next_power_of_2(ceil(tile / items / device.warp_size / SLACK))))
