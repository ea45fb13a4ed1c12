"""The order of a kernel's row axes, by its params or by memory order, which grid and tiles follow.

Params name axes by numbers (``Segment.numbered``). What they leave open is as the rules have it, so
that params which say nothing, and those that were made where a dim had one position, have a meaning
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..device import MAX_PROGRAMS_Y
from ..heuristics.integers import ceil_div
from ..heuristics.params import HeuristicParams, TransposeParams
from ..symbolic.index_expr import Axis, extent
from ..symbolic.queries import assume_less
from .segments.segment import Segment

Axes = tuple[Axis, ...]
_P = TypeVar("_P", bound=HeuristicParams)


def ordered(segment: Segment, params: HeuristicParams) -> Axes:
    """The axes of rows, outermost first; of a transpose those along x."""
    return tuple(axis for group in ordered_groups(segment, params) for axis in group)


def ordered_groups(segment: Segment, params: HeuristicParams) -> tuple[Axes, ...]:
    """The axes of rows in groups: those of the grid, then those whole in each program, if any."""
    named = _named(segment, getattr(params, "axes", ()))
    return tuple(
        (*(a for a in group if a not in named), *(a for a in named if a in group))
        for group in _groups(segment, params)
    )


def across(segment: Segment, params: TransposeParams) -> Axes:
    """The axes along y of a transpose, outermost first."""
    given = _named(segment, params.across)
    named = _named(segment, params.axes)
    return given or tuple(axis for axis in segment.crossing if axis not in named)


def runs_along_y(segment: Segment, params: TransposeParams) -> bool:
    """Whether the programs of a transpose run along y first: where the grid has room for that."""
    tiles = _tiles(segment, params)
    if params.first == "y":
        return not assume_less(MAX_PROGRAMS_Y, tiles["x"])
    return not params.first and assume_less(MAX_PROGRAMS_Y, tiles["y"])


def _tiles(segment: Segment, params: TransposeParams) -> dict[str, int]:
    """The tiles along each side."""
    return {
        "x": ceil_div(extent(ordered(segment, params)), params.block_x),
        "y": ceil_div(extent(across(segment, params)), params.block_y),
    }


def explicit(segment: Segment, params: _P) -> _P:
    """Params with the order of axes filled in where they left it to the rules."""
    if not hasattr(params, "axes"):
        return params
    number = {axis: place for place, axis in enumerate(segment.numbered) if axis is not None}
    found: dict[str, Any] = {"axes": tuple(number[axis] for axis in ordered(segment, params))}
    if isinstance(params, TransposeParams):
        found["across"] = tuple(number[axis] for axis in across(segment, params))
        found["first"] = "y" if runs_along_y(segment, params) else "x"
    return replace(params, **found)


def _named(segment: Segment, numbers: Sequence[int]) -> Axes:
    """The axes of numbers; dims of one position have none."""
    known = (segment.numbered[n] for n in numbers if n < len(segment.numbered))
    return tuple(axis for axis in known if axis is not None)


def _groups(segment: Segment, params: HeuristicParams) -> tuple[Axes, ...]:
    """The groups of axes whose order is free, each in the order of the rules."""
    if isinstance(params, TransposeParams):
        along_y = across(segment, params)
        return (tuple(axis for axis in segment.parallel if axis not in along_y),)
    if params.loops_over_rows:
        return segment.batch_axes, segment.looped_axes
    if segment.co_reduced:
        apart = tuple(axis for axis in segment.parallel if axis not in segment.co_reduced)
        return apart, segment.co_reduced
    return (segment.parallel,)


# --- legality ------------------------------------------------------------------------------------


def why_not_order(segment: Segment, params: HeuristicParams) -> str | None:
    """None, or why axes, or programs, cannot be in the order that params give."""
    reason = _why_not_axes(segment, params)
    if reason is None and isinstance(params, TransposeParams):
        reason = _why_not_first(segment, params)
    return reason


def _why_not_axes(segment: Segment, params: HeuristicParams) -> str | None:
    """None, or why the axes of a segment cannot be in the order that params give."""
    for field in ("axes", "across"):
        for number in getattr(params, field, ()):
            if number >= len(segment.numbered):
                return (
                    f"{field} has axis {number}, and there are {len(segment.numbered)}, "
                    "numbered from 0"
                )
    given = _named(segment, getattr(params, "axes", ()))
    if params.loops_over_rows and segment.shares:
        looped = [axis for axis in given if axis in segment.looped_axes]
        if looped != [axis for axis in segment.looped_axes if axis in given]:
            return "rows that are shared out over programs have one order, axes has another"
    found = tuple(axis for axis in ordered(segment, params) if axis in given)
    if found == given:
        return None
    if params.loops_over_rows:
        return "in axes, what a program loops over is before what programs lie along"
    return "in axes, rows that are reduced together are before others"


def _why_not_first(segment: Segment, params: TransposeParams) -> str | None:
    """None, or why the programs of a transpose cannot run along the side that params give."""
    if not params.first:
        return None
    others = _tiles(segment, params)["y" if params.first == "x" else "x"]
    if not assume_less(MAX_PROGRAMS_Y, others):
        return None
    return (
        f"first={params.first!r} leaves {others} tiles along the other side, "
        f"a grid has {MAX_PROGRAMS_Y} there"
    )
