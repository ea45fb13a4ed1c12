"""Search space of rows that several programs share, each program with one part of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ..looped_rows.row_parts import (
    WORKING_REGISTERS,
    Residents,
    can_share_rows,
    edges_of_part,
    registers_per_element,
    row_parts,
    rows_of_group,
    stage_bytes,
)
from ..params import MAX_TAILS
from ..problem import Problem
from .common import MOST_STAGES, fits_threads, powers, warps
from .space import Alternative, AtMost, Choice

PROGRAMS = tuple(powers(1, 8))
"""Programs of a multiprocessor that are tried: with more of them each has fewer registers."""

MOST_WARPS = 16
"""Warps of a program that are tried. Of 32 a thread has 64 registers, and in shared memory sums of
tails take more than is reserved: 4.2 KB beside the stages of a layer norm's backward."""

DELAYS = (1, 2, 3, 4)
"""Rows between the sums of a row and its results that are tried."""

_Tile = tuple[int, int, tuple[int, ...], int]
"""Parts, and ``block_r``, ``tails`` and ``align`` of one."""


def shared_rows(problem: Problem) -> Iterator[Alternative]:
    """Parts of a row, warps with their registers, rows in flight: for each number of programs that
    run at a time on a multiprocessor, since all that share rows have to."""
    if can_share_rows(problem) and rows_of_group(problem) > 1:
        for programs in PROGRAMS:
            own = {each: tuple(_tiles(problem, each)) for each in _residents(problem, programs)}
            own = {residents: tiles for residents, tiles in own.items() if tiles}
            if own:
                yield _alternative(problem, [*own], sorted({*chain.from_iterable(own.values())}))


def _residents(problem: Problem, programs: int) -> Iterator[Residents]:
    """So many programs of a multiprocessor, of each number of warps."""
    device = problem.device
    most = min(device.max_threads_per_sm // (programs * device.warp_size), MOST_WARPS)
    return (Residents(device, programs, count) for (count,) in warps(problem, most).values)


def _tiles(problem: Problem, residents: Residents) -> Iterator[_Tile]:
    """The parts of a row that are as many as programs run at a time. They may begin at vectors
    where rows are shared out so that those of a program begin alike."""
    most = residents.programs * problem.device.sm_count // max(problem.outer_batch, 1)
    vector = problem.vector_elements if problem.rows_split else 1
    for align in sorted({1, min(vector, problem.reduced)}):
        for tails in range(1, MAX_TAILS - (align > 1) + 1):
            for part in row_parts(problem, align, residents, tails):
                if part.parts <= most and _have_room(problem, residents, part.parts, part.width):
                    yield part.parts, part.block, (*part.tails, *edges_of_part(align)), align


def _have_room(problem: Problem, residents: Residents, parts: int, width: int) -> bool:
    """Whether as many stages of parts of this width have room as of parts without anything behind
    the end of a row, which ``_stages_have_room`` asks about."""
    room, equal = residents.stage_bytes, stage_bytes(problem, problem.reduced)
    stages = [n for n in range(MOST_STAGES) if n * equal <= room * parts]
    return max(stages) * stage_bytes(problem, width) <= room


def _alternative(
    problem: Problem, residents: Sequence[Residents], tiles: Sequence[_Tile]
) -> Alternative:
    threads = tuple((each.warps, each.registers) for each in residents)
    choices = (
        Choice(("parts", "block_r", "tails", "align"), tuple(tiles)),
        Choice(("num_warps", "max_registers"), threads),
        Choice.of("num_stages", range(1, MOST_STAGES + 1)),
        Choice.of("delay", DELAYS),
    )
    conditions = (
        *fits_threads(problem, "block_r"),
        _registers_hold_part(problem),
        _stages_have_room(problem, residents[0].stage_bytes),
    )
    return Alternative({"block_m": 1, "prefetch": False, "staged": False}, choices, conditions)


def _registers_hold_part(problem: Problem) -> AtMost:
    """Threads have registers for the elements of a part: it has a row's elements by the parts."""
    return AtMost(
        (),
        problem.device.warp_size,
        ("parts", "num_warps", "max_registers"),
        scale=problem.reduced * registers_per_element(problem),
        less=(("max_registers", WORKING_REGISTERS),),
    )


def _stages_have_room(problem: Problem, room: int) -> AtMost:
    """What a program loads ahead has room in its share of shared memory."""
    row = stage_bytes(problem, problem.reduced)
    return AtMost(("num_stages",), room, ("parts",), scale=row, less=(("num_stages", 1),))
