"""Normalizations over columns, such as batch norms: results need reductions over the rows.

It takes problems whose rows are strided in memory, as columns. It decides in this order: columns
that fit stay in registers (``persistent``); loops read the others, one for each pass, every second
one backwards. If separate kernels are faster than loops, the problem is refused, or a softmax is
split into parts that fit.
"""

from __future__ import annotations

from .columns.norms import (
    few_loops_reason,
    hints_pay,
    least_columns,
    loop_tile,
    partial_lines_reason,
    parts_in_registers,
    register_tile,
    vector_aligned_parts,
)
from .integers import ceil_div
from .interpreter_tiles import interpreter_tile
from .params import HeuristicParams, OuterPersistentParams
from .params.made import made
from .problem import Problem
from .requirements import (
    HAS_REDUCTION,
    NO_OUTER_REDUCTION,
    NO_SCAN,
    ROWS_ACROSS_MEMORY,
    first_reason,
    normalization_reason,
)

split = parts_in_registers
interleave = vector_aligned_parts


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    reason = first_reason(problem, HAS_REDUCTION, NO_SCAN, NO_OUTER_REDUCTION, ROWS_ACROSS_MEMORY)
    if reason is not None:
        return reason
    programs = ceil_div(problem.parallel, least_columns(problem))
    reason = normalization_reason(problem, programs)
    return reason or partial_lines_reason(problem) or few_loops_reason(problem)


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    if problem.on_cpu:
        return OuterPersistentParams(**interpreter_tile(problem)._asdict())
    whole = register_tile(problem)
    tile = whole or loop_tile(problem)
    return made(
        OuterPersistentParams,
        **tile._asdict(),
        persistent=whole is not None,
        backwards=whole is None,
        evict_hints=whole is not None or hints_pay(problem, tile.block_x),
    )
