"""Mean and sum of squared deviations of a tile, in registers or lane by lane in a loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from ....dtypes import DataType
from ....ir import Value
from ....ops import registry
from ....ops.forms import Moments, Reduction
from ....symbolic.sizes import is_size
from ...segments.member import Member
from ...tile.tile import Tile
from ..lines import Name
from .by_thread import Part, across_tiles
from .member_tile import Finish, MemberTile
from .thread_lanes import Lanes, lanes_of_row

SUM = cast(Reduction, registry.get("sum").form)
"""The reduction of both moments."""


def moments_tile(tile: MemberTile, form: Moments) -> Finish | None:
    """Mean and sum of squared deviations: in two passes over registers, or lane by lane.

    In a loop each lane keeps count, mean and M2 of what it has seen (Welford, Note on a method
    for calculating corrected sums of squares and products, 1962); the lanes are joined after it.
    """
    _bind_count(tile)
    operand = tile.operand("0.0")
    if tile.in_loop:
        return _moments_loop(tile, operand)
    _moments_row(tile, operand)
    return None


def member_extent(member: Member) -> int:
    """Elements that go into each result."""
    number = 1
    for axis in member.across:
        number *= axis.extent
    return number


def _bind_count(tile: MemberTile) -> None:
    count, number = tile.member.node.outs[2], member_extent(tile.member)
    text = f"{number}.to(tl.int64)" if is_size(number) else f"tl.full([], {number}, tl.int64)"
    tile.bind(count, Name(text, count.dtype))


def _divisor(number: int, dtype: DataType) -> str:
    """How many elements there are, as a float."""
    return f"{number}.to(tl.{dtype.info.triton})" if is_size(number) else f"{max(number, 1)}.0"


# --- in registers --------------------------------------------------------------------------------


def _moments_row(tile: MemberTile, operand: Name) -> None:
    """All of a row in registers: the mean first, then the squares about it."""
    rest = _peeled(tile)
    parts = [(tile, operand), *rest]

    def squares(mean: Name) -> str:
        return _squares(parts, mean)

    _bind_moments(tile, operand, rest, across_tiles(SUM, parts), squares)


def _peeled(tile: MemberTile) -> list[Part]:
    """The other tiles whose elements go into the results, and the operand at each."""
    return [(peeled, peeled.operand("0.0")) for peeled in tile.peeled_tiles()]


def _bind_moments(
    tile: MemberTile,
    operand: Name,
    rest: list[Part],
    total: str,
    squares: Callable[[Name], str],
) -> None:
    """Bind mean and M2.

    Parameters
    ----------
    rest : list of (MemberTile, Name)
        The peeled tiles.
    total : str
        The sum over all tiles.
    squares : function
        Of the mean: the sum of squared distances from it over all tiles.
    """
    mean, m2, _ = tile.member.node.outs
    total = f"({total})" if rest else total
    dims, count = tile.result_dims(operand, [x for _, x in rest]), member_extent(tile.member)
    mean_name = tile.define(mean, f"{total} / {_divisor(count, tile.dtype)}", dims)
    tile.bind(mean, mean_name)
    tile.bind(m2, tile.define(m2, squares(mean_name), dims))


def _squares(parts: list[Part], mean: Name) -> str:
    """The sum of squared distances from the mean."""
    return across_tiles(SUM, [(tile, _square(tile, x, mean)) for tile, x in parts])


def _square(tile: MemberTile, operand: Name, mean: Name) -> Name:
    """The squared distances from the mean in one tile, 0 where it reaches past the row."""
    distance = f"{operand.text} - {mean.text}"
    if tile.tile.masked:
        distance = f"tl.where({tile.tile.name}_mask, {distance}, 0.0)"
    deviation = tile.define(tile.value, distance, operand.dims, "_centered")
    return replace(deviation, text=f"{deviation.text} * {deviation.text}")


# --- in a loop -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _LaneState:
    """Variables of a loop that keeps mean and M2 in lanes.

    Attributes
    ----------
    mean, m2 : str
        Blocks with one element for each lane.
    share : str
        1 divided by the number of steps so far, of those that see an element.
    """

    mean: str
    m2: str
    share: str


def _moments_loop(tile: MemberTile, operand: Name) -> Finish:
    """Mean and M2 in lanes, from step to step; what is returned combines them behind the loop."""
    mean, m2, _ = tile.member.node.outs
    lanes = _lanes(tile)
    width = lanes.width
    lane_mean = tile.accumulator(mean, "0.0", operand.dims, "lane", width)
    lane_m2 = tile.accumulator(m2, "0.0", operand.dims, "lane", width)
    steps, share = _count_steps(tile, mean)
    state = _LaneState(lane_mean, lane_m2, share)
    if width > 1:
        _add_neighbours(tile, operand, state, lanes)
        seen = f"({width}.0 * {steps})"
    else:
        _add_element(tile, operand, state)
        seen = _seen(tile, steps)

    def finish() -> None:
        rest = _peeled(tile)

        def squares(mean: Name) -> str:
            shift = f"({lane_mean} - {mean.text})"
            blocks = f"{lane_m2} + {seen} * {shift} * {shift}"
            squared = [(part, _square(part, x, mean)) for part, x in rest]
            return _over_lanes_and_tiles(tile, operand, blocks, width, squared)

        total = _over_lanes_and_tiles(tile, operand, f"{lane_mean} * {seen}", width, rest)
        _bind_moments(tile, operand, rest, total, squares)

    return finish


def _count_steps(tile: MemberTile, mean: Value) -> tuple[str, str]:
    """The number of steps so far, of those that see an element, and 1 divided by it."""
    writer = tile.writer
    steps, share = (writer.fresh(f"{mean.name}_{n}") for n in ("seen", "share"))
    writer.line_before_loop(f"{steps} = tl.full([], 0.0, tl.{tile.dtype.info.triton})")
    if _may_see_nothing(tile.tile):
        writer.line(f"{steps} += tl.where({tile.tile.name}_mask, 1.0, 0.0)")
        writer.line(f"{share} = 1.0 / tl.maximum({steps}, 1.0)")
    else:
        writer.line(f"{steps} += 1.0")
        writer.line(f"{share} = 1.0 / {steps}")
    return steps, share


def _over_lanes_and_tiles(
    tile: MemberTile, operand: Name, lanes: str, width: int, rest: list[Part]
) -> str:
    """The sum of what the lanes have, of ``width`` elements each, and of the peeled tiles."""
    if width == 1:
        return across_tiles(SUM, [(tile, replace(operand, text=lanes)), *rest])
    total = tile.total(lanes)
    return f"{total} + {across_tiles(SUM, rest)}" if rest else total


def _add_element(tile: MemberTile, operand: Name, lane: _LaneState) -> None:
    """Join one more element with each lane's mean and M2."""
    writer, loc = tile.writer, tile.loc
    delta = writer.fresh(f"{tile.out.name}_delta")
    shift = f"{operand.text} - {lane.mean}"
    if tile.tile.masked:
        shift = f"tl.where({tile.tile.name}_mask, {shift}, 0.0)"
    writer.line(f"{delta} = {shift}", loc)
    writer.line(f"{lane.mean} += {delta} * {lane.share}", loc)
    writer.line(f"{lane.m2} += {delta} * ({operand.text} - {lane.mean})", loc)


def _add_neighbours(tile: MemberTile, operand: Name, lane: _LaneState, lanes: Lanes) -> None:
    """Join ``width`` more elements that a thread has: their mean and M2 with the lane's.

    Their M2 is that of the corrected two-pass algorithm, ``sum(d ** 2) - sum(d) ** 2 / width`` of
    distances ``d`` from a rounded mean. Two sets of ``n`` and ``n'`` elements are joined by
    ``M2 += M2' + (mean' - mean) ** 2 * n * n' / (n + n')``. Both are from Chan, Golub and LeVeque.
    After ``s`` steps the last factor is ``width * (1 - 1 / s)``.
    """
    writer, loc, name, width = tile.writer, tile.loc, tile.out.name, lanes.width
    part, near, rest, delta = (
        writer.fresh(f"{name}_{n}") for n in ("part", "near", "rest", "delta")
    )
    squares = f"lane_sum({near} * {near}, {lanes.arguments}) - {width}.0 * {rest} * {rest}"
    joined = f"{delta} * {delta} * ({width}.0 - {width}.0 * {lane.share})"
    writer.line(f"{part} = lane_sum({operand.text}, {lanes.arguments}) * {1 / width!r}", loc)
    spread = f"spread({part}, {width})"
    each = f"lane_spread({part}, {lanes.arguments})" if lanes.strided else spread
    writer.line(f"{near} = {operand.text} - {each}", loc)
    writer.line(f"{rest} = lane_sum({near}, {lanes.arguments}) * {1 / width!r}", loc)
    writer.line(f"{delta} = {part} - {lane.mean} + {rest}", loc)
    writer.line(f"{lane.m2} += {squares} + {joined}", loc)
    writer.line(f"{lane.mean} += {delta} * {lane.share}", loc)


def _lanes(tile: MemberTile) -> Lanes:
    """The elements of a row that a thread reduces by itself, where whole rows lie along memory."""
    nest, segment = tile.context.nest, tile.context.segment
    if nest.loop != "r" or tile.tile.masked or segment.row_start is None:
        return Lanes(1, strided=False)
    return lanes_of_row(segment, nest)


def _may_see_nothing(tile: Tile) -> bool:
    """Whether steps are one position each, and some have none: programs that finish rows some steps
    behind have none in the first steps."""
    return tile.masked and tile.block is None


def _seen(member: MemberTile, steps: str) -> str:
    """How many elements each lane has met: in the last step of a loop some meet none."""
    tile, number = member.tile, member_extent(member.member)
    if not tile.masked or _may_see_nothing(tile):
        return steps
    if member.context.nest.is_aligned(tile):
        # Some rows have a vector fewer than others, and with it maybe no element of a last step.
        end = f"tl.minimum(stop, {tile.end})"
        met = f"({end} - {tile.name}_base + {tile.width - 1}) // {tile.block}"
        return f"({met}).to(tl.{member.dtype.info.triton})"
    last = f"({number - 1}) % {tile.block}" if is_size(number) else f"{(number - 1) % tile.width}"
    return f"tl.where({tile.name}_base <= {last}, {steps}, {steps} - 1.0)"
