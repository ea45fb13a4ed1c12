"""How programs divide rows that no number of parts divides."""

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
    problem: Problem, extents: Sequence[int], count: int, of: int, varies: bool = False
) -> Padded | None:
    """The shares by which all rows are gone through soonest, or None.

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
        then have interleaved rows if there are so many shares.
    varies : bool
        Whether the number of shares is an argument of the kernel. There are more rows than whole
        shares have then, or the last shares have none: the rows of a share are the same expression
        at all sizes.
    """

    def rows(way: Padded) -> tuple[bool, float, int]:
        return not way.interleaved, shared_rows(problem, extents, way, count), way.place

    ways = _ways_of_any(extents, count, of) if varies else _ways(extents, count, of)
    return min(ways, key=rows, default=None)


def shared_rows(problem: Problem, extents: Sequence[int], way: Padded, count: int) -> float:
    """As ``sequential_rows`` of uneven shares."""
    parts, length = programs_of_shares(extents, way), ceil_div(extents[way.place], way.count)
    return sequential_rows(problem, parts, length * prod(extents[way.place + 1 :]), count)


def programs_of_shares(extents: Sequence[int], way: Padded) -> int:
    """The programs of uneven shares that have rows, for each position that the results keep."""
    size = extents[way.place]
    shares = way.count if way.interleaved else ceil_div(size, ceil_div(size, way.count))
    return shares * prod(extents[: way.place])


def _ways(extents: Sequence[int], count: int, of: int) -> Iterator[Padded]:
    before, last = 1, len(extents) - 1
    for place, size in enumerate(extents):
        wanted = min(count // before, size)
        if wanted < 2:
            return
        parts = ceil_div(size, ceil_div(size, wanted))
        if size % parts:
            yield Padded(place, parts, second=tuple(range(place)))
        interleaved_parts = wanted // max(of, 1) * of
        if of > 1 and place == last and interleaved_parts and size % interleaved_parts:
            yield Padded(place, interleaved_parts, interleaved=True, second=tuple(range(place)))
        before *= size


def _ways_of_any(extents: Sequence[int], count: int, of: int) -> Iterator[Padded]:
    """As ``_ways``, of shares whose number and rows are the same expressions at all sizes."""
    for place, size in enumerate(extents):
        wanted = min(count // prod(extents[:place]), size)
        if wanted < 2:
            return
        for interleaved in (False, *[True] * (place == len(extents) - 1 and 1 < of <= wanted)):
            way = Padded(place, 0, interleaved=interleaved, second=tuple(range(place)))
            yield replace(way, count=shares_at(extents, way, count, of))


def shares_at(extents: Sequence[int], way: Padded, count: int, of: int) -> int:
    """The number of shares at some sizes, where it is an argument of a kernel. 2 or more."""
    size = extents[way.place]
    wanted = max(min(count // max(prod(extents[: way.place]), 1), size), 2)
    if way.interleaved:
        return max(wanted // max(of, 1) * of, of, 2)
    return max(equal_shares(size, wanted), 2)


def equal_shares(size: int, wanted: int) -> int:
    """The least number of shares of ``size // shares + 1`` rows, no more than ``wanted`` give.

    ``1000, 256 -> 251``, and ``1024, 256 -> 257``, of which the last is empty.
    """
    length = size // (wanted + (size % wanted == 0)) + 1
    return size // length + 1
