"""Indices that a kernel reads from a tensor, kept inside the dim that they are of."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def clamped_index(index, size, mask):
    """An index of ``size`` elements, below 2**31, as 32 bits: one outside is taken as some inside.

    So no read leaves the tensor. The low word alone is compared, in one instruction. On a CPU an
    index that is wrong where the mask holds raises.
    """
    return tl.minimum(index.to(tl.int32).to(tl.uint32, bitcast=True), size - 1).to(tl.int32)


@triton.jit
def clamped_long_index(index, size, mask):
    """``clamped_index`` in 64 bits, for dims of any size."""
    return tl.minimum(tl.maximum(index, 0), size - 1)


@triton.jit
def wrapped_index(index, size, mask):
    """As ``clamped_index``, where -1 is the last index."""
    low = index.to(tl.int32)
    return clamped_index(tl.where(low < 0, low + size, low), size, mask)


@triton.jit
def wrapped_long_index(index, size, mask):
    """``wrapped_index`` in 64 bits, for dims of any size."""
    return clamped_long_index(tl.where(index < 0, index + size, index), size, mask)


@triton.jit
def checked_index(index, size, mask):
    """The index as it is: what is at one outside is not used. On a CPU a wrong one raises."""
    return index


@triton.jit
def index_within(index, least, size):
    """Whether ``least <= index < size``, in 64 bits."""
    wide = index.to(tl.int64)
    return (wide >= least) & (wide < size)
