"""Views of one operand: the index that an element reads, and the strides in the operand's memory.

A view names one ``*_pull`` map (result index -> operand index) and, where the result can lie in the
operand's memory, one ``*_alias``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import TensorType
from ..symbolic.index_expr import constant
from ..symbolic.queries import (
    assume_empty,
    assume_equal,
    assume_less,
    assume_max,
    assume_min,
    assume_multiple,
)
from ..symbolic.row_major import linear, unravel
from .broadcasting import broadcast_index
from .index_map import Index
from .memory import Memory, contiguous_strides


def permute_pull(index: Index, dims: Sequence[int]) -> Index:
    source = [constant(0)] * len(dims)
    for place, dim in enumerate(dims):
        source[dim] = index[place]
    return tuple(source)


def permute_alias(memory: Memory, dims: Sequence[int]) -> Memory:
    return Memory(
        tuple(memory.sizes[d] for d in dims), tuple(memory.strides[d] for d in dims), memory.offset
    )


def broadcast_pull(index: Index, flags: Sequence[bool]) -> Index:
    return tuple(item for item, new in zip(index, flags, strict=True) if not new)


def broadcast_alias(memory: Memory, flags: Sequence[bool]) -> Memory:
    """New size-1 dims; their stride is what torch.unsqueeze would give."""
    sizes: list[int] = []
    strides: list[int] = []
    old = len(memory.sizes)
    for new in reversed(flags):
        if new:
            step = strides[-1] * sizes[-1] if sizes else 1
            sizes.append(1)
            strides.append(step)
        else:
            old -= 1
            sizes.append(memory.sizes[old])
            strides.append(memory.strides[old])
    return Memory(tuple(reversed(sizes)), tuple(reversed(strides)), memory.offset)


def expand_pull(index: Index, operand: TensorType) -> Index:
    return broadcast_index(index, operand)


def expand_alias(memory: Memory, sizes: Sequence[int]) -> Memory:
    new = len(sizes) - len(memory.sizes)
    strides = [0] * new
    for old, stride, size in zip(memory.sizes, memory.strides, sizes[new:], strict=True):
        stretched = assume_equal(old, 1) and not assume_equal(size, 1)
        strides.append(0 if stretched else stride)
    return Memory(tuple(sizes), tuple(strides), memory.offset)


def squeeze_pull(index: Index, dims: Sequence[int], rank: int) -> Index:
    left = iter(index)
    return tuple(constant(0) if dim in dims else next(left) for dim in range(rank))


def squeeze_alias(memory: Memory, dims: Sequence[int]) -> Memory:
    kept = [d for d in range(len(memory.sizes)) if d not in dims]
    return permute_alias(memory, kept)


def reshape_pull(index: Index, sizes: tuple[int, ...], operand: tuple[int, ...]) -> Index:
    return unravel(linear(index, sizes), operand)


def reshape_alias(memory: Memory, sizes: tuple[int, ...]) -> Memory | None:
    """The strides that ``torch.Tensor.view`` gives; None where it would refuse."""
    if assume_empty(memory.sizes):
        return Memory(sizes, contiguous_strides(sizes), memory.offset)
    runs: list[tuple[int, int]] = []  # (length, innermost stride), outermost first
    for size, stride in zip(memory.sizes, memory.strides, strict=True):
        if assume_equal(size, 1):
            continue
        if runs and assume_equal(runs[-1][1], size * stride):
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    strides: list[int] = []
    left, step = runs.pop() if runs else (1, 1)
    for size in reversed(sizes):
        if not assume_equal(size, 1) and assume_equal(left, 1) and runs:
            left, step = runs.pop()
        if not assume_multiple(left, size):
            return None
        strides.append(step)
        left, step = left // size, step * size
    return Memory(sizes, tuple(reversed(strides)), memory.offset)


def slice_pull(index: Index, starts: Sequence[int]) -> Index:
    return tuple(item + start for item, start in zip(index, starts, strict=True))


def slice_alias(memory: Memory, starts: Sequence[int], sizes: tuple[int, ...]) -> Memory:
    offset = memory.offset
    if not assume_empty(sizes):
        offset += sum(s * stride for s, stride in zip(starts, memory.strides, strict=True))
    return Memory(sizes, memory.strides, offset)


def slice_bounds(size: int, start: int, end: int) -> tuple[int, int]:
    """Start and end normalized as by Python's slices.

    Negative ones count from the end of the dim. Both are clamped to the dim, and the end to the
    start.
    """
    start, end = (place + size if assume_less(place, 0) else place for place in (start, end))
    start = assume_min(assume_max(start, 0), size)
    return start, assume_max(start, assume_min(assume_max(end, 0), size))
