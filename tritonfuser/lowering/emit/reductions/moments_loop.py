"""Mean and sum of squared deviations in a loop along a row: in lanes, combined behind the loop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....ir import Value
from ....symbolic.sizes import is_size
from ...tile.tile import Tile
from ..names import Name
from .by_thread import Part, across_tiles
from .member_tile import AfterLoop, MemberTile
from .moments_results import SUM, bind_moments, member_extent, peeled_parts, square
from .thread_lanes import Lanes, lanes_of_row


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


def moments_loop(tile: MemberTile, operand: Name) -> AfterLoop:
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
        rest = peeled_parts(tile)

        def squares(mean: Name) -> str:
            shift = f"({lane_mean} - {mean.text})"
            blocks = f"{lane_m2} + {seen} * {shift} * {shift}"
            squared = [(part, square(part, x, mean)) for part, x in rest]
            return _over_lanes_and_tiles(tile, operand, blocks, width, squared)

        total = _over_lanes_and_tiles(tile, operand, f"{lane_mean} * {seen}", width, rest)
        bind_moments(tile, operand, rest, total, squares)

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
