"""Norm backwards: reductions along the rows and over the rows in one pass over the data.

Each program walks over its share of the rows with a whole row in registers and one partial
result a column for each reduction over the rows.
"""

from __future__ import annotations

from math import gcd

from ..device import MAX_BLOCK_ELEMENTS
from .integers import next_power_of_2
from .params import HeuristicParams, InnerOuterPersistentParams
from .problem import Problem
from .rows import align_of, row_tiles
from .shared_rows import params_of, shared

REGISTER_BUDGET = 36 * 1024
"""Elements of a program's row and its partial results together that stay in registers."""

BYTES_A_STEP = 16384
"""Bytes of its widest tensor that a program takes in one step."""

STAGES = 3
"""Loads in flight ahead of the row at hand; on an H200 one stage took 25% longer."""

ROWS_A_PROGRAM = 2
"""Rows a program should have at least, or the partial results cost more than they save."""

FEW_ROWS = 4
"""Rows of a program that are taken one a step: the backward of a layer norm of 512 x 1024 in
float32 took 10.0 us so, and 15.0 by all four at once."""

LEAST_ROWS = 64
"""Rows that are worth more than one kernel."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if not problem.outer_members:
        return "it does not reduce over rows"
    if not problem.parallel or not problem.reduced:
        return "there are no elements to reduce"
    if problem.scans:
        return "it has a scan"
    if not problem.inner:
        return "rows lie across memory"
    if problem.on_cpu:
        fits = next_power_of_2(problem.reduced) <= MAX_BLOCK_ELEMENTS
        return None if fits else f"a row of {problem.reduced} is more than a block holds"
    if not _fits(problem) and shared(problem) is None:
        return (
            f"{problem.outer_members} partial results beside a row of {problem.reduced} "
            "do not fit in registers, and its programs cannot share rows"
        )
    rows = problem.parallel
    if rows < LEAST_ROWS:
        return f"{rows} rows are too few for partial results"
    return None


def split(problem: Problem) -> int:
    """How many programs share the rows: one or two an SM, with a few rows each."""
    if problem.on_cpu or problem.rows_split:
        return 1
    if not _fits(problem):
        chosen = shared(problem)
        return 1 if chosen is None else chosen.groups
    programs = problem.device.sm_count * (1 if problem.reduced > 2048 else 2)
    return max(2, min(programs, problem.parallel // ROWS_A_PROGRAM))


def interleave(problem: Problem) -> int:
    """What programs should be a multiple of: its every so many-th rows begin alike in vectors."""
    vector = align_of(problem)
    if vector == 1 or problem.on_cpu or not _fits(problem):
        return 0
    return vector // gcd(vector, problem.reduced)


def propose(problem: Problem) -> HeuristicParams:
    rows = max(problem.parallel // max(problem.outer_batch, 1), 1)
    if problem.on_cpu:
        row = next_power_of_2(problem.reduced)
        block_m = min(next_power_of_2(rows), max(MAX_BLOCK_ELEMENTS // 4 // row, 1))
        return InnerOuterPersistentParams(block_m=block_m, block_r=row)
    if not _fits(problem):
        chosen = shared(problem)
        assert chosen is not None
        return params_of(problem, chosen)
    # Before rows are shared out they do not begin alike.
    align = align_of(problem) if problem.rows_split else 1
    block, tails = row_tiles(problem, align)
    row = block + sum(tails)
    widest = max((s.item_bytes for s in problem.full_loads), default=2)
    block_m = max(1, min(next_power_of_2(rows), BYTES_A_STEP // (block * widest)))
    few = rows <= FEW_ROWS
    if tails or few:  # of one row a step tails are read ahead, and there is no sum over a tile's
        block_m = 1
    stages = STAGES
    while stages > problem.max_stages(block_m * row):
        if block_m > 1:
            block_m //= 2
        else:
            stages -= 1
    warps = max(4, min(8 if tails or block < 8192 else 16, block_m * block // 512))
    return InnerOuterPersistentParams(
        block_m=block_m,
        block_r=block,
        tails=tails,
        align=align,
        num_warps=warps,
        num_stages=stages,
    )


def _fits(problem: Problem) -> bool:
    """Whether a row and what is kept of all rows are few enough for one program."""
    block, tails = row_tiles(problem, align_of(problem))
    return (block + sum(tails)) * (problem.outer_members + 2) <= REGISTER_BUDGET
