"""Gathers: tensors that are read at indices of another tensor, and how often these reads hit.

Some axes enter the address directly, others through an index tensor. In ``x[i, index[i, j]]`` axis
``i`` is direct: a position of ``i`` determines the row of ``x``, and the read may be anywhere in
that row. Such a row is a *window*. Reads of a window hit a cache if an earlier read fetched the
same sector, and if the cache has room for the windows of all programs that run at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, prod

from ....device import CACHE_LINE_BYTES, MAX_PROGRAMS_PER_SM, SECTOR_BYTES
from ...problem import Problem
from ...streams import Stream
from ..counts import Number
from ..numbers import PLAIN, Numbers
from .footprint import Side, Tile, strides_of, tile_over
from .traffic import FETCHED_BYTES, Windows


class Gathered:
    """A tensor that is read at indices of another one.

    Parameters
    ----------
    stream : Stream
        The tensor, with ``held_bytes``.
    count : int
        Number of tensors that are read in the same way.

    Attributes
    ----------
    overfetched_bytes : float
        Bytes that memory delivers beside the elements that are read, for one of these tensors.
    """

    def __init__(self, problem: Problem, stream: Stream, count: int = 1) -> None:
        self._count, held = count, float(stream.held_bytes)
        self._strides, self._share = strides_of(stream), stream.accessed_share
        self._direct = [term for term in stream.stride_terms if not term.is_indexed]
        self._window_bytes = held / max(prod(term.extent for term in self._direct), 1)
        whole = tuple(max(float(size), 1.0) for size in problem.axes)
        requested = self._requested(whole, FETCHED_BYTES)
        distinct = _expected_distinct(requested, held)
        self._repeat_bytes = requested - distinct
        self.overfetched_bytes = max(distinct - stream.fetched_bytes, 0.0)

    def windows(self, tile: Tile, concurrent: tuple[Tile, float], lines: float) -> Windows:
        """The windows that a program reads from.

        Parameters
        ----------
        tile : tuple of float
            Positions of a program along each axis.
        concurrent : (tuple of float, float)
            Positions of all programs that run at a time, and the number of these programs: see
            ``concurrent_tile``.
        lines : float
            Cache lines that the loads of the program touch, summed over loads.
        """
        all_tiles, programs = concurrent
        requested, distinct = self.requests(tile)
        if not requested:
            return Windows()
        n, shared_window = self._count, self._open_bytes(all_tiles) / programs
        return Windows(
            opened_bytes=n * self._open_bytes(tile),
            window_bytes=n * shared_window,
            repeat_request_bytes=n * self._repeat_bytes,
            hit_bytes=requested - distinct,
            hit_lines=hit_lines(lines, distinct, PLAIN),
        )

    def requests(self, tile: Tile) -> tuple[float, float]:
        """(bytes, distinct ones) of the sectors that a program requests."""
        requested = self._requested(tile, SECTOR_BYTES)
        if not requested:
            return 0.0, 0.0
        distinct = _expected_distinct(requested, self._open_bytes(tile))
        return self._count * requested, self._count * distinct

    def lines(self, tile: Tile, requested: float) -> float:
        """Distinct cache lines that one load of a warp touches, if its lanes request ``requested``
        lines at random places of the windows of a tile.

        H200, warps that read at random places of a window in the L1 cache: 2.4 clocks a load, as
        much as in order, for windows of up to 1 KB; 3.5 clocks for 2 KB, 6.0 for 4 KB, 9.5 for 64
        KB. That is ``hit_clocks`` for each of these lines, or a little more.
        """
        window_lines = max(self._open_bytes(tile) / CACHE_LINE_BYTES, 1.0)
        return min(_expected_distinct(requested, window_lines), requested)

    def _open_bytes(self, tile: Tile) -> float:
        """Bytes of the windows that the positions of a tile read from."""
        count = prod(max(min(tile[t.axis] / t.div, t.extent), 1.0) for t in self._direct)
        return count * self._window_bytes

    def _requested(self, tile: Tile, granule: int) -> float:
        """Bytes that the positions of a tile request in pieces of ``granule`` bytes, as if no two
        of them shared a piece."""
        return self._strides.touched(tile, granule)[1] * self._share


def hit_lines(lines: Number, distinct_bytes: Number, m: Numbers) -> Number:
    """Lines of a gather that hit the L1 cache, which fetches single sectors of a line: each of them
    misses once."""
    return m.maximum(lines - distinct_bytes / SECTOR_BYTES, 0.0)


def overfetched_bytes(problem: Problem) -> float:
    """Bytes that memory delivers beside the elements that the gathers of a problem read."""
    if not problem.gathers:
        return 0.0
    gathers = (Gathered(problem, s) for s in problem.streams if s.held_bytes)
    return sum(gathered.overfetched_bytes for gathered in gathers)


def max_resident_programs(problem: Problem, warps: int) -> float:
    """Programs of so many warps that the device may run at a time, by their threads alone."""
    device, threads = problem.device, warps * problem.device.warp_size
    resident = max(min(device.max_threads_per_sm // threads, MAX_PROGRAMS_PER_SM), 1)
    return float(resident * device.sm_count)


def concurrent_tile(
    extents: Sequence[int], order: Sequence[Side], programs: float
) -> tuple[Tile, float]:
    """Positions along each axis of all programs that run at a time, and the number of programs.

    Parameters
    ----------
    extents : sequence of int
        Of all axes.
    order : sequence of Side
        The sides of a program's tile. Program ids run along the first one fastest.
    programs : float
        Programs that the device may run at a time; the grid may have fewer.
    """
    sides, left = [], programs
    for places, block in order:
        along = min(left, max(prod(extents[place] for place in places) / block, 1.0))
        sides.append((places, block * along))
        left /= along
    return tile_over(extents, sides), programs / left


def sum_windows(found: Sequence[Windows]) -> Windows:
    """The windows of several tensors, added up field by field."""
    if len(found) == 1:
        return found[0]
    return Windows(*map(sum, zip(*found, strict=True))) if found else Windows()


def _expected_distinct(requested: float, held: float) -> float:
    """Expected number of distinct bytes (or lines) among ``requested`` ones that are drawn at
    random from ``held`` ones: ``held * (1 - (1 - 1 / held) ** requested)`` for large numbers."""
    return held * (1 - exp(-requested / held))
