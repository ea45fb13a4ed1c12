"""Software prefetch: loads one step ahead in loops that Triton's pipeliner does not handle.

The pipeline copies to shared memory, at least four bytes for each thread. The short tiles peeled
off a row have less, and a step would wait for them as long as memory takes. In the backward of a
layer norm of 8192 x 8200 in bfloat16 (H200) that was a fifth of the time.
"""

from __future__ import annotations

from ....device import NVIDIA_WARP_SIZE
from ....heuristics.params import KernelParams
from ....symbolic.index_expr import Affine, digit
from ....symbolic.substitution import substitute
from ...access.reads import Read
from ...access.traffic import offset_of
from ...tile.nest import Nest
from ...tile.tile import Tile
from ..expressions import load_text, triton_name
from ..indexing.addresses import address
from ..names import Name
from .loads import LoadWriter

ASYNC_COPY_BYTES = 4
"""Bytes of the smallest asynchronous copy to shared memory (NVIDIA's cp.async)."""


def is_prefetched(nest: Nest, params: KernelParams, read: Read) -> bool:
    """Whether the text should load one step ahead, since Triton's pipeliner would not.

    Triton pipelines by asynchronous copies of at least ``ASYNC_COPY_BYTES`` a thread.
    """
    loop = nest.loop_tile
    if loop is None or loop.block is not None or params.num_stages < 2 or read.guards:
        return False
    size = read.value.dtype.info.bytes
    width = _width(nest, read)
    least = ASYNC_COPY_BYTES * NVIDIA_WARP_SIZE * params.num_warps
    narrow = width > 0 and width * size < least
    return _moves(loop, read) and narrow and size < ASYNC_COPY_BYTES


def is_prefetched_row(row: Tile, nest: Nest, params: KernelParams, read: Read) -> bool:
    """``is_prefetched`` where several programs share rows, for the row that is read or finished.

    A scalar of each row is loaded ahead as well: while one program waits for it, all programs that
    share the row wait.
    """
    if params.num_stages < 2 or read.guards or not _moves(row, read):
        return False
    size = read.value.dtype.info.bytes
    width = _width(nest, read)
    least = ASYNC_COPY_BYTES * NVIDIA_WARP_SIZE * params.num_warps
    return size < ASYNC_COPY_BYTES and (not width or width * size < least)


def _moves(row: Tile, read: Read) -> bool:
    """Whether a read depends on the row, and its address is known a step ahead (not loaded)."""
    met = frozenset(axis.name for item in read.index for axis in item.axes())
    return row.name in met and not any(item.loaded() for item in read.index)


def _width(nest: Nest, read: Read) -> int:
    """Elements that a read has of the widest tile it runs over; 0 for a scalar."""
    met = frozenset(axis.name for item in read.index for axis in item.axes())
    return max((t.width for t in nest.tiles if t.block is not None and t.name in met), default=0)


def prefetch_row(loads: LoadWriter, nest: Nest, row: Tile, read: Read, delay: int = 0) -> Name:
    """``prefetch`` in a loop that several programs share rows in.

    Parameters
    ----------
    row : Tile
        The row of a step that it is read of.
    delay : int
        Steps by which the row is behind the loop: in so many first steps there is none.
    """
    value = read.value
    writer, index = loads.writer, loads.index
    offset = offset_of(read.index, loads.stored[value])
    dims = index.axes.dims(offset)
    named = index.masks.name(dims - {row.name})
    masks = [named] if named else []
    loads.loaded.append(read)

    def load(step: Affine, *beside: str) -> str:
        pointer = address(index, value, substitute(offset, {row.axis: step}))
        return load_text(pointer, " & ".join([*masks, *beside]))

    coming = writer.fresh(f"{value.name}_next")
    blocked = index.axes.blocked(dims)
    shape = index.tile_text.shape(blocked) if blocked else "[]"
    zeros = f"tl.full({shape}, 0, {triton_name(value.dtype)})"
    loop = nest.loop_tile
    assert loop is not None
    first = zeros if delay else load(Affine(), *_if_any(loop))
    writer.line_before_loop(f"{coming} = {first}", loads=value.name)
    name = writer.define(value, coming, dims, value.dtype)
    writer.bind(read, name)
    last = f"{loop.stop_text} - 1" if loop.part is not None else loop.end - 1
    there = [f"({row.name} < {last})", *[f"({row.name} >= -1)"] * (delay > 0)]
    writer.line(f"{coming} = {load(digit(row.axis) + 1, *there)}", loads=value.name)
    return name


def prefetch(loads: LoadWriter, nest: Nest, read: Read) -> Name:
    """``tv0 = tv0_next``, and the load of the step after this one; the first is before the loop."""
    value, loop = read.value, nest.loop_tile
    assert loop is not None
    writer, index = loads.writer, loads.index
    offset = offset_of(read.index, loads.stored[value])
    dims = index.axes.dims(offset)
    named = index.masks.name(dims)
    masks = [named] if named else []
    loads.loaded.append(read)

    def load(step: Affine, *beside: str) -> str:
        pointer = address(index, value, substitute(offset, {loop.axis: step}))
        return load_text(pointer, " & ".join([*masks, *beside]))

    coming = writer.fresh(f"{value.name}_next")
    first = load(Affine(), *_if_any(loop))
    writer.line_before_loop(f"{coming} = {first}", loads=value.name)
    name = writer.define(value, coming, dims, value.dtype)
    writer.bind(read, name)
    last = f"{loop.stop_text} - 1" if loop.part is not None else loop.axis.extent - 1
    following = load(digit(loop.axis) + 1, f"({loop.name} < {last})")
    writer.line(f"{coming} = {following}", loads=value.name)
    return name


def _if_any(loop: Tile) -> list[str]:
    """The mask of the first step, where a program may have none."""
    return [f"({loop.stop_text} > 0)"] if loop.may_be_empty else []
