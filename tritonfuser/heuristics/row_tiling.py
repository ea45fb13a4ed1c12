"""How a row is cut into tiles: one block and shorter tails, all powers of two."""

from __future__ import annotations

from math import ceil, gcd

from ..device import VECTOR_BYTES
from .integers import ceil_div, floor_power_of_2, next_power_of_2
from .one_wave import exchange_lanes, run_at_once, spread_warps
from .params import MAX_TAILS
from .problem import Problem

SHORT_ROW_ELEMENTS = 1024
"""Longest row that always is one tile, whatever that wastes: programs have several such rows."""

MAX_WASTE = 0.06
"""Share of a row by which its tiles may reach past its end, where another tail could avoid it."""

VARYING_TAIL = 4
"""The block of a row over the shortest tail, where the length of rows varies.

Each tiling is a kernel of its own, for the lengths that it fits: four serve the lengths from one
power of two to the next. What reaches past a row is not read, so that it costs instructions alone.
"""

MIN_TAIL_ELEMENTS = 16
"""Elements of the shortest tail."""

MAX_TAIL_REDUCTIONS = 6
"""Reductions of tails in a kernel. Each is a further reduction over all lanes, with its
barriers. H200, loops over rows with three and four reductions: of 2896 elements with two tails 65.4
us, with three, where 26 words of a thread spill, 125; of 3136 with none 60.7, with two 63.2."""

ELEMENTS_PER_THREAD = 32
"""Elements of a row that a thread keeps in registers. H200, rows of 8192: 16 and 64 were slower."""

MORE_PER_THREAD = 1.25
"""Factor by which a thread may keep more of a row that is no power of two."""

ELEMENTS_PER_THREAD_OF_FEW = {4: 8, 8: ELEMENTS_PER_THREAD, 16: 16}
"""Programs for each SM, at most -> elements of a row that a thread keeps. Of few programs each
should be done soon.

H200, 8 elements or 32: a layer norm with a dropout of 512 x 1024 took 5.5 us and 6.2, a layer norm
of 2048 x 4096 13.0 and 14.0. H200, 16 elements or 32: an rmsnorm with a residual of 1024 x 4096
took 11.2 us and 10.0."""

SHORT_ROW_SHARE = 8
"""Of a row within a warp a thread has a share of elements of several rows: an eighth of a row's
length, at least ``SHORT_ROW_ELEMENTS_PER_THREAD``. Threads of one row are few then, and programs
have more warps instead, whose registers are few.

H200, 32 elements a thread of 1 warp, or 8 of 4: a softmax of 383120 x 56 in float32 44.4 us and
40.3, an rmsnorm of 2320848 x 27 147 and 132, of 25472 x 16 in bfloat16 5.6 and 4.8; 16 elements of
16 warps: of 53760 x 96 in bfloat16 12.2 and 11.0. Rows that take all lanes, or several warps, are
faster with more elements: an rmsnorm of 282752 x 144 in bfloat16 took 56.6 us with 32, 62.7 with
16, of 120016 x 151 25.2 by 1 warp and 46.9 by 4."""

SHORT_ROW_ELEMENTS_PER_THREAD = 8
"""Elements of short rows that a thread has at least."""

MIN_ALIGNED_ROW_ELEMENTS = 512
"""Elements of a row from which aligned tiles pay. In shorter rows the latency of 2-byte loads is
hidden."""

MAX_WEIGHT_LOADS = 8
"""Element-wise loads of weights for each full tensor that aligned tiles may cost."""


def max_tails(reductions: int) -> int:
    """The most tails a row may have with this number of reductions over it."""
    return max(1, min(MAX_TAILS, MAX_TAIL_REDUCTIONS // max(reductions, 1)))


def tails_of(
    row: int, block: int, most: int = MAX_TAILS, step: int | None = None
) -> tuple[int, ...]:
    """Tiles for the rest of a row behind whole blocks: ``12544, 8192 -> (4096, 256)``.

    With ``step`` they are multiples of it, and the same for all rows of as many steps.
    """
    least, waste = (MIN_TAIL_ELEMENTS, MAX_WASTE * row) if step is None else (step, step - 1)
    left: int = row % block if row > block else 0
    found: list[int] = []
    while left > 0:
        above = max(next_power_of_2(left), least)
        if above - left <= waste or above == least or len(found) == most - 1:
            return (*found, above)
        found.append(above // 2)
        left -= above // 2
    return tuple(found)


def loop_tails(
    problem: Problem, block: int, most: int = MAX_TAILS, align: int = 1
) -> tuple[int, ...]:
    """Tails for what the steps of a loop leave of a row, so that no step of it needs a mask.

    Where the length varies, one tile holds whatever they may leave: as many elements as a step.

    Parameters
    ----------
    align : int
        Elements of the vectors that steps begin at. Above 1, the last tail is for the edges.
    """
    if align > 1:
        return _tails_of_vectors(problem, block, max(most - 1, 1), align) + edges_tail(align)
    if problem.row_varies:
        return (block,) if problem.reduced > block else ()
    return tails_of(problem.reduced, block, most)


def peeled_step(problem: Problem, block: int) -> tuple[int, ...]:
    """The tail for what the steps of a loop over columns leave: one more of them, behind the loop.

    The others need no masks then, so that the compiler unrolls them, and reductions add up what the
    last one has as if it were in the loop. Empty where there is nothing to gain: no rest, or one
    step before it.

    H200, 51 loops over columns, most of them bias gradients: 0.89 of the time of a loop with masks
    (geometric mean; 0.57 to 1.12), 0.96 of that by the shortest tails.
    """
    left, before = problem.row_varies or problem.reduced % block, (problem.reduced - 1) // block
    return (block,) if left and before > 1 else ()


def _tails_of_vectors(problem: Problem, block: int, most: int, align: int) -> tuple[int, ...]:
    """Tails for what blocks leave of the whole vectors of a row.

    Blocks are those that all rows have: one that begins inside a vector may have a vector less.
    """
    whole = problem.reduced // align * align
    is_less = (problem.reduced + 1) % align != 0
    if problem.row_varies or (whole % block == 0 and is_less):
        return (block,) if whole > block else ()
    return tails_of(whole, block, most)


def edges_tail(align: int) -> tuple[int, ...]:
    """The tail for what is beside the whole vectors of a row: none where tiles begin with it."""
    return (max(2 * align, MIN_TAIL_ELEMENTS),) if align > 1 else ()


def block_and_tails(
    row: int, most: int = MAX_TAILS, varies: bool = False, closely: bool = False
) -> tuple[int, tuple[int, ...]]:
    """A row as one block and its tails: ``8200 -> 8192, (16,)`` and ``1000 -> 1024, ()``.

    Parameters
    ----------
    closely : bool
        Where the length varies: whether tiles reach past its end by ``MAX_WASTE`` at most. More
        kernels serve the same lengths then.
    """
    above = next_power_of_2(row)
    step = above // 2 // VARYING_TAIL if varies else None
    if varies and closely:
        step = max(floor_power_of_2(int(MAX_WASTE * row)), MIN_TAIL_ELEMENTS)
    waste = MAX_WASTE * row if step is None else step - 1
    if row <= SHORT_ROW_ELEMENTS or above - row <= waste:
        return above, ()
    block = floor_power_of_2(row)
    tails = tails_of(row, block, most, step)
    return (block, tails) if block + sum(tails) < above else (above, ())


def row_alignment(problem: Problem) -> int:
    """Elements of a vector that tiles of rows should begin at, or 1 where they begin with the row.

    Weights, which are the same for all rows, are loaded element by element where tiles are aligned.
    H200, 8192 x 8193 in bfloat16: a layer norm with two weights and one result took 126 us with
    aligned tiles and 99 without, the sum of a dropout 155 and 348.
    """
    full = len(problem.full_streams)
    weights = sum(s.along_r and not s.along_x and not s.is_store for s in problem.streams)
    cheap = weights * problem.vector_elements < full * MAX_WEIGHT_LOADS
    long = problem.reduced >= MIN_ALIGNED_ROW_ELEMENTS
    return problem.vector_elements if long and cheap else 1


def tile_row(
    problem: Problem, align: int, most: int = MAX_TAILS, closely: bool = False
) -> tuple[int, tuple[int, ...]]:
    """A row as one block and its tails. Where tiles are aligned, the last tail is for the edges.

    The edges are the elements before the first whole vector of a row and behind the last one.

    Parameters
    ----------
    closely : bool
        As in ``block_and_tails``.
    """
    varies = problem.row_varies
    if align == 1:
        return block_and_tails(problem.reduced, most, varies, closely)
    whole = problem.reduced // align * align
    block, tails = block_and_tails(whole, max(most - 1, 1), varies, closely)
    return block, tails + edges_tail(align)


def joined_tiles(
    problem: Problem, block: int, tails: tuple[int, ...], warps: int, block_x: int = 1
) -> tuple[int, tuple[int, ...]]:
    """One tile in place of a block with tails, where all programs run at once and it is faster.

    Each tail is a further reduction over all lanes: the warps hand on what they have once more.
    What reaches past the end of a row takes instructions, of which few programs have little.
    """
    whole = next_power_of_2(problem.reduced)
    exchanged = warps * exchange_lanes(warps, len(tails) * problem.accumulators)
    at_once = run_at_once(problem.device, ceil_div(problem.parallel, block_x), warps)
    joins = at_once and block_x * (whole - block - sum(tails)) <= exchanged
    return (whole, ()) if joins else (block, tails)


def warps_of_rows(problem: Problem, tile: int, block_x: int = 1) -> int:
    """Warps of a program that keeps ``block_x`` rows in registers, ``tile`` elements together."""
    device = problem.device
    programs = problem.parallel / block_x / device.sm_count
    few = ELEMENTS_PER_THREAD_OF_FEW.items()
    elements = next((n for most, n in few if programs <= most), ELEMENTS_PER_THREAD)
    row = tile // block_x
    if problem.co_reduced == 1 and _lanes(problem, row) <= device.warp_size:
        elements = min(elements, max(row // SHORT_ROW_SHARE, SHORT_ROW_ELEMENTS_PER_THREAD))
    warps = ceil(tile / elements / device.warp_size / MORE_PER_THREAD)
    items = block_x * problem.reduced
    alone = spread_warps(device, ceil(problem.parallel / block_x), items, problem.accumulators)
    return max(1, min(16, next_power_of_2(warps)), alone)


def _lanes(problem: Problem, row: int) -> int:
    """Lanes that a row lies along: each has the elements of a vector, as its alignment allows."""
    steps = ((s, (s.x_stride or problem.reduced) * s.item_bytes) for s in problem.full_streams)
    widths = (gcd(step, VECTOR_BYTES) // s.item_bytes for s, step in steps if s.r_stride == 1)
    return ceil_div(row, max(widths, default=1))
