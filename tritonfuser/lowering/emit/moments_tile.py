"""Mean and sum of squared deviations of a tile, in registers or lane by lane in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import DataType
from ...ir import Value
from ...ops.table import Moments
from ...symbolic.sizes import is_size
from ..tile.tile import Tile
from .online_softmax import lanes_of_row
from .reduce_tile import Finish, accumulator, give, tails, work_dtype
from .writer import Line, Name

if TYPE_CHECKING:
    from ..segments import Member
    from .kernel_body import KernelBody


def moments_tile(body: KernelBody, member: Member, form: Moments) -> Finish | None:
    """Mean and sum of squared deviations: in two passes over registers, or lane by lane.

    In a loop each lane keeps count, mean and M2 of what it has seen (Welford, Note on a method
    for calculating corrected sums of squares and products, 1962); the lanes are joined after it.
    """
    dtype = work_dtype(next(member.node.operands()))
    number = member_extent(member)
    _bind_count(body, member, member.node.outs[2], number)
    if not body.reduces_pieces(member) and len(body.pieces(member.operand_index)) > 1:
        return _moments_apart(body, member, number)
    operand = body.reduced_operand(member, dtype, "0.0")
    dims = body.result_dims(member, operand)
    if body.walks(member):
        return _moments_loop(body, member, operand, dtype, dims, number)
    _moments_row(body, member, operand, dtype, dims, number)
    return None


def _moments_apart(body: KernelBody, member: Member, number: int) -> Finish | None:
    """Of columns: each piece of the rows has its own."""
    dtype = work_dtype(next(member.node.operands()))
    ends: list[tuple[int, Finish]] = []
    for piece in body.pieces(member.operand_index):
        with body.on(piece):
            _bind_count(body, member, member.node.outs[2], number)
            operand = body.reduced_operand(member, dtype, "0.0")
            dims = body.result_dims(member, operand)
            if body.walks(member):
                end = _moments_loop(body, member, operand, dtype, dims, number)
                ends.append((piece, end))
            else:
                _moments_row(body, member, operand, dtype, dims, number)
    if not ends:
        return None

    def finish() -> None:
        for piece, end in ends:
            with body.on(piece):
                end()

    return finish


def _moments_row(
    body: KernelBody,
    member: Member,
    operand: Name,
    dtype: DataType,
    dims: frozenset[str],
    number: int,
) -> None:
    """All of a row in registers: the mean first, then the squares about it."""
    mean, m2, _ = member.node.outs
    loc, axis = member.node.loc, body.axis_number(member)
    rest = tails(body, member, dtype, "0.0")
    total = " + ".join(body.keep_dim(member, f"tl.sum({x.text}, {axis})") for x in (operand, *rest))
    total = f"({total})" if rest else total
    mean_name = body.define(mean, f"{total} / {_divisor(number, dtype)}", dims, dtype, loc)
    squares = [_squares(body, member, operand, mean_name)]
    for piece, x in zip(body.reduced_pieces(member)[1:], rest, strict=True):
        with body.on(piece):
            squares.append(_squares(body, member, x, mean_name))
    m2_name = body.define(m2, " + ".join(squares), dims, dtype, loc)
    give(body, member, mean, mean_name)
    give(body, member, m2, m2_name)


def _squares(body: KernelBody, member: Member, operand: Name, mean: Name) -> str:
    """The sum of squared distances from the mean, in the piece at hand."""
    tile = body.across(member)
    spread = f"{operand.text} - {mean.text}"
    if tile.masked:
        spread = f"tl.where({tile.name}_mask, {spread}, 0.0)"
    centered = next(member.node.operands())
    loc = member.node.loc
    deviation = body.define(centered, spread, operand.dims, operand.dtype, loc, "_centered")
    squares = f"tl.sum({deviation.text} * {deviation.text}, {body.axis_number(member)})"
    return body.keep_dim(member, squares)


def _divisor(number: int, dtype: DataType) -> str:
    """How many elements there are, as a float."""
    return f"{number}.to(tl.{dtype.info.triton})" if is_size(number) else f"{max(number, 1)}.0"


def member_extent(member: Member) -> int:
    number = 1
    for axis in member.across:
        number *= axis.extent
    return number


def _bind_count(body: KernelBody, member: Member, count: Value, number: int) -> None:
    text = f"{number}.to(tl.int64)" if is_size(number) else f"tl.full([], {number}, tl.int64)"
    name = Name(text, count.dtype)
    body.place_result(member, count, name)


def _moments_loop(
    body: KernelBody,
    member: Member,
    operand: Name,
    dtype: DataType,
    dims: frozenset[str],
    number: int,
) -> Finish:
    mean, m2, _ = member.node.outs
    width = _lane_width(body, member)
    lane_mean = accumulator(body, mean, operand, "0.0", dtype, "lane", width)
    lane_m2 = accumulator(body, m2, operand, "0.0", dtype, "lane", width)
    steps, share = (body.writer.fresh(f"{mean.name}_{n}") for n in ("seen", "share"))
    number_type = f"tl.{dtype.info.triton}"
    body.writer.scopes[-2].lines.append(Line(f"{steps} = tl.full([], 0.0, {number_type})"))
    lines = body.writer.scopes[-1].lines
    lines += [Line(f"{steps} += 1.0"), Line(f"{share} = 1.0 / {steps}")]
    if width > 1:
        lines += _neighbours(body, member, operand, (lane_mean, lane_m2, share), width)
        seen = f"({width}.0 * {steps})"
    else:
        lines += _one_by_one(body, member, operand, (lane_mean, lane_m2, share))
        seen = _seen(body.across(member), steps, number)

    def finish() -> None:
        axis = body.axis_number(member)
        rest = tails(body, member, dtype, "0.0")
        sums = [_summed(body, member, f"{lane_mean} * {seen}")]
        sums += [body.keep_dim(member, f"tl.sum({x.text}, {axis})") for x in rest]
        total = " + ".join(sums)
        total = f"({total})" if rest else total
        text = f"{total} / {_divisor(number, dtype)}"
        made = body.define(mean, text, dims, dtype, member.node.loc)
        shift = f"({lane_mean} - {made.text})"
        squares = [_summed(body, member, f"{lane_m2} + {seen} * {shift} * {shift}")]
        for piece, x in zip(body.reduced_pieces(member)[1:], rest, strict=True):
            with body.on(piece):
                squares.append(_squares(body, member, x, made))
        spread = body.define(m2, " + ".join(squares), dims, dtype, member.node.loc)
        give(body, member, mean, made)
        give(body, member, m2, spread)

    return finish


def _summed(body: KernelBody, member: Member, text: str) -> str:
    """The lanes added up; where a step has one position there is one for each result."""
    if body.across(member).block is None:
        return f"({text})"
    return body.keep_dim(member, f"tl.sum({text}, {body.axis_number(member)})")


def _one_by_one(
    body: KernelBody, member: Member, operand: Name, lanes: tuple[str, str, str]
) -> list[Line]:
    """A number more for each lane's mean and M2."""
    mean, m2, share = lanes
    tile, loc = body.across(member), member.node.loc
    delta = body.writer.fresh(f"{member.node.out.name}_delta")
    shift = f"{operand.text} - {mean}"
    if tile.masked:
        shift = f"tl.where({tile.name}_mask, {shift}, 0.0)"
    return [
        Line(f"{delta} = {shift}", loc),
        Line(f"{mean} += {delta} * {share}", loc),
        Line(f"{m2} += {delta} * ({operand.text} - {mean})", loc),
    ]


def _neighbours(
    body: KernelBody, member: Member, operand: Name, lanes: tuple[str, str, str], width: int
) -> list[Line]:
    """``width`` numbers more, which a thread has: their own mean and M2 joined with the lane's.

    Theirs by the corrected two-pass algorithm, ``sum(d ** 2) - sum(d) ** 2 / width`` of distances
    ``d`` from a mean that is rounded; and ``M2 += M2' + (mean' - mean) ** 2 * n * n' / (n + n')``,
    both as Chan, Golub and LeVeque have it. Of ``s`` steps the last factor is
    ``width * (1 - 1 / s)``.
    """
    mean, m2, share = lanes
    loc, name = member.node.loc, member.node.out.name
    part, near, rest, delta = (
        body.writer.fresh(f"{name}_{n}") for n in ("part", "near", "rest", "delta")
    )
    squares = f"lane_sum({near} * {near}, {width}, False) - {width}.0 * {rest} * {rest}"
    joined = f"{delta} * {delta} * ({width}.0 - {width}.0 * {share})"
    return [
        Line(f"{part} = lane_sum({operand.text}, {width}, False) * {1 / width!r}", loc),
        Line(f"{near} = {operand.text} - spread({part}, {width})", loc),
        Line(f"{rest} = lane_sum({near}, {width}, False) * {1 / width!r}", loc),
        Line(f"{delta} = {part} - {mean} + {rest}", loc),
        Line(f"{m2} += {squares} + {joined}", loc),
        Line(f"{mean} += {delta} * {share}", loc),
    ]


def _lane_width(body: KernelBody, member: Member) -> int:
    """The neighbours along a row that a thread has at once, where whole rows lie along memory."""
    tile = body.across(member)
    if body.nest.loop != "r" or tile.masked or body.segment.row_start is None:
        return 1
    return lanes_of_row(body).width


def _seen(tile: Tile, steps: str, number: int) -> str:
    """How many elements each lane has met: in the last step of a loop some meet none."""
    if not tile.masked:
        return steps
    last = f"({number - 1}) % {tile.block}" if is_size(number) else f"{(number - 1) % tile.width}"
    return f"tl.where({tile.name}_base <= {last}, {steps}, {steps} - 1.0)"
