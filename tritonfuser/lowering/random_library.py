"""Random numbers of the generated kernels: Philox4x32-10, to the bit as ``ops.philox`` has it.

The functions are reached through ``library``, as the other helpers are.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def philox_words(seed, offset, subsequence):
    """Four uint32 words of counter (offset, subsequence) under key seed."""
    seed = tl.cast(seed, tl.uint64)
    offset = tl.cast(offset, tl.uint64)
    subsequence = tl.cast(subsequence, tl.uint64)
    c2 = subsequence.to(tl.uint32)
    c3 = (subsequence >> 32).to(tl.uint32)
    c0 = tl.zeros_like(c2) + offset.to(tl.uint32)
    c1 = tl.zeros_like(c2) + (offset >> 32).to(tl.uint32)
    return tl.philox_impl(c0, c1, c2, c3, seed.to(tl.uint32), (seed >> 32).to(tl.uint32), 10)


@triton.jit
def unsigned(index):
    """A linear index without a sign: then neighbours visibly share a counter, drawn once."""
    if index.dtype.primitive_bitwidth == 32:
        bits = index.to(tl.uint32, bitcast=True)
    else:
        bits = index.to(tl.uint64, bitcast=True)
    return bits


@triton.jit
def unit_float(word):
    """A word as float32 in (0, 1]."""
    return (word.to(tl.float32) + 0.5) * 2.3283064365386963e-10


@triton.jit
def unit_double(low, high):
    """Two words as float64 in (0, 1]."""
    mixed = low.to(tl.uint64) ^ (high.to(tl.uint64) << 21)
    return (mixed.to(tl.float64) + 0.5) * 1.1102230246251565e-16


@triton.jit
def philox_uniform(seed, offset, index):
    """float32 in [0, 1) for each linear index."""
    index = unsigned(index)
    w0, w1, w2, w3 = philox_words(seed, offset, index >> 2)
    part = index & 3
    word = tl.where(part < 2, tl.where(part == 0, w0, w1), tl.where(part == 2, w2, w3))
    unit = unit_float(word)
    return tl.where(unit == 1.0, 0.0, unit)


@triton.jit
def philox_uniform_by_four(seed, offset, subsequence, shape: tl.constexpr):
    """float32 in [0, 1) for a tile of ``shape`` whose last axis has four elements a counter."""
    w0, w1, w2, w3 = philox_words(seed, offset, unsigned(subsequence))
    even = tl.join(unit_float(w0), unit_float(w2))
    odd = tl.join(unit_float(w1), unit_float(w3))
    unit = tl.reshape(tl.join(even, odd), shape)
    return tl.where(unit == 1.0, 0.0, unit)


@triton.jit
def philox_uniform_double(seed, offset, index):
    """float64 in [0, 1) for each linear index."""
    index = unsigned(index)
    w0, w1, w2, w3 = philox_words(seed, offset, index >> 1)
    even = (index & 1) == 0
    unit = unit_double(tl.where(even, w0, w2), tl.where(even, w1, w3))
    return tl.where(unit == 1.0, 0.0, unit)


@triton.jit
def box_muller(u, v, even):
    """A standard normal number from two uniform ones: the sine for even elements."""
    angle = v * 6.283185307179586
    turn = tl.where(even, libdevice.sin(angle), libdevice.cos(angle))
    return libdevice.sqrt(-2.0 * libdevice.log(u)) * turn


@triton.jit
def philox_normal(seed, offset, index):
    """float32 standard normal numbers, one for each linear index."""
    index = unsigned(index)
    w0, w1, w2, w3 = philox_words(seed, offset, index >> 2)
    first = (index & 3) < 2
    u = unit_float(tl.where(first, w0, w2))
    v = unit_float(tl.where(first, w1, w3))
    return box_muller(u, v, (index & 1) == 0)


@triton.jit
def philox_normal_double(seed, offset, index):
    """float64 standard normal numbers, one for each linear index."""
    index = unsigned(index)
    w0, w1, w2, w3 = philox_words(seed, offset, index >> 1)
    return box_muller(unit_double(w0, w1), unit_double(w2, w3), (index & 1) == 0)


@triton.jit
def round_below(x, high, dtype: tl.constexpr):
    """``x`` in ``dtype``; what rounds up to ``high`` becomes the next number below it."""
    rounded = x.to(dtype)
    limit = tl.cast(high, dtype)
    if dtype.primitive_bitwidth == 16:
        bits = limit.to(tl.int16, bitcast=True)
        tiny = tl.full(bits.shape, -32767, tl.int16)
    elif dtype.primitive_bitwidth == 32:
        bits = limit.to(tl.int32, bitcast=True)
        tiny = tl.full(bits.shape, -2147483647, tl.int32)
    else:
        bits = limit.to(tl.int64, bitcast=True)
        tiny = tl.full(bits.shape, -9223372036854775807, tl.int64)
    wide = limit.to(tl.float64)
    below = tl.where(wide == 0, tiny, tl.where(wide > 0, bits - 1, bits + 1))
    below = below.to(dtype, bitcast=True)
    return tl.where(rounded.to(tl.float64) >= wide, below, rounded)
