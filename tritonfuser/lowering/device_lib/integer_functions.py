"""Functions of integers: divisions, powers, the greatest common divisor and shifts."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def int_div(x, y):
    """Quotient truncated towards zero; by zero all bits are set, as the hardware has it.

    The least integer by -1 is itself. To LLVM it has no value, so no such division is left.
    """
    zero = y == 0
    if y.dtype.is_int_unsigned():
        return tl.where(zero, ~y, x // tl.where(zero, 1, y))
    negated = y == -1
    whole = x // tl.where(zero | negated, 1, y)
    return tl.where(zero, ~y, tl.where(negated, 0 - x, whole))


@triton.jit
def int_mod(x, y):
    """Remainder with the sign of the dividend; by zero all bits are set."""
    zero = y == 0
    if y.dtype.is_int_unsigned():
        return tl.where(zero, ~y, x % tl.where(zero, 1, y))
    # Divided by -1 as by 1 nothing remains.
    return tl.where(zero, ~y, x % tl.where(zero | (y == -1), 1, y))


@triton.jit
def int_remainder(x, y):
    """Remainder with the sign of the divisor; by zero all bits are set."""
    rest = int_mod(x, y)
    return tl.where(tl.where(y < 0, rest > 0, rest < 0), rest + y, rest)


@triton.jit
def int_pow(x, y):
    """Power by squaring, wrapping around; a negative exponent gives 0 unless ``x`` is +-1."""
    x, y = tl.broadcast(x, y)
    result = tl.full(x.shape, 1, x.dtype)
    base = x
    left = tl.maximum(y, 0)
    for _ in range(x.dtype.primitive_bitwidth):
        result = tl.where((left & 1) != 0, result * base, result)
        base = base * base
        left = left >> 1
    if x.dtype.is_int_unsigned():
        return result
    odd = (y & 1) != 0
    inverse = tl.where(x == 1, 1, tl.where(x == -1, tl.where(odd, -1, 1), 0))
    return tl.where(y < 0, inverse.to(x.dtype), result)


@triton.jit
def gcd(x, y):
    """Greatest common divisor, not negative, by Euclid; 46 steps do for 32 bits, 92 for 64."""
    x, y = tl.broadcast(tl.abs(x), tl.abs(y))
    for _ in range(46 * (x.dtype.primitive_bitwidth // 32)):
        more = y != 0
        rest = x % tl.where(more, y, 1)
        x = tl.where(more, y, x)
        y = tl.where(more, rest, y)
    return tl.abs(x)


@triton.jit
def shift_left(x, y):
    """``x << y``; 0 where the shift is negative or not below the number of bits."""
    valid = (y >= 0) & (y < x.dtype.primitive_bitwidth)
    return tl.where(valid, x << tl.where(valid, y, 0), 0)


@triton.jit
def shift_right(x, y):
    """Arithmetic ``x >> y``; where the shift is out of range the sign alone, 0 of an unsigned x."""
    last: tl.constexpr = x.dtype.primitive_bitwidth - 1
    valid = (y >= 0) & (y <= last)
    shifted = x >> tl.where(valid, y, last)
    if x.dtype.is_int_unsigned():
        shifted = tl.where(valid, shifted, 0)
    return shifted


@triton.jit
def shift_right_logical(x, y):
    """``x >> y`` filling with zeros; 0 where the shift is out of range."""
    bits: tl.constexpr = x.dtype.primitive_bitwidth
    valid = (y >= 0) & (y < bits)
    if bits == 32:
        word = x.to(tl.uint32, bitcast=True)
    else:
        word = x.to(tl.uint64, bitcast=True)
    shifted = word >> tl.where(valid, y, 0).to(word.dtype)
    return tl.where(valid, shifted.to(x.dtype, bitcast=True), 0)
