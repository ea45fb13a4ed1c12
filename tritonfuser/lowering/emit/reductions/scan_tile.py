"""Scans of a tile; in a loop, with the results of the steps before as a carry."""

from __future__ import annotations

from ....ops.forms import Scan
from ..names import Name
from .member_tile import MemberTile


def scan_tile(tile: MemberTile, form: Scan) -> None:
    """``tv5 = tl.cumsum(tv4, 1)``, in a loop joined with a carry."""
    identity = tile.identity(form.identity)
    operand = _over_block(tile, tile.operand(identity))
    one = tile.tile.axis.extent == 1
    text = operand.text if one else form.along.format(x=operand.text, axis=tile.dim)
    name = tile.define(tile.out, text, operand.dims)
    if tile.in_loop:
        carry = tile.accumulator(tile.out, identity, tile.result_dims(operand), "carry")
        name = tile.define(tile.out, form.combine.format(a=carry, b=name.text), operand.dims)
        total = tile.keep_dim(form.across.format(x=operand.text, axis=tile.dim))
        tile.writer.line_at_step_end(f"{carry} = {form.combine.format(a=carry, b=total)}")
    tile.bind(tile.out, name)


def _over_block(tile: MemberTile, operand: Name) -> Name:
    """The operand over a whole block: Triton cannot compile scans of less in a kernel of more."""
    whole = frozenset(t.name for t in tile.context.nest.tiles if t.block is not None)
    if whole <= operand.dims:
        return operand
    dims = operand.dims | whole
    text = f"tl.broadcast_to({operand.text}, {tile.index.tile_text.shape(dims)})"
    return tile.writer.define(tile.value, text, dims, operand.dtype)
