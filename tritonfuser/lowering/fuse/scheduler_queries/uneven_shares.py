"""Shares of rows that no number of programs divides: the last share has fewer rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from ....heuristics.integers import ceil_div
from ....heuristics.problem import Problem
from ...passes.splits.parts import Padded

UNEVEN_LOSS = 4 / 3
"""Factor by which a row of uneven shares takes longer, at most. The last share's rows are counted
at run time, and steps of several rows are masked."""

UNALIGNED_LOSS = 3 / 2
"""``UNEVEN_LOSS`` where rows begin inside vectors, at different offsets in a program's share: its
tiles cannot begin at vectors then."""


def sequential_rows(problem: Problem, parts: int, rows: int, count: int) -> float:
    """Rows that a program processes one after another, relative to a grid of ``count`` programs.

    ``count`` programs hide one another's latency. With fewer, each is as slow as with ``count``.

    Parameters
    ----------
    parts, count : int
        Programs for each position that the results keep, and how many are wanted.
    rows : int
        Rows of each program, but for the last.
    """
    sms = problem.device.sm_count
    here, wanted = (ceil_div(n * problem.outer_batch, sms) for n in (parts, count))
    return rows * max(here / wanted, 1.0)


def uneven_shares(
    problem: Problem, extents: Sequence[int], count: int, interleave: int, varies: bool = False
) -> Padded | None:
    """The shares with the fewest sequential rows. None if there are no uneven shares.

    One dim is divided into shares, separately for each position of the dims outside it. A share has
    all positions of the dims inside: ``(64, 197), 264`` -> 4 shares of the 197, for each of the 64.

    Parameters
    ----------
    extents : sequence of int
        The reduced extents, from the outermost on.
    count : int
        The shares wanted.
    interleave : int
        The period, in rows, after which rows begin at the same offset inside a vector again, if it
        is above 1. Shares may then be interleaved, if their number is a multiple of it.
    varies : bool
        Whether the number of shares is an argument of the kernel. The rows of a share are then one
        expression for all sizes, and some of the last shares may be empty.
    """

    def key(shares: Padded) -> tuple[bool, float, int]:
        rows = sequential_rows_of_shares(problem, extents, shares, count)
        return not shares.interleaved, rows, shares.place

    candidates = _candidates_at_any_size if varies else _candidates
    return min(candidates(extents, count, interleave), key=key, default=None)


def sequential_rows_of_shares(
    problem: Problem, extents: Sequence[int], shares: Padded, count: int
) -> float:
    """``sequential_rows`` of uneven shares."""
    parts, length = (
        programs_of_shares(extents, shares),
        ceil_div(extents[shares.place], shares.count),
    )
    return sequential_rows(problem, parts, length * prod(extents[shares.place + 1 :]), count)


def programs_of_shares(extents: Sequence[int], shares: Padded) -> int:
    """The programs of uneven shares that have rows, for each position that the results keep."""
    size = extents[shares.place]
    used = shares.count if shares.interleaved else ceil_div(size, ceil_div(size, shares.count))
    return used * prod(extents[: shares.place])


def _candidates(extents: Sequence[int], count: int, interleave: int) -> Iterator[Padded]:
    """Shares of each dim that they do not divide; interleaved ones of the innermost dim too."""
    before, last = 1, len(extents) - 1
    for place, size in enumerate(extents):
        wanted = min(count // before, size)
        if wanted < 2:
            return
        parts = ceil_div(size, ceil_div(size, wanted))
        if size % parts:
            yield Padded(place, parts, second=tuple(range(place)))
        interleaved_parts = wanted // max(interleave, 1) * interleave
        if interleave > 1 and place == last and interleaved_parts and size % interleaved_parts:
            yield Padded(place, interleaved_parts, interleaved=True, second=tuple(range(place)))
        before *= size


def _candidates_at_any_size(
    extents: Sequence[int], count: int, interleave: int
) -> Iterator[Padded]:
    """``_candidates`` whose number and rows are the same expressions at all sizes."""
    for place, size in enumerate(extents):
        wanted = min(count // prod(extents[:place]), size)
        if wanted < 2:
            return
        may_interleave = place == len(extents) - 1 and 1 < interleave <= wanted
        for interleaved in (False, True) if may_interleave else (False,):
            shares = Padded(place, 0, interleaved=interleaved, second=tuple(range(place)))
            yield replace(shares, count=shares_at(extents, shares, count, interleave))


def shares_at(extents: Sequence[int], shares: Padded, count: int, interleave: int) -> int:
    """The number of shares at given sizes, where it is an argument of a kernel. 2 or more."""
    size = extents[shares.place]
    wanted = max(min(count // max(prod(extents[: shares.place]), 1), size), 2)
    if shares.interleaved:
        return max(wanted // max(interleave, 1) * interleave, interleave, 2)
    return max(equal_shares(size, wanted), 2)


def equal_shares(size: int, wanted: int) -> int:
    """The least number of shares of ``size // shares + 1`` rows, no more than ``wanted`` give.

    ``1000, 256 -> 251``, and ``1024, 256 -> 257``, of which the last is empty.
    """
    length = size // (wanted + (size % wanted == 0)) + 1
    return size // length + 1
