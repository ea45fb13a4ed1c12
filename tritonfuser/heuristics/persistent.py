"""Normalizations: results along the reduced axis depend on reductions along it.

``inner_persistent`` where rows lie along memory, ``outer_persistent`` where they lie across.
Rows that fit are kept in registers; longer ones are read again in each pass, from the L2 cache.
"""

from __future__ import annotations

from math import ceil

from .columns import begins_anywhere, walked_columns, whole_columns, whole_tensors
from .params import HeuristicParams, InnerPersistentParams, OuterPersistentParams
from .problem import Problem, Stream, ceil_div, next_power_of_2
from .reduction import cpu_tile
from .rows import most_tails, tails_of, whole_row

REGISTER_ROW = 17408
"""Elements of a tile that stay in registers: 32 a thread of 512, and short tails."""

ITEMS_A_THREAD = 32
"""Elements of a row in the registers of a thread; on an H200 16 and 64 were slower at 8192."""

SLACK = 1.25
"""How many more they may be, of a row that is no power of two."""

SPARE = 24
"""Registers of a thread beside those of its row: addresses, sums, what a step computes."""

ALL_WARPS = 32
LEAST_ROW, MOST_ROW = 1 << 15, 36 << 10
"""Warps of a program that has a multiprocessor for itself, and elements that they keep."""

TWO_STEPS = 16384
"""Elements of a row whose halves are a step of 16 warps each."""

LONG_ROW = 1 << 16
"""Elements of a row that are worth more launches when rows are few: some 3 us of one SM a pass."""

ROW_IN_L2 = 24576
"""Elements of a row of which an H200's L2 cache holds four an SM."""

MOST_WORK = 48
"""Ops an element of rows that stay as they are loaded through reductions that depend on one
another: of more too many results are wanted again behind them."""

TOGETHER = (4096, 16)
"""Elements of a step, of all rows that are reduced together, and warps: the backward of a group
norm of 256 x 64 x 112 x 112 took 536 us on an H200, and 712 by (4096, 32)."""

MOST_TOGETHER = 64
"""Rows that a program may have to reduce together: of more a step takes less than a line each."""

SECTOR = 32
"""Bytes of the smallest piece of memory a GPU moves."""


def reject_reason(problem: Problem, inner: bool) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if not problem.levels:
        return "it has no reduction"
    if problem.scans:
        return "it has a scan"
    if problem.outer_members:
        return "it reduces over rows as well"
    if problem.inner is not inner:
        return "rows lie across memory" if inner else "rows lie along memory"
    if problem.levels < 2 and not problem.dependent_outputs:
        return "no result along the reduced axis depends on a reduction"
    if problem.together > MOST_TOGETHER:
        return f"{problem.together} rows are too many to reduce together"
    return _too_few_rows(problem) or (None if inner else _pieces_of_lines(problem))


def _too_few_rows(problem: Problem) -> str | None:
    """A whole row is one program's work: few long rows would leave most of the device idle."""
    if problem.on_cpu:
        return None
    rows = problem.parallel if problem.inner else ceil_div(problem.parallel, _columns(problem))
    rows, row = rows // problem.together, problem.reduced * problem.together
    sms = problem.device.sm_count
    if rows * 4 < sms * 3 and row > LONG_ROW:
        return f"{rows} programs of {row} elements a row leave {sms} SMs idle"
    return None


def _pieces_of_lines(problem: Problem) -> str | None:
    """A walk over columns reads them twice, and so do a sum and a kernel that runs flat.

    The flat one has whole lines of memory wherever rows begin. On an H200 the walk of a softmax
    backward took 161 us over 8192 x 8192, torch.compile 155; 282 and 183 over 8192 x 8193. With
    two sums that need one another kernels would read three times, a walk that joins them twice.
    """
    whole = problem.on_cpu or whole_columns(problem) is not None
    if whole or problem.levels > 1 or not begins_anywhere(problem):
        return None
    return f"its rows begin inside lines of memory, and columns of {problem.reduced} do not fit"


def _columns(problem: Problem) -> int:
    """Columns side by side that make up whole sectors."""
    return min(next_power_of_2(problem.parallel), max(SECTOR // problem.narrowest, 8))


def propose_inner(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, whole = cpu_tile(problem)
        return InnerPersistentParams(block_x=x, block_r=r, persistent=whole)
    most = most_tails(problem.states)
    block, tails = whole_row(problem.reduced, most)
    block_x = _rows_together(problem, block + sum(tails))
    warps = _warps(block_x * (block + sum(tails)))
    if problem.together > 1:
        warps = min(warps, 8)
    if _is_all_an_sm_holds(problem, block_x * (block + sum(tails))):
        warps = ALL_WARPS
    if warps == ALL_WARPS or _stays(problem, block_x * (block + sum(tails)), warps):
        return InnerPersistentParams(
            block_x=block_x, block_r=block, tails=tails, persistent=True, num_warps=warps
        )
    chunk, warps = _chunk(problem)
    chunk = min(chunk // block_x, next_power_of_2(problem.reduced))
    # Behind a single block the tails would be in registers along with it.
    cut = problem.reduced >= 2 * chunk and problem.together == 1
    tails = tails_of(problem.reduced, chunk, most) if cut else ()
    return InnerPersistentParams(
        block_x=block_x, block_r=chunk, tails=tails, persistent=False, num_warps=warps
    )


def _rows_together(problem: Problem, row: int) -> int:
    """Rows of a program: those that are reduced together, or several short ones."""
    if problem.together > 1:
        return next_power_of_2(problem.together)
    rows = 1
    while rows * row < 1024 and ceil_div(problem.parallel, rows * 2) >= 4 * problem.device.sm_count:
        rows *= 2
    return rows


def _warps(tile: int) -> int:
    """Warps of a program that keeps its rows."""
    return max(1, min(16, next_power_of_2(ceil(tile / ITEMS_A_THREAD / 32 / SLACK))))


def _stays(problem: Problem, tile: int, warps: int) -> bool:
    """Whether rows stay in registers: of two programs an SM, or nothing is done beside waiting.

    On an H200 the backward of an instance norm with rows of 12544, two tensors in 16 warps of 104
    registers, took 572 us; 333 in two steps, of three programs at once. Rows that are reduced
    together would be walked over three times, so they stay as they are loaded: the backward of a
    group norm with silu of 128 x 96 x 57 x 57 took 101 us so, 178 in steps.
    """
    device = problem.device
    beside = warps * device.warp_size * SPARE
    if problem.together > 1 and problem.levels > 1:
        if problem.work > MOST_WORK:
            return False
        numbers = tile * _bytes_an_element(problem) // 4
    else:
        numbers = tile * max(sum(ceil_div(s.item_bytes, 4) for s in _loaded(problem)), 1)
    return tile <= REGISTER_ROW and 2 * (numbers + beside) <= device.registers_per_sm


def _bytes_an_element(problem: Problem) -> int:
    """What is read for an element, as it lies in memory."""
    return sum(s.item_bytes for s in _loaded(problem))


def _is_all_an_sm_holds(problem: Problem, tile: int) -> bool:
    """Whether the row of one program fills a multiprocessor's registers, and one sum is made of it.

    And something is written besides, which is not computed a second time then. On an H200 rmsnorm
    with a residual over 16384 x 36864 took 1147 us so and 1213 in a loop, with a dropout 1310 and
    1644; the backward of a softmax, which writes nothing else, 1120 and 911.
    """
    packed = tile * _bytes_an_element(problem) // 4
    registers = packed + ALL_WARPS * problem.device.warp_size * SPARE
    fills = LEAST_ROW <= tile <= MOST_ROW and registers <= problem.device.registers_per_sm
    return fills and problem.states == 1 and _stores(problem) > 1


def _stores(problem: Problem) -> int:
    """Results that run over all elements."""
    return sum(s.is_store and s.along_x and s.along_r for s in problem.streams)


def _loaded(problem: Problem) -> list[Stream]:
    """The tensors that are read over all elements."""
    return [s for s in whole_tensors(problem) if not s.is_store]


def _chunk(problem: Problem) -> tuple[int, int]:
    """Chunk of a long row, and the warps that walk over it.

    Rows are read again from the L2 cache, so those in flight should fit there: of longer rows
    fewer programs an SM, each with more loads of its own. But a lane that keeps more than one
    number of its row (a mean with its spread, a maximum with its sum) leaves no room for two
    programs of 32 warps with long chunks. A row that is walked over once needs no more than a few
    small programs. Measured on an H200: softmax of 16384 x 20480 took 317 us by (4096, 16) and
    425 by (8192, 32), rmsnorm with a residual 810 and 637; of 2048 x 73728 softmax took 202 us by
    (4096, 16) and 171 by (8192, 32). Random numbers take more registers and fewer lanes: layernorm
    of a dropout of 16384 x 36864 took 1725 us by (4096, 16), 2154 by (4096, 32).
    """
    row = problem.reduced * problem.together
    if not problem.full_outputs:
        return 2048, 8
    if problem.together > 1:
        return TOGETHER
    if problem.draws and row > ROW_IN_L2 // 2:
        widest = max((s.item_bytes for s in _loaded(problem)), default=2)
        return (4096, 16) if row * widest <= 8 * ROW_IN_L2 else (8192, 32)
    if row <= TWO_STEPS:
        half = next_power_of_2(row) // 2
        return half, max(half // 512, 1)
    if problem.states > 1:
        steps = [(ROW_IN_L2, (2048, 16)), (2 * ROW_IN_L2, (4096, 32)), (4 * ROW_IN_L2, (8192, 32))]
    else:
        first = (4096, 16) if _stores(problem) == 1 else (8192, 32)
        steps = [(ROW_IN_L2, first), (2 * ROW_IN_L2, (8192, 32))]
    return next((chosen for limit, chosen in steps if row <= limit), (16384, 32))


def propose_outer(problem: Problem) -> HeuristicParams:
    if problem.on_cpu:
        x, r, fits = cpu_tile(problem)
        return OuterPersistentParams(block_x=x, block_r=r, persistent=fits)
    whole = whole_columns(problem)
    block_x, block_r, warps = whole or walked_columns(problem)
    return OuterPersistentParams(
        block_x=block_x, block_r=block_r, persistent=whole is not None, num_warps=warps
    )
