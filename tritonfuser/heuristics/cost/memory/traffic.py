"""``Traffic``: what one step of a program loads and stores; and which tensors have linear offsets.

A *step* is one iteration of a program's loop, or the whole program where it has no loop. Bytes are
counted at three levels: those that threads ask for, those of whole sectors (32 bytes) that cross
from the L2 cache to a multiprocessor, and those that the L2 cache fetches from memory.
"""

from __future__ import annotations

from typing import NamedTuple

from ....device import CACHE_LINE_BYTES, SECTOR_BYTES
from ...problem import Problem
from ...streams import Stream

FETCHED_BYTES = 2 * SECTOR_BYTES
"""Bytes that the L2 cache fetches from memory at a time."""


class Windows(NamedTuple):
    """Gathers, and other reads that hit caches: ``gathered.py`` says what a window is.

    Attributes
    ----------
    opened_bytes : float
        Bytes of the windows that one program reads from in a step.
    window_bytes : float
        Bytes of the windows that all programs which run at a time read from, divided by the number
        of these programs. Less than ``opened_bytes`` where neighbouring programs share windows.
    repeat_request_bytes : float
        Bytes that all programs request beside the first request of each byte: L2 hits, if the L2
        cache has room for the windows.
    hit_bytes, hit_lines : float
        Bytes of sectors, and cache lines, that one program requests in a step beside the first
        request of each: L1 hits, if the L1 cache has room for the windows.
    """

    opened_bytes: float = 0.0
    window_bytes: float = 0.0
    repeat_request_bytes: float = 0.0
    hit_bytes: float = 0.0
    hit_lines: float = 0.0


class StepBytes(NamedTuple):
    """The bytes of one step of a program: fields of ``Counts``, in the same order."""

    loaded_bytes: float = 0.0
    fetched_bytes: float = 0.0
    reloaded_bytes: float = 0.0
    stored_bytes: float = 0.0
    sector_bytes: float = 0.0
    partial_sector_bytes: float = 0.0
    extra_bytes: float = 0.0


class Traffic(NamedTuple):
    """Loads and stores of one step of a program. Fields that are not listed are those of
    ``Counts``.

    Attributes
    ----------
    moved : StepBytes
        Bytes, whichever thread loads or stores them.
    windows : Windows
        Reads that may hit caches.
    addresses : float
        Of a thread: see ``Counts``.
    inner_vector, cross_vector : float
        Elements of the widest vectorized load among the tensors over all positions: along the side
        of the tile that most bytes are contiguous along, and along the other side.
    loads : float
        Load instructions of all warps: ``accesses`` without the stores.
    loaded_elements : float
        Elements of all tensors that are loaded.
    index_instructions : float
        Instructions of all warps for quotients and remainders of positions: see ``digits.py``.
    written_bytes : float
        Bytes of the sectors that stores write. A sector that a store writes in part counts twice.
    """

    moved: StepBytes
    windows: Windows
    lines: float = 0.0
    accesses: float = 0.0
    addresses: float = 0.0
    inner_vector: float = 1.0
    cross_vector: float = 1.0
    loads: float = 0.0
    loaded_elements: float = 0.0
    slice_bytes: float = 0.0
    index_instructions: float = 0.0
    written_bytes: float = 0.0

    def pipelined(self, slice_bytes: float) -> Traffic:
        """The traffic if loads are pipelined through shared memory (``num_stages`` above 1).

        What is loaded is written to shared memory and read from there: one more instruction for
        each load, and twice its bytes through the data path of the L1 cache. Asynchronous copies of
        whole vectors bypass that cache, so all their bytes come from the L2 cache.
        """
        lines = self.lines + 2 * self.moved.loaded_bytes / CACHE_LINE_BYTES
        accesses = self.accesses + self.loads
        return self._replace(lines=lines, accesses=accesses, slice_bytes=slice_bytes)

    def prefetched(self, steps: float) -> Traffic:
        """The traffic if each step prefetches the loads of the next one into registers: the last
        of so many steps has no next one, and loads once more what it has."""
        accesses = self.accesses + self.loads / steps
        sectors = self.moved.sector_bytes + self.moved.fetched_bytes / steps
        return self._replace(accesses=accesses, moved=self.moved._replace(sector_bytes=sectors))


def written_bytes(stored: float, sector_bytes: float) -> float:
    """Bytes of the sectors that a store writes. A sector that it writes in part counts twice; such
    sectors are taken to be half full.

    The L2 cache writes a sector in part as slowly as two whole ones. H200, 16 MB written again and
    again: 13.5 to 15 ps a sector by pieces of 2 to 16 bytes, 7.7 by whole sectors.

    Parameters
    ----------
    stored : float
        Bytes that a warp stores at once. The L1 cache does not merge the stores of warps.
    sector_bytes : float
        Bytes of the sectors that contain them.
    """
    return sector_bytes + min(2 * max(sector_bytes - stored, 0.0), sector_bytes)


def partial_sector_bytes_of(stored: float, sector_bytes: float) -> float:
    """Bytes of the sectors at both ends of a store, which it writes in part. 0 for strided stores:
    other stores of the same threads fill their gaps."""
    not_stored = max(sector_bytes - stored, 0.0)
    return 2 * not_stored if not_stored < stored else 0.0


def is_linear(problem: Problem, stream: Stream) -> bool:
    """Whether the offset of a tensor is ``x * x_stride + r * r_stride``, with an element of its own
    for each position, and one axis contiguous within a step of the other."""
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
