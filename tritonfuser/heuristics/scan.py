"""Scans: running sums, products and extrema along rows.

Takes problems with a scan and no reduction over rows. Decides the block of a row that a loop scans
in a step, how many short rows a program has, and in how many parts few long rows are scanned.
"""

from __future__ import annotations

from ..device import CACHE_LINE_BYTES
from .integers import ceil_div, next_power_of_2, warps_for
from .interpreter_tiles import interpreter_tile
from .params import HeuristicParams, ScanParams
from .problem import Problem
from .programs import following_s, share_of_bandwidth
from .requirements import HAS_SCAN, NO_OUTER_REDUCTION, first_reason

MAX_BLOCK_R = 2048
"""Elements of a row in a step."""

TILE_ELEMENTS = 1024
"""Elements of a tile that has several short rows."""


def reject_reason(problem: Problem) -> str | None:
    """None, or why this scheduler does not take the segment."""
    return first_reason(problem, NO_OUTER_REDUCTION, HAS_SCAN)


def propose(problem: Problem) -> HeuristicParams:
    """The params of the kernel."""
    if problem.on_cpu:
        tile = interpreter_tile(problem)
        return ScanParams(block_x=tile.block_x, block_r=tile.block_r)
    block_r = min(next_power_of_2(problem.reduced), MAX_BLOCK_R)
    block_x = max(1, min(next_power_of_2(problem.parallel), TILE_ELEMENTS // block_r))
    return ScanParams(
        block_x=block_x, block_r=block_r, num_warps=warps_for(block_x * block_r, 8, most=8)
    )


PART = 2048
"""Elements of a part of a long row: a tile of one step."""

PART_OF_COLUMN = 256
"""The same where memory runs along the rows' other side, of which a program has some beside."""

MOST_PARTS = 1 << 14
"""Of a row, whose sums one program scans."""


def split(problem: Problem) -> int:
    """In how many parts to scan rows, so that programs fill the device.

    The scanned parts are stored, and read again to add what is before each, so that twice as many
    bytes are moved, by two more kernels: it pays where one step takes longer, for it reaches the
    share of the bandwidth that its programs do.
    """
    if problem.on_cpu:
        return 1
    device = problem.device
    beside = 1 if problem.inner else CACHE_LINE_BYTES // problem.narrowest
    once = problem.moved_bytes / device.bandwidth_bytes_per_s
    whole = once / share_of_bandwidth(problem, ceil_div(problem.parallel, beside))
    scanned, joined = once, following_s(device) + once
    if whole <= scanned + following_s(device) + joined:
        return 1
    parts = ceil_div(problem.reduced, PART if problem.inner else PART_OF_COLUMN)
    return _dividing(problem.reduced, max(min(parts, MOST_PARTS), 1))


def _dividing(row: int, parts: int) -> int:
    """The least number that divides a row, from some on and below twice as many; else those."""
    return next((n for n in range(parts, 2 * parts) if row % n == 0), parts)
