"""Reductions, moments and scans of a tile, whole in registers or chunk by chunk in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType, compute_dtype
from ..ir import Value
from ..ops.table import Moments, Reduction, Scan
from .constants import neutral
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
    out = member.node.out
    value = next(member.node.operands())
    dtype = work_dtype(value)
    identity = identity_text(form.identity, value)
    operand = body.reduced_operand(member, dtype, identity)
    dims = body.result_dims(member, operand)

    def across(text: str) -> None:
        reduced = form.across.format(x=text, axis=body.axis_number(member))
        made = body.define(out, body.keep_dim(member, reduced), dims, dtype, member.node.loc)
        _finish_value(body, member, out, made)

    if not body.walks(member):
        across(operand.text)
        return None
    total = _accumulator(body, out, operand, identity, dtype)
    combined = form.combine.format(a=total, b=operand.text)
    body.writer.scopes[-1].lines.append(Line(f"{total} = {combined}", member.node.loc))
    return lambda: across(total)


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
    mean, m2, count = member.node.outs
    dtype = work_dtype(next(member.node.operands()))
    operand = body.reduced_operand(member, dtype, "0.0")
    number = member_extent(member)
    dims = body.result_dims(member, operand)
    _bind_count(body, member, count, number)
    if body.walks(member):
        return _moments_loop(body, member, operand, dtype, dims, number)
    loc = member.node.loc
    axis = body.axis_number(member)
    total = body.keep_dim(member, f"tl.sum({operand.text}, {axis})")
    mean_name = body.define(mean, f"{total} / {max(number, 1)}.0", dims, dtype, loc)
    spread = f"{operand.text} - {mean_name.text}"
    tile = body.across(member)
    if tile.masked:
        spread = f"tl.where({tile.name}_mask, {spread}, 0.0)"
    centered = next(member.node.operands())
    deviation = body.define(centered, spread, operand.dims, dtype, loc, "_centered")
    squares = f"tl.sum({deviation.text} * {deviation.text}, {axis})"
    m2_name = body.define(m2, body.keep_dim(member, squares), dims, dtype, loc)
    _finish_value(body, member, mean, mean_name)
    _finish_value(body, member, m2, m2_name)
    return None


def member_extent(member: Member) -> int:
    number = 1
    for axis in member.across:
        number *= axis.extent
    return number


def _bind_count(body: KernelBody, member: Member, count: Value, number: int) -> None:
    text = f"tl.full([], {number}, tl.int64)"
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
    seen = _accumulator(body, mean, operand, "0.0", dtype, "seen")
    lane_mean = _accumulator(body, mean, operand, "0.0", dtype, "lane")
    lane_m2 = _accumulator(body, m2, operand, "0.0", dtype, "lane")
    delta = body.writer.fresh(f"{mean.name}_delta")
    valid = f"{tile.name}_mask" if tile.masked else None
    lines = body.writer.scopes[-1].lines
    step = f"{valid}.to(tl.{dtype.info.triton})" if valid else "1.0"
    lines.append(Line(f"{seen} += {step}"))
    shift = f"{operand.text} - {lane_mean}"
    lines.append(
        Line(f"{delta} = tl.where({valid}, {shift}, 0.0)" if valid else f"{delta} = {shift}")
    )
    weight = f"{delta} / tl.maximum({seen}, 1.0)" if valid else f"{delta} / {seen}"
    lines.append(Line(f"{lane_mean} += {weight}", member.node.loc))
    lines.append(Line(f"{lane_m2} += {delta} * ({operand.text} - {lane_mean})", member.node.loc))

    def finish() -> None:
        axis = body.axis_number(member)
        total = body.keep_dim(member, f"tl.sum({lane_mean} * {seen}, {axis})")
        made = body.define(mean, f"{total} / {max(number, 1)}.0", dims, dtype, member.node.loc)
        shift = f"({lane_mean} - {made.text})"
        joined = f"tl.sum({lane_m2} + {seen} * {shift} * {shift}, {axis})"
        spread = body.define(m2, body.keep_dim(member, joined), dims, dtype, member.node.loc)
        _finish_value(body, member, mean, made)
        _finish_value(body, member, m2, spread)

    return finish


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
