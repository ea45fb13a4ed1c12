"""``x ** y`` in float32, to the bit as torch's CUDA kernels round it since CUDA 13.

The libdevice that Triton brings has an older ``powf``, which is off by one in the last place for
two results of five. The steps and constants here are those that NVRTC 13.0 makes of ``powf``: log2
of the mantissa by the series of atanh, carried as a sum of two floats (Dekker, A floating-point
technique for extending the available precision, 1971), times y, and 2 to that power by a
polynomial. Products that must be rounded by themselves go through ``mul_rn``.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@tl.core.builtin
def is_nvidia(_semantic=None):
    """Whether the code is compiled for CUDA."""
    return tl.constexpr(getattr(_semantic.builder.options, "backend_name", "") == "cuda")


@triton.jit
def _float_of_bits(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _log2_of_size(size):
    """log2 of a positive number as (head, tail)."""
    tiny = size < 1.1754943508222875e-38
    bits = tl.where(tiny, size * 16777216.0, size).to(tl.int32, bitcast=True)
    # The mantissa between the roots of 1/2 and of 2, and what is left as an exponent.
    exponent = (bits - 0x3F3504F3) & -8388608
    mantissa = _float_of_bits(bits - exponent)
    whole = tl.fma(exponent.to(tl.float32), 1.1920928955078125e-07, tl.where(tiny, -24.0, 0.0))
    above = mantissa - 1.0
    inverse = tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [mantissa + 1.0], tl.float32, is_pure=True, pack=1
    )
    ratio = libdevice.mul_rn(above + above, inverse)
    square = libdevice.mul_rn(ratio, ratio)
    missing = above - ratio
    missing = libdevice.mul_rn(inverse, tl.fma(-ratio, above, missing + missing))
    series = tl.fma(square, 0.00065688626, 0.0032181654)
    series = tl.fma(series, square, 0.018033719)
    series = libdevice.mul_rn(tl.fma(series, square, 0.12022459), square)
    head = tl.fma(ratio, 1.442695, whole)
    tail = tl.fma(ratio, 1.442695, whole - head)
    tail = tl.fma(missing, 1.442695, tail)
    tail = tl.fma(ratio, 1.9251367e-08, tail)
    tail = tl.fma(series * 3.0, missing, tail)
    tail = tl.fma(series, ratio, tail)
    total = head + tail
    return total, tail - (total - head)


@triton.jit
def _exp2_of_pair(head, tail):
    """2 ** (head + tail); 0 or infinity where that is out of range."""
    whole = libdevice.rint(head)
    part = tail + (head - whole)
    power = tl.fma(part, 0.00015239252, 0.0013391353)
    power = tl.fma(power, part, 0.009618839)
    power = tl.fma(power, part, 0.05550359)
    power = tl.fma(power, part, 0.24022645)
    power = tl.fma(power, part, 0.6931472)
    power = tl.fma(power, part, 1.0)
    # By two steps, for the range of exponents is twice that of a float.
    step = tl.where(whole > 0, 0, -2097152000)
    second = _float_of_bits((whole.to(tl.int32) << 23) - step)
    power = power * _float_of_bits(step + 2130706432) * second
    beyond = tl.where(head < 0, 0.0, float("inf"))
    return tl.where(tl.abs(head) > 152.0, beyond, power)


@triton.jit
def pow_float(x, y):
    """``x ** y``; on other GPUs than NVIDIA's as their library has it."""
    if is_nvidia():
        return _pow_float(x, y)
    else:  # noqa: RET505 - Triton compiles what is behind an if
        return libdevice.pow(x, y)


@triton.jit
def _pow_float(x, y):
    """``x ** y``, special values as C has them (ISO C99, F.9.4.4)."""
    # One of them may be a number.
    shape = x == y
    x, y = tl.where(shape, x, x), tl.where(shape, y, y)
    inf = float("inf")
    size = tl.abs(x)
    log, rest = _log2_of_size(size)
    head = libdevice.mul_rn(log, y)
    found = _exp2_of_pair(head, tl.fma(rest, y, tl.fma(log, y, -head)))
    odd = tl.abs(y - 2.0 * libdevice.trunc(y * 0.5)) == 1.0
    signed = tl.where(odd, found * -1.0, found)
    signed = tl.where(libdevice.floor(y) == y, signed, float("nan"))
    found = tl.where(x < 0, signed, found)
    # 0 and infinity stay, change sign, or change places.
    edge = (x + x).to(tl.int32, bitcast=True)
    edge = tl.where(y < 0, edge ^ 0x7F800000, edge)
    edge = _float_of_bits(tl.where(odd, edge, edge & 0x7FFFFFFF))
    found = tl.where((x == 0) | (size == inf), edge, found)
    found = tl.where((x == -1.0) & (tl.abs(y) == inf), 1.0, found)
    found = tl.where((x != x) | (y != y), x + y, found)
    return tl.where((x == 1.0) | (y == 0.0), 1.0, found)
