"""Reductions of a tile, whole in registers or step by step in a loop."""

from __future__ import annotations

from dataclasses import replace

from ....ops.forms import Reduction
from ..lines import Summed
from ..names import Name
from .by_thread import CrossThreadReduction, across_tiles, cross_thread_reductions, joined
from .member_tile import AfterLoop, MemberTile
from .moments_results import SUM


def reduce_tile(tile: MemberTile, form: Reduction) -> AfterLoop | None:
    """``tv5 = tl.sum(tv4, 1)[:, None]``, or an accumulator block and its sum after the loop."""
    if not tile.in_loop:
        tile.bind(tile.out, row_total(tile, form))
        return None
    identity = tile.identity(form.identity)
    operand = tile.operand(identity)
    whole = not tile.joins_steps
    step = operand if whole else replace(operand, text=across_tiles(form, [(tile, operand)]))
    dims = operand.dims if whole else tile.result_dims(operand)
    total = tile.accumulator(tile.out, identity, dims)
    tile.writer.line(f"{total} = {form.combine.format(a=total, b=step.text)}", tile.loc)

    def finish() -> None:
        found = replace(operand, text=total, dims=dims)
        tile.bind(tile.out, _total_of(tile, form, found) if whole else found)

    return finish


def row_total(tile: MemberTile, form: Reduction, mark: str = "") -> Name:
    """The reduction of the elements that a program has at once."""
    return _total_of(tile, form, tile.operand(tile.identity(form.identity)), mark)


def _total_of(tile: MemberTile, form: Reduction, operand: Name, mark: str = "") -> Name:
    """A block reduced, joined with the peeled tiles of its rows."""
    peeled = tile.peeled_tiles()
    rest = [t.operand(t.identity(form.identity)) for t in peeled]
    parts = cross_thread_reductions(form, [(tile, operand), *zip(peeled, rest, strict=True)])
    text, dims = joined(form, parts), tile.result_dims(operand, rest)
    held = operand.held if form.identity in ("lowest", "highest") else None
    if text == operand.text and tile.in_loop:
        return Name(text, tile.dtype, tile.result_dims(operand), held=held)
    found = tile.define(tile.out, text, dims, mark)
    if form.across == SUM.across and all(part.tile.tile.block is not None for part in parts):
        tile.mark_sums(dims, [_summed(part) for part in parts])
    return replace(found, held=held)


def _summed(part: CrossThreadReduction) -> Summed:
    tile = part.tile
    text = SUM.across.format(x=part.block, axis=tile.dim)
    return Summed(text, part.block, part.shape, tile.dtype, tile.dim)
