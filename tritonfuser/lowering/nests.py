"""Segment in, kernel axes out: which tile axes its kernel has, and the grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from ..affine import Affine, Axis, digit, substitute
from ..heuristics.params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    InnerPersistentParams,
    OuterPersistentParams,
    PointwiseParams,
    ReductionParams,
    ScanParams,
    TransposeParams,
)
from ..heuristics.problem import ceil_div
from ..shapes import Guard, Index
from .emit_index import Tile
from .segments import Segment


@dataclass(frozen=True)
class Nest:
    """The kernel axes of a segment.

    Attributes
    ----------
    tiles : tuple of Tile
        The axes in order; those with a block make up the dims of a tile.
    loop : str or None
        The axis walked in a loop.
    grid : tuple of (Tile, int)
        The axes that programs are spread over, with the number of programs along each.
    axes : dict
        Where the segment's axes are on the kernel's.
    constants : tuple of (str, int)
        The block sizes.
    """

    tiles: tuple[Tile, ...]
    loop: str | None
    grid: tuple[tuple[Tile, int], ...]
    axes: dict[Axis, Affine]
    constants: tuple[tuple[str, int], ...]

    def place(self, index: Index) -> Index:
        return tuple(substitute(item, self.axes) for item in index)

    def guards(self, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        return tuple(Guard(substitute(g.expr, self.axes), g.low, g.high) for g in guards)


def spread(axes: tuple[Axis, ...], kernel_axis: Axis) -> dict[Axis, Affine]:
    """Loop axes as digits of one kernel axis, outermost first."""
    found: dict[Axis, Affine] = {}
    stride = 1
    for axis in reversed(axes):
        found[axis] = digit(kernel_axis, stride, axis.extent)
        stride *= max(axis.extent, 1)
    return found


def _tile(name: str, axes: tuple[Axis, ...], block: int | None) -> tuple[Tile, dict[Axis, Affine]]:
    axis = Axis(name, prod(a.extent for a in axes))
    if block is None:
        return Tile(axis, None, False), spread(axes, axis)
    masked = axis.extent % block != 0 or axis.extent == 0
    return Tile(axis, f"{name.upper()}BLOCK", masked, block), spread(axes, axis)


def _flat(segment: Segment, params: PointwiseParams) -> Nest:
    x, axes = _tile("x", segment.parallel, params.block_x)
    programs = ceil_div(x.axis.extent, params.block_x)
    return Nest((x,), None, ((x, programs),), axes, (("XBLOCK", params.block_x),))


MAX_PROGRAMS_Y = 65535
"""CUDA's limit on the second and third axis of a grid; the first takes 2**31 - 1."""


def _transpose(segment: Segment, params: TransposeParams) -> Nest:
    others = tuple(a for a in segment.parallel if a not in segment.crossing)
    y, y_axes = _tile("y", segment.crossing, params.block_y)
    x, x_axes = _tile("x", others, params.block_x)
    grid = [
        (x, ceil_div(x.axis.extent, params.block_x)),
        (y, ceil_div(y.axis.extent, params.block_y)),
    ]
    if grid[1][1] > MAX_PROGRAMS_Y:
        grid.reverse()
    constants = (("XBLOCK", params.block_x), ("YBLOCK", params.block_y))
    return Nest((y, x), None, tuple(grid), {**y_axes, **x_axes}, constants)


_Rows = ReductionParams | InnerPersistentParams | OuterPersistentParams | ScanParams


def _rows(segment: Segment, params: _Rows) -> Nest:
    x, x_axes = _tile("x", segment.parallel, params.block_x)
    r, r_axes = _tile("r", segment.reduced, params.block_r)
    whole = params.block_r >= r.axis.extent
    grid = ((x, ceil_div(x.axis.extent, params.block_x)),)
    constants = (("XBLOCK", params.block_x), ("RBLOCK", params.block_r))
    return Nest((x, r), None if whole else "r", grid, {**x_axes, **r_axes}, constants)


def _row_walk(segment: Segment, params: InnerOuterPersistentParams) -> Nest:
    walked = tuple(a for a in segment.parallel if a not in segment.chunked)
    s, s_axes = _tile("s", segment.chunked, None)
    m, m_axes = _tile("m", walked, params.block_m)
    r, r_axes = _tile("r", segment.reduced, params.block_r)
    constants = (("MBLOCK", params.block_m), ("RBLOCK", params.block_r))
    axes = {**s_axes, **m_axes, **r_axes}
    return Nest((s, m, r), "m", ((s, s.axis.extent),), axes, constants)


_NESTS: dict[type[HeuristicParams], Callable[..., Nest]] = {
    PointwiseParams: _flat,
    TransposeParams: _transpose,
    ReductionParams: _rows,
    InnerPersistentParams: _rows,
    OuterPersistentParams: _rows,
    ScanParams: _rows,
    InnerOuterPersistentParams: _row_walk,
}


def nest_of(segment: Segment) -> Nest:
    """The kernel axes of a segment under its params."""
    return _NESTS[type(segment.params)](segment, segment.params)
