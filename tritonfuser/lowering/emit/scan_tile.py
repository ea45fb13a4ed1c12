"""Scans of a tile; in a loop with what came before as a carry. The table of all reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ir import Value
from ...ops.table import Moments, Reduction, Scan
from .moments_tile import moments_tile
from .reduce_tile import Finish, identity_text, reduce_tile, work_dtype
from .writer import Line, Name

if TYPE_CHECKING:
    from ..segments import Member
    from .kernel_body import KernelBody


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
