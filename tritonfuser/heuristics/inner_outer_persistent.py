"""Backward of norms: reductions along the rows and over the rows, in one pass over the data.

Takes problems with reductions over rows whose rows lie along memory. Each program loops over its
share of the rows, with a whole row in registers and one partial result a column for each reduction
over rows. Decides in this order: into how many shares to split the rows; whether rows fit in one
program, or several programs share them (``cooperative_rows``); aligned tiles; rows of a step;
pipeline stages; warps.
"""

from __future__ import annotations

from .cooperative_rows import cooperative_params, cooperative_split, vector_period
from .integers import next_power_of_2
from .interpreter_tiles import INTERPRETER_ELEMENTS
from .looped_rows.steps import fits_row, programs_for, step_of
from .params import HeuristicParams, InnerOuterPersistentParams
from .params.fields import Power
from .params.made import made
from .problem import Problem
from .programs import idle_reason, leaves_idle
from .requirements import NO_CROSSING_TENSOR, NO_SCAN, ROWS_ALONG_MEMORY, first_reason
from .row_tiling import max_tails, row_alignment, tile_row

MIN_ROWS_PER_PROGRAM = 2
"""Rows that a program should have at least. With fewer, partial results cost more than they
save."""

MIN_ROWS = 64
"""Rows of a problem from which one kernel is faster than several."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    if not problem.outer_members:
        return "it does not reduce over rows"
    if not problem.parallel or not problem.reduced:
        return "there are no elements to reduce"
    reason = first_reason(problem, NO_SCAN, ROWS_ALONG_MEMORY, NO_CROSSING_TENSOR)
    if reason is not None:
        return reason
    if problem.on_cpu:
        fits = Power.has(next_power_of_2(problem.reduced))
        return None if fits else f"a row of {problem.reduced} is more than a block holds"
    if not fits_one_program(problem) and cooperative_split(problem) is None:
        return (
            f"{problem.outer_members} partial results beside a row of {problem.reduced} "
            "do not fit in registers, and its programs cannot share rows"
        )
    rows = problem.parallel
    if fits_one_program(problem) and rows < MIN_ROWS:
        return f"{rows} rows are too few for partial results"
    return _idle_reason(problem)


def _idle_reason(problem: Problem) -> str | None:
    """Why the rows, shared out as far as they may be, have too few programs.

    Not asked again when what is stored along the rows joins.
    """
    if not fits_one_program(problem) or (problem.full_outputs and not problem.may_split):
        return None
    programs = problem.outer_batch * (split(problem) if problem.may_split else 1)
    return idle_reason(problem, programs) if leaves_idle(problem, programs) else None


def split(problem: Problem) -> int:
    """Into how many shares to split the rows: for one or two programs an SM, of a few rows each.

    Where results keep a batch dim, the rows of each of its positions are shared out.
    """
    if problem.on_cpu or problem.rows_split:
        return 1
    batch = problem.outer_batch
    if not fits_one_program(problem):
        chosen = cooperative_split(problem)
        return 1 if chosen is None else chosen.groups // batch
    programs = programs_for(problem, *_tile(problem, row_alignment(problem)))
    shares = min(programs // batch, problem.parallel // batch // MIN_ROWS_PER_PROGRAM)
    return problem.scaled(max(shares, 2 if batch == 1 else 1))


def interleave(problem: Problem) -> int:
    """What the number of shares should be a multiple of. 0 where shares have neighbouring rows.

    With a multiple of it, all rows of a share begin at the same place of a vector.
    """
    vector = row_alignment(problem)
    return 0 if vector == 1 or problem.on_cpu else vector_period(problem, vector)


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    rows = max(problem.parallel // max(problem.outer_batch, 1), 1)
    if problem.on_cpu:
        row = next_power_of_2(problem.reduced)
        block_m = min(next_power_of_2(rows), max(INTERPRETER_ELEMENTS // row, 1))
        return made(InnerOuterPersistentParams, block_m=block_m, block_r=row)
    if not fits_one_program(problem):
        chosen = cooperative_split(problem)
        assert chosen is not None
        return cooperative_params(problem, chosen)
    # Only rows of a share begin at the same place of a vector.
    align = row_alignment(problem) if problem.rows_split else 1
    block, tails = _tile(problem, align)
    step = step_of(problem, rows, block, tails)
    return made(
        InnerOuterPersistentParams,
        block_m=step.rows,
        block_r=block,
        tails=tails,
        align=align,
        num_warps=step.warps,
        num_stages=step.stages,
        prefetch=step.prefetch,
    )


def fits_one_program(problem: Problem) -> bool:
    """Whether one program's registers hold a row and the partial results of all columns."""
    return fits_row(problem, *_tile(problem, row_alignment(problem)))


def _tile(problem: Problem, align: int) -> tuple[int, tuple[int, ...]]:
    """The block and the tails of a row: as few tails as its reductions want, where that fits."""
    few = tile_row(problem, align, max_tails(problem.accumulators))
    return few if fits_row(problem, *few) else tile_row(problem, align)
