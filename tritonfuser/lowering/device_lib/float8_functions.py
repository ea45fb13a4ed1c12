"""Conversions between float32 and floats of eight bits, which kernels hold as bytes.

Rounded to nearest even, as torch does it: past the largest number e5m2 gives infinity, and e4m3
nan, or with ``saturates`` the largest number.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import re

import triton
import triton.language as tl


@tl.core.builtin
def converts_float8(_semantic=None):
    """Whether the GPU that is compiled for rounds float32 to both types in one instruction."""
    found = re.fullmatch(r"sm_?(\d+)a?", str(getattr(_semantic.builder.options, "arch", "")))
    return tl.constexpr(found is not None and int(found[1]) >= 90)


@triton.jit
def float_to_e4m3(x, saturates: tl.constexpr):
    """The byte: four bits of exponent, three of mantissa, no infinity."""
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    if converts_float8():
        found = x.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
        if saturates:
            return found
        # Halfway from the largest number, 448, to the next is 464.
        return tl.where(size <= 0x43E80000, found, 0x7F).to(tl.uint8)
    # Adding 2**14 leaves what counts in multiples of 2**-9, the smallest number.
    tiny = (size.to(tl.float32, bitcast=True) + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    # A new bias, and half of the last place, less one bit where that is even already.
    rounded = (size - 0x3C000000 + 0x7FFFF + ((size >> 20) & 1)) >> 20
    found = tl.where(size < 0x3C800000, tiny, rounded)
    past = tl.where(size > 0x7F800000, 0x7F, 0x7E) if saturates else 0x7F
    found = tl.where(size <= 0x43E80000, found, past)
    return (found | ((bits >> 24) & 0x80)).to(tl.uint8)


@triton.jit
def float_to_e5m2(x):
    """The byte: the upper half of a float16, rounded once."""
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    if converts_float8():
        found = x.to(tl.float8e5).to(tl.uint8, bitcast=True)
        # The instruction stops at 57344; halfway to the next number is 61440.
        past = tl.where(size > 0x7F800000, 0x7F, 0x7C) | ((bits >> 24) & 0x80)
        return tl.where(size < 0x47700000, found, past.to(tl.uint8))
    # Adding 2**7 leaves what counts in multiples of 2**-16, the smallest number.
    tiny = (size.to(tl.float32, bitcast=True) + 128.0).to(tl.int32, bitcast=True) - 0x43000000
    rounded = (size - 0x38000000 + 0xFFFFF + ((size >> 21) & 1)) >> 21
    found = tl.where(size < 0x38800000, tiny, rounded)
    found = tl.where(size >= 0x47800000, tl.where(size > 0x7F800000, 0x7F, 0x7C), found)
    return (found | ((bits >> 24) & 0x80)).to(tl.uint8)


@triton.jit
def e4m3_to_float(x):
    """The number that a byte stands for; exact."""
    if converts_float8():
        return x.to(tl.float8e4nv, bitcast=True).to(tl.float32)
    word = x.to(tl.int16)
    half = ((word & 0x80) << 8) | ((word & 0x7F) << 7)  # a float16 with another bias
    number = half.to(tl.float16, bitcast=True).to(tl.float32) * 256.0
    return tl.where((word & 0x7F) == 0x7F, float("nan"), number)


@triton.jit
def e5m2_to_float(x):
    """The number that a byte stands for; exact."""
    return (x.to(tl.int16) << 8).to(tl.float16, bitcast=True).to(tl.float32)
