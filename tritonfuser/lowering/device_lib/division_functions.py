"""Integer division by a kernel argument, as a multiplication by its inverse and a shift.

``x // n`` is the upper word of ``x * inverse``, shifted to the right, where ``inverse`` is a power
of two over ``n``, rounded up. The host computes it once for a size. A compiler does the same for a
number that is written in the text.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

LEAST_DIVISOR = 2
"""The inverse of 1 has one bit more than a word."""


def inverse_of(divisor: int, bits: int = 32) -> tuple[int, int]:
    """What ``quotient`` takes to divide by a number.

    Parameters
    ----------
    divisor : int
        ``LEAST_DIVISOR`` or more, below ``2**(bits - 1)``.
    bits : int
        Of the numbers that are divided, 32 or 64. They are of a signed type, and not negative.

    Returns
    -------
    tuple of int
        The multiplier, as the signed number of its bits, and how far the upper half of the product
        is shifted to the right.
    """
    shift = (divisor - 1).bit_length() - 1
    multiplier = -(-(1 << (bits + shift)) // divisor)
    return multiplier - (1 << bits), shift


# What is told of numbers is told where they are computed: Triton forgets it of arguments and of
# casts.


@triton.jit
def quotient(x, inverse, shift, same: tl.constexpr = 1):
    """``x // n`` of numbers that are not negative, by ``inverse, shift = inverse_of(n)``.

    It is told that ``same`` neighbours are equal, from the first one on.
    """
    signed = inverse.dtype
    word = tl.uint64 if signed == tl.int64 else tl.uint32
    result = tl.umulhi(x.to(word), inverse.to(word)) >> shift.to(word)
    if same > 1:
        if len(result.shape) == 1:
            result = tl.max_constancy(result, [same])
        elif result.shape[0] == 1:
            result = tl.max_constancy(result, [1, same])
        else:
            result = tl.max_constancy(result, [same, 1])
    return result.to(signed)


@triton.jit
def remainder(x, divisor):
    """``x % divisor``, by the quotient, as machines compute it.

    If LLVM has to find that out, it freezes ``x`` where it may be poison (``DivRemPairs``), and its
    instruction selection aborts the process for some vectors of frozen numbers (seen in the LLVM of
    Triton 3.6).
    """
    return x - x // divisor * divisor


@triton.jit
def residue(x, whole, divisor, counting: tl.constexpr):
    """``x % divisor``, where ``whole`` is the quotient.

    It is told that ``counting`` neighbours count up from a multiple of as many, from the first one
    on.
    """
    result = x - whole * divisor
    if len(result.shape) == 1:
        result = tl.multiple_of(tl.max_contiguous(result, [counting]), [counting])
    elif result.shape[0] == 1:
        result = tl.multiple_of(tl.max_contiguous(result, [1, counting]), [1, counting])
    else:
        result = tl.multiple_of(tl.max_contiguous(result, [counting, 1]), [counting, 1])
    return result
