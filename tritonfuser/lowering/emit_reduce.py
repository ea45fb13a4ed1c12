"""Reductions, moments and scans of a tile, whole in registers or chunk by chunk in a loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType, compute_dtype
from ..ir import Value
from ..ops.table import Moments, Reduction, Scan
from ..sizes import is_size
from .constants import neutral
from .emit_index import Tile
from .emit_values import literal
from .writer import Line, Name

if TYPE_CHECKING:
    from .emit_kernel import KernelBody
    from .segments import Member

Finish = Callable[[], None]


def identity_text(kind: str, value: Value) -> str:
    """The neutral element of a reduction of a value, as Triton text."""
    return literal(neutral(kind, compute_dtype(value.dtype)), work_dtype(value))


def work_dtype(value: Value) -> DataType:
    """What a reduction of a value is computed in: Float for half, Int32 for Bool."""
    return DataType.Int32 if value.dtype is DataType.Bool else compute_dtype(value.dtype)


def _finish_value(body: KernelBody, member: Member, out: Value, name: Name) -> None:
    name = body.cast(name, out.dtype, out, member.node.loc)
    body.place_result(member, out, name)


def reduce_tile(body: KernelBody, member: Member, form: Reduction) -> Finish | None:
    """``tv5 = tl.sum(tv4, 1)[:, None]``, or an accumulator tile and its sum after the loop."""
    if body.reduces_pieces(member):
        return _reduce_row(body, member, form)
    ends: list[tuple[int, Finish | None]] = []
    for piece in body.pieces(member.operand_index):
        with body.on(piece):
            ends.append((piece, _reduce_row(body, member, form)))
    if not body.walks(member):
        return None

    def finish() -> None:
        for piece, end in ends:
            with body.on(piece):
                assert end is not None
                end()

    return finish


def _reduce_row(body: KernelBody, member: Member, form: Reduction) -> Finish | None:
    """The result of one piece, or of all those that the member reduces over."""
    out = member.node.out
    value = next(member.node.operands())
    dtype = work_dtype(value)
    if not body.walks(member):
        _finish_value(body, member, out, row_total(body, member, form))
        return None
    identity = identity_text(form.identity, value)
    operand = body.reduced_operand(member, dtype, identity)
    total = _accumulator(body, out, operand, identity, dtype)
    combined = form.combine.format(a=total, b=operand.text)
    body.writer.scopes[-1].lines.append(Line(f"{total} = {combined}", member.node.loc))

    def finish() -> None:
        _finish_value(body, member, out, _joined(body, member, form, replace(operand, text=total)))

    return finish


def row_total(body: KernelBody, member: Member, form: Reduction, mark: str = "") -> Name:
    """What a member reduces of the elements that the program has at once, in the work type."""
    value = next(member.node.operands())
    identity = identity_text(form.identity, value)
    operand = body.reduced_operand(member, work_dtype(value), identity)
    return _joined(body, member, form, operand, mark)


def _joined(
    body: KernelBody, member: Member, form: Reduction, operand: Name, mark: str = ""
) -> Name:
    """A tile reduced, with what is left of its rows."""
    value = next(member.node.operands())
    dtype, identity = operand.dtype, identity_text(form.identity, value)

    def across(text: str) -> str:
        if body.across(member).block is None:  # one position at a time: there is no tile of them
            return text
        return body.keep_dim(member, form.across.format(x=text, axis=body.axis_number(member)))

    text = across(operand.text)
    for tail in tails(body, member, dtype, identity):
        text = form.combine.format(a=text, b=across(tail.text))
    dims = body.result_dims(member, operand)
    return body.define(member.node.out, text, dims, dtype, member.node.loc, mark)


def finish_value(body: KernelBody, member: Member, name: Name) -> None:
    """Say that a reduction's only result is there, in the work type."""
    _finish_value(body, member, member.node.out, name)


def tails(body: KernelBody, member: Member, dtype: DataType, identity: str) -> list[Name]:
    """The operand over the tiles for what whole blocks leave of the rows it reduces."""
    found: list[Name] = []
    for piece in body.reduced_pieces(member)[1:]:
        with body.on(piece):
            found.append(body.reduced_operand(member, dtype, identity))
    return found


def _accumulator(
    body: KernelBody, out: Value, operand: Name, identity: str, dtype: DataType, mark: str = ""
) -> str:
    """A tile of identities before the loop; returns its name."""
    name = body.writer.fresh(f"{out.name}_{mark or 'acc'}")
    shape = body.shape(operand.dims)
    text = f"tl.full({shape}, {identity}, tl.{dtype.info.triton})"
    body.writer.scopes[-2].lines.append(Line(f"{name} = {text}"))
    return name


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
    _finish_value(body, member, mean, mean_name)
    _finish_value(body, member, m2, m2_name)


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
    tile = body.across(member)
    lane_mean = _accumulator(body, mean, operand, "0.0", dtype, "lane")
    lane_m2 = _accumulator(body, m2, operand, "0.0", dtype, "lane")
    steps, share, delta = (
        body.writer.fresh(f"{mean.name}_{n}") for n in ("seen", "share", "delta")
    )
    number_type = f"tl.{dtype.info.triton}"
    body.writer.scopes[-2].lines.append(Line(f"{steps} = tl.full([], 0.0, {number_type})"))
    shift = f"{operand.text} - {lane_mean}"
    if tile.masked:
        shift = f"tl.where({tile.name}_mask, {shift}, 0.0)"
    loc = member.node.loc
    body.writer.scopes[-1].lines += [
        Line(f"{steps} += 1.0"),
        Line(f"{share} = 1.0 / {steps}"),
        Line(f"{delta} = {shift}", loc),
        Line(f"{lane_mean} += {delta} * {share}", loc),
        Line(f"{lane_m2} += {delta} * ({operand.text} - {lane_mean})", loc),
    ]
    seen = _seen(tile, steps, number)

    def finish() -> None:
        axis = body.axis_number(member)
        rest = tails(body, member, dtype, "0.0")
        sums = [f"tl.sum({lane_mean} * {seen}, {axis})"]
        sums += [f"tl.sum({x.text}, {axis})" for x in rest]
        total = " + ".join(body.keep_dim(member, text) for text in sums)
        total = f"({total})" if rest else total
        text = f"{total} / {_divisor(number, dtype)}"
        made = body.define(mean, text, dims, dtype, member.node.loc)
        shift = f"({lane_mean} - {made.text})"
        squares = [body.keep_dim(member, f"tl.sum({lane_m2} + {seen} * {shift} * {shift}, {axis})")]
        for piece, x in zip(body.reduced_pieces(member)[1:], rest, strict=True):
            with body.on(piece):
                squares.append(_squares(body, member, x, made))
        spread = body.define(m2, " + ".join(squares), dims, dtype, member.node.loc)
        _finish_value(body, member, mean, made)
        _finish_value(body, member, m2, spread)

    return finish


def _seen(tile: Tile, steps: str, number: int) -> str:
    """How many elements each lane has met: in the last step of a loop some meet none."""
    if not tile.masked:
        return steps
    last = f"({number - 1}) % {tile.block}" if is_size(number) else f"{(number - 1) % tile.width}"
    return f"tl.where({tile.name}_base <= {last}, {steps}, {steps} - 1.0)"


def scan_tile(body: KernelBody, member: Member, form: Scan) -> Finish | None:
    """A scan of the tile; in a loop, with what came before as a carry."""
    out = member.node.out
    operand_value = next(member.node.operands())
    dtype = work_dtype(operand_value)
    identity = identity_text(form.identity, operand_value)
    operand = _over_tile(body, body.reduced_operand(member, dtype, identity), operand_value)
    axis = body.axis_number(member)
    text = form.along.format(x=operand.text, axis=axis)
    if body.across(member).axis.extent == 1:
        text = operand.text
    name = body.define(out, text, operand.dims, dtype, member.node.loc)
    if body.walks(member):
        dims = body.result_dims(member, operand)
        carry = body.writer.fresh(f"{out.name}_carry")
        start = f"tl.full({body.shape(dims)}, {identity}, tl.{dtype.info.triton})"
        body.writer.scopes[-2].lines.append(Line(f"{carry} = {start}"))
        joined = form.combine.format(a=carry, b=name.text)
        name = body.define(out, joined, operand.dims, dtype, member.node.loc)
        total = body.keep_dim(member, form.across.format(x=operand.text, axis=axis))
        step = form.combine.format(a=carry, b=total)
        body.writer.scopes[-1].tail.append(Line(f"{carry} = {step}"))
    name = body.cast(name, out.dtype, out, member.node.loc)
    body.place_result(member, out, name)
    return None


def _over_tile(body: KernelBody, operand: Name, value: Value) -> Name:
    """The operand over all of the tile: Triton cannot compile scans of less in a kernel of more."""
    whole = frozenset(t.name for t in body.nest.tiles if t.block is not None)
    if whole <= operand.dims:
        return operand
    dims = operand.dims | whole
    text = f"tl.broadcast_to({operand.text}, {body.shape(dims)})"
    return body.define(value, text, dims, operand.dtype, None)


REDUCERS: dict[type[Any], Callable[[Any, Any, Any], Finish | None]] = {
    Reduction: reduce_tile,
    Moments: moments_tile,
    Scan: scan_tile,
}
