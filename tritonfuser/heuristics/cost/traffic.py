"""What a step of a program loads and stores, and which tensors are linear in its positions."""

from __future__ import annotations

from typing import NamedTuple

from ...device import CACHE_LINE_BYTES, SECTOR_BYTES
from ..problem import Problem
from ..streams import Stream

FETCHED_BYTES = 2 * SECTOR_BYTES
"""Bytes that the L2 cache fetches from memory at a time."""


class Windows(NamedTuple):
    """Reads at indices of other tensors, in windows of these that programs have open: ``gathered``.

    Attributes
    ----------
    opened_bytes : float
        Bytes of the windows of a program.
    window_bytes : float
        Those of many programs that run at a time, by their number: neighbours share windows.
    again_bytes : float
        Bytes that the kernel requests of memory beside the first request of each, and that the L2
        cache may have.
    hit_bytes, hit_lines : float
        The same of a program, in sectors and lines, that the L1 cache may have.
    """

    opened_bytes: float = 0.0
    window_bytes: float = 0.0
    again_bytes: float = 0.0
    hit_bytes: float = 0.0
    hit_lines: float = 0.0


class Traffic(NamedTuple):
    """What a step of a program loads and stores, addresses of a thread: see ``Counts``.

    Attributes
    ----------
    neighbours : float
        Elements of the widest vector among the loads of all positions, along the side that most
        bytes are contiguous along.
    beside : float
        The same along the other side.
    loads : float
        Those of ``accesses`` that load.
    loaded_elements : float
        Of all tensors together.
    index_instructions : float
        Of all warps: see ``digits.py``.
    written_bytes : float
        Bytes of the sectors that stores write, of those that they write in part twice.
    partly_bytes : float
        Bytes of the sectors at the ends of what warps of a flat kernel store at a time: they write
        these in part.
    windows : Windows
        Of tensors that are read at indices of others.
    """

    loaded_bytes: float = 0.0
    fetched_bytes: float = 0.0
    stored_bytes: float = 0.0
    sector_bytes: float = 0.0
    lines: float = 0.0
    accesses: float = 0.0
    extra_bytes: float = 0.0
    addresses: float = 0.0
    neighbours: float = 1.0
    beside: float = 1.0
    loads: float = 0.0
    loaded_elements: float = 0.0
    slice_bytes: float = 0.0
    again_bytes: float = 0.0
    index_instructions: float = 0.0
    written_bytes: float = 0.0
    partly_bytes: float = 0.0
    windows: Windows = Windows()

    def through_shared_memory(self, slice_bytes: float) -> Traffic:
        """The same where loads are pipelined: what they load is written to shared memory and read
        from there, by instructions of its own and through the data path of the L1 cache.

        Loads of whole vectors pass by that cache: all that they load comes from the L2 cache.
        """
        lines = self.lines + 2 * self.loaded_bytes / CACHE_LINE_BYTES
        accesses = self.accesses + self.loads
        return self._replace(lines=lines, accesses=accesses, slice_bytes=slice_bytes)

    def with_a_step_again(self, steps: float) -> Traffic:
        """The same where the last of so many steps loads what it has once more, since each step
        loads ahead."""
        accesses = self.accesses + self.loads / steps
        sectors = self.sector_bytes + self.fetched_bytes / steps
        return self._replace(accesses=accesses, sector_bytes=sectors)


def written_bytes(stored: float, sector_bytes: float) -> float:
    """Bytes of the sectors of a store, of those that it writes in part twice: half of each of them
    is beside what is stored.

    The L2 cache writes a sector in part as slowly as two whole ones. H200, 16 MB written again and
    again: 13.5 to 15 ps a sector by pieces of 2 to 16 bytes, 7.7 by whole sectors.

    Parameters
    ----------
    stored : float
        Bytes that a warp stores at once. The L1 cache joins no stores.
    sector_bytes : float
        Bytes of the sectors that these are in.
    """
    return sector_bytes + min(2 * max(sector_bytes - stored, 0.0), sector_bytes)


def partly_written_bytes(stored: float, sector_bytes: float) -> float:
    """Bytes of the sectors at the ends of a store that it writes in part. 0 for stores with gaps,
    which other stores of the same threads fill."""
    beside = max(sector_bytes - stored, 0.0)
    return 2 * beside if beside < stored else 0.0


def is_linear(problem: Problem, stream: Stream) -> bool:
    """Whether elements are at ``x * x_stride + r * r_stride``: all are apart, and one axis lies
    within a step of the other."""
    rows = problem.parallel if stream.along_x else 1
    row = problem.reduced if stream.along_r else 1
    if stream.total_bytes < rows * row * stream.item_bytes:
        return False
    x_step = stream.x_stride if rows > 1 else 0
    r_step = stream.r_stride if row > 1 else 0
    if x_step is None or r_step is None:
        return False
    if rows == 1 or row == 1:
        return max(x_step, r_step) <= 1
    return (r_step == 1 and x_step >= row) or (x_step == 1 and r_step >= rows)
