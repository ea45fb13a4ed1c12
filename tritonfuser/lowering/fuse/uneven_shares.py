"""Rows in, how programs share them out where no parts divide them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ...heuristics.integers import ceil_div
from ...heuristics.problem import Problem
from ..passes.split_factors import Padded

UNEVEN_LOSS = 4 / 3
"""Factor by which a row of uneven shares takes longer, at most. The last share's rows are counted
at run time, and steps of several rows are masked."""

UNALIGNED_LOSS = 3 / 2
"""The same where rows begin inside vectors, of shares whose rows begin at different places of one:
tiles cannot begin at vectors then."""


def busiest_rows(problem: Problem, parts: int, rows: int) -> int:
    """Rows of the multiprocessor that has most.

    Parameters
    ----------
    parts : int
        Programs for each position that the results keep.
    rows : int
        Rows of each program, but for the last.
    """
    programs = parts * problem.outer_batch
    return ceil_div(programs, problem.device.sm_count) * rows


def uneven_shares(problem: Problem, extents: Sequence[int], count: int, of: int) -> Padded | None:
    """The shares that leave the busiest multiprocessor with the fewest rows, or None.

    The rows of one dim are shared out. Each position of the dims before it has shares of its own,
    and each share has all of the dims behind it: ``(64, 197), 264`` -> 4 parts of the 197, for each
    of the 64.

    Parameters
    ----------
    extents : sequence of int
        The reduced extents, from the outermost on.
    count : int
        The shares wanted.
    of : int
        Where it is above 1, rows begin at the same place of a vector every so many rows. Shares
        then take rows in turn if there are so many shares.
    """

    def rows(way: Padded) -> tuple[bool, int, int]:
        return not way.interleaved, rows_of_busiest(problem, extents, way), way.place

    return min(_ways(extents, count, of), key=rows, default=None)


def rows_of_busiest(problem: Problem, extents: Sequence[int], way: Padded) -> int:
    """As ``busiest_rows`` of uneven shares."""
    parts, length = programs_of_shares(extents, way), ceil_div(extents[way.place], way.count)
    return busiest_rows(problem, parts, length * prod(extents[way.place + 1 :]))


def programs_of_shares(extents: Sequence[int], way: Padded) -> int:
    """The programs of uneven shares, for each position that the results keep."""
    return way.count * prod(extents[: way.place])


def _ways(extents: Sequence[int], count: int, of: int) -> Iterator[Padded]:
    before, last = 1, len(extents) - 1
    for place, size in enumerate(extents):
        wanted = min(count // before, size)
        if wanted < 2:
            return
        parts = ceil_div(size, ceil_div(size, wanted))
        if size % parts:
            yield Padded(place, parts, apart=place > 0)
        in_turn = wanted // max(of, 1) * of
        if of > 1 and place == last and in_turn and size % in_turn:
            yield Padded(place, in_turn, interleaved=True, apart=place > 0)
        before *= size
