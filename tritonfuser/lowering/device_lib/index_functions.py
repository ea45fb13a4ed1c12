"""Indices that a kernel reads from a tensor, kept inside the dim that they are of."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from .tile_functions import spread

# Triton loads vectors at an index that neighbours have in common, if it is told that they do. It
# forgets what it is told of the reshape in ``spread`` where it makes that anew for another layout,
# and of what a function is given: so it is told of a minimum.


@triton.jit
def spread_index(index, count: tl.constexpr, size):
    """``spread`` of an index of ``size`` elements, which ``count`` neighbours have."""
    wide = tl.minimum(spread(index, count), size - 1)
    if len(wide.shape) == 1:
        wide = tl.max_constancy(wide, [count])
    else:
        wide = tl.max_constancy(wide, [1, count])
    return wide


@triton.jit
def clamped_index(index, size, mask, same: tl.constexpr = 1):
    """An index of ``size`` elements, below 2**31, as 32 bits: one outside is taken as some inside.

    So no read leaves the tensor. The low word alone is compared, in one instruction. On a CPU an
    index that is wrong where the mask holds raises.
    """
    found = tl.minimum(index.to(tl.int32).to(tl.uint32, bitcast=True), size - 1)
    if same > 1:
        if len(found.shape) == 1:
            found = tl.max_constancy(found, [same])
        else:
            found = tl.max_constancy(found, [1, same])
    return found.to(tl.int32)


@triton.jit
def clamped_long_index(index, size, mask, same: tl.constexpr = 1):
    """``clamped_index`` in 64 bits, for dims of any size."""
    found = tl.minimum(tl.maximum(index, 0), size - 1)
    if same > 1:
        if len(found.shape) == 1:
            found = tl.max_constancy(found, [same])
        else:
            found = tl.max_constancy(found, [1, same])
    return found


@triton.jit
def wrapped_index(index, size, mask, same: tl.constexpr = 1):
    """As ``clamped_index``, where -1 is the last index."""
    low = index.to(tl.int32)
    return clamped_index(tl.where(low < 0, low + size, low), size, mask, same)


@triton.jit
def wrapped_long_index(index, size, mask, same: tl.constexpr = 1):
    """``wrapped_index`` in 64 bits, for dims of any size."""
    return clamped_long_index(tl.where(index < 0, index + size, index), size, mask, same)


@triton.jit
def checked_index(index, size, mask):
    """The index as it is: what is at one outside is not used. On a CPU a wrong one raises."""
    return index


@triton.jit
def index_within(index, least, size):
    """Whether ``least <= index < size``, in 64 bits."""
    wide = index.to(tl.int64)
    return (wide >= least) & (wide < size)
