"""Random numbers of generated kernels: words of ``philox_functions`` as uniform and normal ones."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .philox_functions import (
    eight_of,
    philox_words,
    unsigned,
    word_of_index,
    words_by_eight,
    words_by_four,
)


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
def unit_below_one(word):
    """A word as float32 in [0, 1)."""
    unit = unit_float(word)
    return tl.where(unit == 1.0, 0.0, unit)


@triton.jit
def philox_uniform(seed, offset, index):
    """float32 in [0, 1) for each linear index."""
    return unit_below_one(word_of_index(seed, offset, index))


@triton.jit
def philox_uniform_by_four(seed, offset, subsequence, shape: tl.constexpr):
    """``philox_uniform`` of a tile, from ``words_by_four``."""
    return unit_below_one(words_by_four(seed, offset, subsequence, shape))


@triton.jit
def philox_uniform_by_eight(seed, offset, start, eighth, shape: tl.constexpr):
    """``philox_uniform`` of a tile, from ``words_by_eight``."""
    return unit_below_one(words_by_eight(seed, offset, start, eighth, shape))


@triton.jit
def philox_uniform_double(seed, offset, index):
    """float64 in [0, 1) for each linear index."""
    index = unsigned(index)
    w0, w1, w2, w3 = philox_words(seed, offset, index >> 1)
    even = (index & 1) == 0
    unit = unit_double(tl.where(even, w0, w2), tl.where(even, w1, w3))
    return tl.where(unit == 1.0, 0.0, unit)


@triton.jit
def _wave(turn, quarters):
    """The sine of ``turn + quarters / 4`` turns, ``turn`` in (0, 1].

    The nearest quarter is subtracted, which is exact. What is left is in +-pi/4, where minimax
    polynomials of the Cephes library (``sinf``, ``cosf``) are accurate to the last places.
    """
    nearest = tl.floor(turn * 4.0 + 0.5)
    angle = (turn - nearest * 0.25) * 6.283185307179586
    square = angle * angle
    sine = tl.fma(square, -1.9515295891e-4, 8.3321608736e-3)
    sine = tl.fma(square, sine, -1.6666654611e-1)
    sine = tl.fma(sine * square, angle, angle)
    cosine = tl.fma(square, 2.443315711809948e-5, -1.388731625493765e-3)
    cosine = tl.fma(square, cosine, 4.166664568298827e-2)
    cosine = tl.fma(square * square, cosine, tl.fma(square, -0.5, 1.0))
    quadrant = nearest.to(tl.int32) + quarters
    found = tl.where((quadrant & 1) == 0, sine, cosine)
    return tl.where((quadrant & 2) == 0, found, -found)


@triton.jit
def _radius(u):
    return libdevice.sqrt(-2.0 * libdevice.log(u))


@triton.jit
def philox_normal(seed, offset, index):
    """float32 standard normal numbers, one for each linear index, by Box and Muller.

    Neighbours share two uniform numbers: even ones have the sine, odd ones the cosine.
    """
    index = unsigned(index)
    w0, w1, w2, w3 = philox_words(seed, offset, index >> 2)
    first = (index & 3) < 2
    u = unit_float(tl.where(first, w0, w2))
    v = unit_float(tl.where(first, w1, w3))
    return _radius(u) * _wave(v, (index & 1).to(tl.int32))


@triton.jit
def _normals(seed, offset, subsequence):
    """The four normal numbers of a counter."""
    w0, w1, w2, w3 = philox_words(seed, offset, unsigned(subsequence))
    r0, r1 = _radius(unit_float(w0)), _radius(unit_float(w2))
    v0, v1 = unit_float(w1), unit_float(w3)
    return r0 * _wave(v0, 0), r0 * _wave(v0, 1), r1 * _wave(v1, 0), r1 * _wave(v1, 1)


@triton.jit
def philox_normal_by_four(seed, offset, subsequence, shape: tl.constexpr):
    """``philox_normal`` of a tile whose last axis has four elements a counter."""
    n0, n1, n2, n3 = _normals(seed, offset, subsequence)
    return tl.reshape(tl.join(tl.join(n0, n2), tl.join(n1, n3)), shape)


@triton.jit
def philox_normal_by_eight(seed, offset, start, eighth, shape: tl.constexpr):
    """``philox_normal`` of a tile whose rows begin anywhere: see ``words_by_eight``."""
    first = (start >> 2) + eighth * 2
    a0, a1, a2, a3 = _normals(seed, offset, first)
    b0, b1, b2, b3 = _normals(seed, offset, first + 1)
    c0, c1, c2, _ = _normals(seed, offset, first + 2)
    begin = start + eighth * 0
    return eight_of(begin, a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, shape)


@triton.jit
def box_muller(u, v, even):
    """A standard normal float64 from two uniform ones: the sine for even elements."""
    angle = v * 6.283185307179586
    turn = tl.where(even, libdevice.sin(angle), libdevice.cos(angle))
    return libdevice.sqrt(-2.0 * libdevice.log(u)) * turn


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


@triton.jit
def uniform_between(unit, low, high, largest, dtype: tl.constexpr):
    """Numbers of [0, 1) spread over [low, high) and rounded, whose bounds are rounded first.

    ``largest`` is the largest number of ``dtype``: a bound beyond it becomes that. The range is
    halved, which is exact, since it may be wider than any number. Bounds the other way round are
    those of (high, low].
    """
    low = _held(low, largest, dtype).to(unit.dtype)
    high = _held(high, largest, dtype).to(unit.dtype)
    spread = (low * 0.5 + unit * (high * 0.5 - low * 0.5)) * 2.0
    rounded = round_below(spread, high, dtype)
    inside = tl.where(rounded < low, low.to(dtype), rounded)
    return tl.where(high < low, spread.to(dtype), inside)


@triton.jit
def _held(bound, largest, dtype: tl.constexpr):
    rounded = tl.cast(bound, dtype)
    wide = rounded.to(tl.float64)
    return tl.minimum(tl.maximum(wide, -largest), largest).to(dtype)
