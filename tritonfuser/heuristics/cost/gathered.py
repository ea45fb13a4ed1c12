"""Tensors that are read at indices of another tensor: what the caches may keep of them.

Along the axes that the address runs along by itself, a position's place in the tensor is known.
What it reads there may lie anywhere in a *window*: a row of ``x`` for ``x[i, index[i, j]]``. Reads
of a window find what others have fetched of it, as long as a cache has room for the windows of all
programs that run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, prod

from ...device import CACHE_LINE_BYTES, MAX_PROGRAMS_PER_SM, SECTOR_BYTES
from ..problem import Problem
from ..streams import Stream
from .footprint import Side, TensorStrides, Tile, tile_over
from .traffic import FETCHED_BYTES, Windows


class Gathered:
    """A tensor that is read at indices of another one.

    Parameters
    ----------
    stream : Stream
        The tensor, with ``held_bytes``.
    count : int
        Tensors that are read alike.

    Attributes
    ----------
    around : float
        Bytes that memory moves around the elements of one of them that are read.
    """

    def __init__(self, problem: Problem, stream: Stream, count: int = 1) -> None:
        self._count, held = count, float(stream.held_bytes)
        self._strides, self._share = TensorStrides(stream), stream.accessed_share
        self._direct = [term for term in stream.stride_terms if not term.is_indexed]
        self._window = held / max(prod(term.extent for term in self._direct), 1)
        whole = tuple(max(float(size), 1.0) for size in problem.axes)
        requested = self._touched(whole, FETCHED_BYTES)
        distinct = _distinct(requested, held)
        self._again = requested - distinct
        self.around = max(distinct - stream.fetched_bytes, 0.0)

    def windows(self, tile: Tile, at_once: tuple[Tile, float], lines: float) -> Windows:
        """What a program reads of the tensor.

        Parameters
        ----------
        tile : tuple of float
            Positions along each axis of a program.
        at_once : (tuple of float, float)
            The same of programs that run at a time, and their number.
        lines : float
            Lines that the loads of the program touch, of those of each load each once.
        """
        many, programs = at_once
        opened, requested = self._opened(tile), self._touched(tile, SECTOR_BYTES)
        if not requested:
            return Windows()
        n, distinct = self._count, _distinct(requested, opened)
        # Sectors of a line are loaded one by one: each is missed once.
        hit_lines = max(lines - n * distinct / SECTOR_BYTES, 0.0)
        window, found = self._opened(many) / programs, requested - distinct
        return Windows(n * opened, n * window, n * self._again, n * found, hit_lines)

    def lines(self, tile: Tile, requested: float) -> float:
        """Lines that a load touches which asks for so many at the positions of a tile: each line of
        their windows once.

        H200, warps that read at random places of a window in the L1 cache: 2.4 clocks a load, as
        much as in order, for windows of up to 1 KB; 3.5 clocks for 2 KB, 6.0 for 4 KB, 9.5 for 64
        KB. That is ``hit_clocks`` for each of these lines, or a little more.
        """
        return min(_distinct(requested, max(self._opened(tile) / CACHE_LINE_BYTES, 1.0)), requested)

    def _opened(self, tile: Tile) -> float:
        """Bytes of the windows that positions read from."""
        count = prod(max(min(tile[t.axis] / t.div, t.extent), 1.0) for t in self._direct)
        return count * self._window

    def _touched(self, tile: Tile, granule: int) -> float:
        return self._strides.touched(tile, granule)[1] * self._share


def around_bytes(problem: Problem) -> float:
    """Bytes that memory moves around elements that are read at indices of other tensors."""
    return sum(Gathered(problem, s).around for s in problem.streams if s.held_bytes)


def most_running(problem: Problem, warps: int) -> float:
    """Programs of so many warps that the device may run at a time."""
    device, threads = problem.device, warps * problem.device.warp_size
    resident = max(min(device.max_threads_per_sm // threads, MAX_PROGRAMS_PER_SM), 1)
    return float(resident * device.sm_count)


def running(extents: Sequence[int], order: Sequence[Side], programs: float) -> tuple[Tile, float]:
    """Positions along each axis of programs that run at a time, and their number.

    Parameters
    ----------
    extents : sequence of int
        Of all axes.
    order : sequence of Side
        The sides of a program's tile: programs go along the first one first.
    programs : float
        As many as may run; there may be fewer.
    """
    sides, left = [], programs
    for places, block in order:
        along = min(left, max(prod(extents[place] for place in places) / block, 1.0))
        sides.append((places, block * along))
        left /= along
    return tile_over(extents, sides), programs / left


def together(found: Sequence[Windows]) -> Windows:
    """Of several tensors."""
    if len(found) == 1:
        return found[0]
    return Windows(*map(sum, zip(*found, strict=True))) if found else Windows()


def _distinct(requested: float, held: float) -> float:
    """What requests at random places reach of what there is, each once."""
    return held * (1 - exp(-requested / held))
