"""Arrival counters: which programs of a kernel compute the inputs of a later segment's tile.

The last program to arrive at a counter computes tiles of the later segment. The programs of the
kernel are numbered along the axes of its grid: the parts, which the later segment reduces, and axes
that it keeps. A sum over 8192 rows of 1024 columns in 32 parts and tiles of 64 columns has programs
``part * 16 + columns``. 32 of them arrive at each of 16 counters, and the last one sums the 64
columns of all parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...heuristics.integers import ceil_div
from ...heuristics.params import PointwiseParams
from ...symbolic.index_expr import Axis, extent
from ...symbolic.queries import is_known_multiple
from ..axis_order import ordered_groups
from ..segments.segment import Segment
from .flat_nest import before_rest, flat_programs


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How the programs of a kernel are assigned to counters.

    Attributes
    ----------
    counters : int
        Number of counters. Each stands for adjacent tiles of the later segment.
    programs : int
        Number of programs that arrive at each counter.
    step : int
        Distance between the numbers of two successive programs of a counter.
    tiles : int
        Number of tiles that the last program at a counter computes.
    width : int
        Positions of these tiles. With a single counter it is all positions, and the last tile may
        reach past them.
    exact : bool
        Whether tiles have to divide ``width``.
    """

    counters: int
    programs: int
    step: int
    tiles: int
    width: int
    exact: bool


def why_no_tiles(segment: Segment) -> str | None:
    """None, or why a segment's programs are not numbered along one axis of tiles."""
    if not segment.params.has_kernel:
        return "it has no kernel"
    if segment.kernel_params.tile_sides > 1:
        return f"programs of a {segment.scheduler} kernel have tiles along two axes"
    if segment.params.row_parts > 1:
        return "its programs share rows"
    return None


def arrivals(first: Segment, last: Segment, block: int = 0) -> Arrivals:
    """The counters at which programs of kernel ``first`` arrive, for tiles of segment ``last``.

    Both segments have the same axes of the values that the second one reads. All programs share one
    counter if the tiles of one segment do not divide those of the other, or if one program of a
    flat kernel has the elements behind the last whole vector.

    Parameters
    ----------
    block : int
        Positions of a tile of the second segment; 0 for those of its params.
    """
    axes, own = _programs_along(first)
    over, tile = _programs_along(last)
    total = extent(over)
    tiles = ceil_div(total, block) if block else _programs(last)
    tile = block or tile
    whole = Arrivals(1, _programs(first), 1, tiles, total, False)
    places = [place for place, axis in enumerate(axes) if axis in last.reduced]
    if not places or _has_rest(first):
        return whole
    parts = axes[places[0] : places[-1] + 1]
    kept = (*axes[: places[0]], *axes[places[-1] + 1 :])
    is_contiguous = len(parts) == len(places)
    if not is_contiguous or over[: len(kept)] != kept or last.co_reduced:
        return whole
    outer, count, inner = extent(axes[: places[0]]), extent(parts), extent(axes[places[-1] + 1 :])
    if is_known_multiple(inner, own):  # a tile is of one part
        step, width, programs = inner // own, own, count
    elif is_known_multiple(own, inner) and is_known_multiple(count * inner, own):
        step, width, programs = 1, inner, count * inner // own
    else:
        return whole
    width *= extent(over[len(kept) :])
    if not is_known_multiple(width, tile):
        return whole
    return Arrivals(outer * step, programs, step, width // tile, width, True)


def _programs(segment: Segment) -> int:
    """The number of programs of a segment in a kernel of its own."""
    params = segment.kernel_params
    if isinstance(params, PointwiseParams):
        return flat_programs(segment, params)
    axes, own = _programs_along(segment)
    return ceil_div(extent(axes), own)


def _has_rest(segment: Segment) -> bool:
    """Whether one program has only the elements behind the last whole vector."""
    params = segment.kernel_params
    return isinstance(params, PointwiseParams) and before_rest(segment, params) is not None


def _programs_along(segment: Segment) -> tuple[tuple[Axis, ...], int]:
    """The axes along which programs are numbered, and the positions of each program along them."""
    axes = ordered_groups(segment, segment.params)
    parts = tuple(share.part for share in segment.shares[:1])
    own = 1 if segment.co_reduced else segment.kernel_params.positions
    return (*axes[0], *parts), own
