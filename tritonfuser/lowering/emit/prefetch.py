"""Loads that a loop over rows makes a step ahead, where Triton's pipeline does not.

The pipeline copies to shared memory, four bytes a lane or more. The short tiles beside whole blocks
of a row have less, and a step would wait for them as long as memory takes: in the backward of a
layer norm of 8192 x 8200 in bfloat16 that was a fifth of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...symbolic.index_expr import Affine, digit, substitute
from ..access.traffic import offset_of
from .expressions import load_text
from .writer import Line, Name

if TYPE_CHECKING:
    from ..access.read_footprint import Read
    from .kernel_body import KernelBody

COPIED = 4
"""Bytes of the smallest asynchronous copy to shared memory."""

LANES = 32


def is_ahead(body: KernelBody, read: Read) -> bool:
    """Whether a load should be made a step ahead by hand."""
    params, loop = body.segment.params, body.nest.loop_tile
    if loop is None or loop.block is not None or params.num_stages < 2 or read.guards:
        return False
    if loop.masked:  # a loop that finishes rows behind those that it reads
        return False
    met = frozenset(axis.name for item in read.index for axis in item.axes())
    widths = [t.width for t in body.nest.tiles if t.block is not None and t.name in met]
    size = read.value.dtype.info.bytes
    narrow = bool(widths) and max(widths) * size < COPIED * LANES * params.num_warps
    loaded = any(item.loaded() for item in read.index)
    return loop.name in met and narrow and not loaded and size < COPIED


def load_ahead(body: KernelBody, read: Read) -> Name:
    """``tv0 = tv0_next``, and the load of the step after this one; the first is before the loop."""
    value, loop = read.value, body.nest.loop_tile
    assert loop is not None
    offset = offset_of(read.index, body.stored[value])
    dims = body.index.dims(offset)
    masks = body.index.mask(dims)

    def load(step: Affine, *beside: str) -> str:
        pointer = body.address(value, substitute(offset, {loop.axis: step}))
        return load_text(pointer, [*masks, *beside])

    coming = body.writer.fresh(f"{value.name}_next")
    body.writer.scopes[-2].lines.append(Line(f"{coming} = {load(Affine())}", loads=value.name))
    name = body.define(value, coming, dims, value.dtype, None)
    following = load(digit(loop.axis) + 1, f"({loop.name} < {loop.axis.extent - 1})")
    body.writer.scopes[-1].lines.append(Line(f"{coming} = {following}", loads=value.name))
    return name
