"""Reductions of a tile, whole in registers or step by step in a loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...dtypes import DataType, compute_dtype
from ...ir import Value
from ...ops.table import Reduction
from ..passes.constant_folding import neutral
from .expressions import literal
from .writer import Line, Name

if TYPE_CHECKING:
    from ..segments import Member
    from .kernel_body import KernelBody

Finish = Callable[[], None]


def identity_text(kind: str, value: Value) -> str:
    """The neutral element of a reduction of a value, as Triton text."""
    return literal(neutral(kind, compute_dtype(value.dtype)), work_dtype(value))


def work_dtype(value: Value) -> DataType:
    """What a reduction of a value is computed in: Float for half, Int32 for Bool."""
    return DataType.Int32 if value.dtype is DataType.Bool else compute_dtype(value.dtype)


def give(body: KernelBody, member: Member, out: Value, name: Name) -> None:
    """Say that a result is there, in the work type."""
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
        give(body, member, out, row_total(body, member, form))
        return None
    identity = identity_text(form.identity, value)
    operand = body.reduced_operand(member, dtype, identity)
    total = accumulator(body, out, operand, identity, dtype)
    combined = form.combine.format(a=total, b=operand.text)
    body.writer.scopes[-1].lines.append(Line(f"{total} = {combined}", member.node.loc))

    def finish() -> None:
        give(body, member, out, _joined(body, member, form, replace(operand, text=total)))

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


def tails(body: KernelBody, member: Member, dtype: DataType, identity: str) -> list[Name]:
    """The operand over the tiles for what whole blocks leave of the rows it reduces."""
    found: list[Name] = []
    for piece in body.reduced_pieces(member)[1:]:
        with body.on(piece):
            found.append(body.reduced_operand(member, dtype, identity))
    return found


def accumulator(
    body: KernelBody,
    out: Value,
    operand: Name,
    identity: str,
    dtype: DataType,
    mark: str = "",
    width: int = 1,
) -> str:
    """A tile of identities before the loop, one for ``width`` neighbours; returns its name."""
    name = body.writer.fresh(f"{out.name}_{mark or 'acc'}")
    shape = lane_shape(body, operand.dims, width)
    text = f"tl.full({shape}, {identity}, tl.{dtype.info.triton})"
    body.writer.scopes[-2].lines.append(Line(f"{name} = {text}"))
    return name


def lane_shape(body: KernelBody, dims: frozenset[str], width: int) -> str:
    """The block shape with one place for ``width`` neighbours of the axis that is walked."""
    shape, loop = body.shape(dims), body.nest.loop_tile
    if width == 1:
        return shape
    assert loop is not None
    return shape.replace(str(loop.block), f"{loop.block} // {width}", 1)
