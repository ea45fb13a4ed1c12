"""Loads that a loop over rows makes a step ahead, where Triton's pipeline does not.

The pipeline copies to shared memory, at least four bytes for each thread. The short tiles peeled
off a row have less, and a step would wait for them as long as memory takes. In the backward of a
layer norm of 8192 x 8200 in bfloat16 (H200) that was a fifth of the time.
"""

from __future__ import annotations

from ...device import NVIDIA_WARP_SIZE
from ...heuristics.params import KernelParams
from ...symbolic.index_expr import Affine, digit, substitute
from ..access.read_footprint import Read
from ..access.traffic import offset_of
from ..tile.nest import Nest
from .expressions import load_text
from .lines import Name
from .loads import LoadWriter

ASYNC_COPY_BYTES = 4
"""Bytes of the smallest asynchronous copy to shared memory (NVIDIA's cp.async)."""


def is_prefetched(nest: Nest, params: KernelParams, read: Read) -> bool:
    """Whether a load should be made a step ahead by hand."""
    loop = nest.loop_tile
    if loop is None or loop.block is not None or params.num_stages < 2 or read.guards:
        return False
    if loop.masked:  # a loop that finishes rows some steps after it reads them
        return False
    met = frozenset(axis.name for item in read.index for axis in item.axes())
    widths = [t.width for t in nest.tiles if t.block is not None and t.name in met]
    size = read.value.dtype.info.bytes
    least = ASYNC_COPY_BYTES * NVIDIA_WARP_SIZE * params.num_warps
    narrow = bool(widths) and max(widths) * size < least
    loaded = any(item.loaded() for item in read.index)
    return loop.name in met and narrow and not loaded and size < ASYNC_COPY_BYTES


def prefetch(loads: LoadWriter, nest: Nest, read: Read) -> Name:
    """``tv0 = tv0_next``, and the load of the step after this one; the first is before the loop."""
    value, loop = read.value, nest.loop_tile
    assert loop is not None
    writer, index = loads.writer, loads.index
    offset = offset_of(read.index, loads.stored[value])
    dims = index.dims(offset)
    named = index.mask_name(dims)
    masks = [named] if named else []
    loads.loaded.append(read)

    def load(step: Affine, *beside: str) -> str:
        pointer = loads.address(value, substitute(offset, {loop.axis: step}))
        return load_text(pointer, " & ".join([*masks, *beside]))

    coming = writer.fresh(f"{value.name}_next")
    writer.line_before_loop(f"{coming} = {load(Affine())}", loads=value.name)
    name = writer.define(value, coming, dims, value.dtype)
    writer.bind(read, name)
    last = f"{loop.stop_text} - 1" if loop.part is not None else loop.axis.extent - 1
    following = load(digit(loop.axis) + 1, f"({loop.name} < {last})")
    writer.line(f"{coming} = {following}", loads=value.name)
    return name
