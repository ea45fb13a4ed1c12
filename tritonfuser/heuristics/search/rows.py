"""Search spaces of kernels with rows: reductions, normalizations and scans.

Rows are whole in registers, or read by a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..cost.rows.staged import FEWEST_WARPS, TILES, may_be_staged
from ..inner_outer_persistent import fits_one_program
from ..integers import next_power_of_2
from ..params import MAX_TAILS, PARAMS
from ..problem import Problem
from ..row_tiling import block_and_tails, loop_tails, peeled_step, tile_row
from .common import LOADS_FIRST, MOST_STAGES, fits_threads, powers, rows_up_to, warps
from .orders import with_orders
from .shared_rows import shared_rows
from .space import Alternative, AtMost, Choice, SearchSpace

STEPS = (32, 1 << 15)
"""Least and most elements of a row in a step of a loop."""

LEAST_COLUMN_STEP = 16
"""Least elements of a column in a step of a loop over columns: a thread has neighbours of x, and
may have registers for the sums of few positions of r. H200, kernels of models, random definitions
and the suite: twelve for which the model then prefers steps of 16 take 0.92 to 1.01 times as long
(0.97 in the geometric mean). For fourteen it would prefer steps of 8: 0.83 to 1.23 times by these,
0.85 to 1.05 by steps of 16 (0.97 both)."""

MOST_ROWS = 512
"""Most rows of a program."""

MOST_STAGED = 256
"""Most rows of a step of a loop over rows, where each thread has whole rows."""

UNROLLED = (4, 2, 1)
"""Steps in one pass of a loop that are tried. H200, 88 loops without a pipeline, of the suite and
of random and recorded definitions: by two they take 0.66 to 1.29 times as long as by one, by four
0.72 to 1.76 times (0.99 and 1.01 in the geometric mean), by the best of the three 0.97. Which is
faster depends on what ptxas makes of it, which the cost model does not tell."""

STAGES_OR_PREFETCH = (*((stages, False) for stages in range(1, MOST_STAGES + 1)), (1, True))
"""Stages of loops over rows, and whether loads are prefetched into registers instead."""

STAGES_OR_UNROLLED = (
    *((1, steps) for steps in UNROLLED),
    *((n, 1) for n in range(2, MOST_STAGES + 1)),
)
"""Stages of loops along rows, and steps in one pass of those without a pipeline. Neighbours differ
by a step."""


def rows_space(scheduler: str, problem: Problem) -> SearchSpace:
    """Rows of a program, their tiles, warps, stages, the order of passes and cache hints."""
    whole = tuple(dict.fromkeys(_whole_tiles(scheduler, problem)))
    found, staged = [], hasattr(PARAMS[scheduler], "staged")
    if whole:
        tiles = Choice(("block_r", "tails", "align"), whole)
        choices = (_rows(problem), tiles, LOADS_FIRST, warps(problem))
        sides = fits_threads(problem, "block_x", "block_r")
        not_staged = {"staged": False} if staged else {}
        found.append(Alternative({"persistent": True, **not_staged}, choices, sides))
    found += _loops(scheduler, problem)
    alternatives = with_orders(problem, found)
    if staged:
        tile = Choice(("block_r", "tails", "align"), ((next_power_of_2(problem.reduced), (), 1),))
        fixed = {"persistent": True}
        alternatives += tuple(_staged(problem, "block_x", MOST_ROWS, tile, fixed))
    return SearchSpace(scheduler, alternatives)


def _staged(
    problem: Problem, rows: str, most: int, tile: Choice, fixed: Mapping[str, bool]
) -> Iterator[Alternative]:
    """Tiles of short rows that are adjacent in memory, of which each thread has some whole rows.

    Their axes are in the rules' order: in others, the rows are not adjacent.
    """
    short = tuple(value for value in tile.values if value[0] in TILES)
    if not short or not may_be_staged(problem):
        return
    threads = problem.device.warp_size
    choices = (
        Choice.of(rows, tuple(powers(FEWEST_WARPS * threads, most))),
        replace(tile, values=short),
        Choice.of("num_warps", tuple(powers(FEWEST_WARPS, most // threads))),
    )
    held, _ = fits_threads(problem, rows, "block_r")
    whole = AtMost(("num_warps",), 1, (rows,), scale=threads)
    yield Alternative({**fixed, "staged": True}, choices, (held, whole))


def _rows(problem: Problem) -> Choice:
    """Rows of a program: those that are reduced together, or any number of others."""
    if problem.co_reduced > 1:
        return Choice.of("block_x", (next_power_of_2(problem.co_reduced),))
    return Choice.of("block_x", rows_up_to(problem.parallel, MOST_ROWS))


def _whole_tiles(scheduler: str, problem: Problem) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """(block_r, tails, align) of rows in registers: those of a multiprocessor, at most."""
    row = problem.reduced
    if row > problem.device.registers_per_sm:
        return
    yield next_power_of_2(row), (), 1
    for most in range(1, MAX_TAILS + 1):
        block, tails = block_and_tails(row, most)
        yield block, tails, 1
    vector = _vector(scheduler, problem)
    if vector > 1:
        block, tails = tile_row(problem, vector)
        yield block, tails, vector


def _vector(scheduler: str, problem: Problem) -> int:
    """Elements of the vectors that tiles of rows may begin at. 1 where rows begin at vectors."""
    vector = problem.vector_elements
    aligns = getattr(PARAMS[scheduler], "can_align", False) and vector <= problem.reduced
    return vector if aligns else 1


def _loops(scheduler: str, problem: Problem) -> Iterator[Alternative]:
    """Rows that a loop reads in several steps, which may begin at vectors."""
    columns = scheduler == "reduction" and not problem.inner
    low, high = (LEAST_COLUMN_STEP, STEPS[1]) if columns else STEPS
    most = min(next_power_of_2(problem.reduced) // 2, high)
    if most < min(low, 2):
        return
    blocks, vector = tuple(powers(min(low, most), most)), _vector(scheduler, problem)
    if vector == 1:
        steps = _steps_of_columns(problem, blocks) if columns else Choice.of("block_r", blocks)
        yield _loop(scheduler, problem, steps, {})
        return
    yield _loop(scheduler, problem, Choice.of("block_r", blocks), {"align": 1})
    whole = problem.reduced // vector * vector
    aligned = (block for block in blocks if block >= vector)
    tiles = ((block, loop_tails(problem, block, align=vector)) for block in aligned)
    looped = tuple((n, tails) for n, tails in tiles if n + sum(tails[:-1]) < whole)
    if looped:
        yield _loop(scheduler, problem, Choice(("block_r", "tails"), looped), {"align": vector})


def _steps_of_columns(problem: Problem, blocks: Iterable[int]) -> Choice:
    """Steps of a loop over columns: for each block, with the last step masked in the loop, then
    with the last step peeled, if it can be."""
    ends = ((block, tails) for block in blocks for tails in ((), peeled_step(problem, block)))
    return Choice(("block_r", "tails"), tuple(dict.fromkeys(ends)))


def _loop(scheduler: str, problem: Problem, tiles: Choice, fixed: Mapping[str, int]) -> Alternative:
    """Rows that a loop reads by these steps."""
    choices = [
        _rows(problem),
        tiles,
        Choice(("num_stages", "unroll"), STAGES_OR_UNROLLED),
        warps(problem),
    ]
    names = ("evict_hints",) if scheduler == "reduction" else ("backwards", "evict_hints")
    choices += [Choice.of(name, (False, True)) for name in names]
    steps = AtMost(("block_r", "unroll"), problem.reduced)
    conditions = (*fits_threads(problem, "block_x", "block_r"), steps)
    return Alternative({"persistent": False, **fixed}, tuple(choices), conditions)


def scan_space(problem: Problem) -> SearchSpace:
    """Rows of a program, and the elements of a step."""
    row = next_power_of_2(problem.reduced)
    choices = (
        Choice.of("block_x", rows_up_to(problem.parallel, MOST_ROWS)),
        Choice.of("block_r", tuple(powers(min(STEPS[0], row), min(STEPS[1], row)))),
        Choice.of("evict_hints", (False, True)),
        warps(problem),
    )
    found = Alternative({}, choices, fits_threads(problem, "block_x", "block_r"))
    return SearchSpace("scan", with_orders(problem, [found]))


def inner_outer_space(problem: Problem) -> SearchSpace:
    """Rows of a step, the tiles of a row, warps and stages. Of rows that are too long for one
    program also parts that several have."""
    whole = {(block, tails) for block, tails, _ in _whole_tiles("inner_outer_persistent", problem)}
    rows = max(problem.parallel // max(problem.outer_batch, 1), 1)
    choices = (
        Choice.of("block_m", rows_up_to(rows, 64)),
        Choice(("block_r", "tails"), tuple(sorted(whole))),
        Choice(("num_stages", "prefetch"), STAGES_OR_PREFETCH),
        warps(problem),
    )
    sides = fits_threads(problem, "block_m", "block_r")
    fixed = {"staged": False, "parts": 1}
    found = [Alternative(fixed, choices, sides)] if whole else []
    if not fits_one_program(problem):
        found += shared_rows(problem)
    tile = Choice(("block_r", "tails"), ((next_power_of_2(problem.reduced), ()),))
    staged = _staged(problem, "block_m", MOST_STAGED, tile, {})
    return SearchSpace("inner_outer_persistent", (*with_orders(problem, found), *staged))
