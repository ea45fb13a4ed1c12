"""Float functions built on the approximate exp2 and reciprocal of the hardware.

Instructions as they are, numbers below 1.2e-38 taken and given as 0. To keep those takes three
instructions more, which scale an operand and a result.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .power_functions import is_nvidia


@triton.jit
def approx_exp2(x):
    """``2 ** x`` in float32 to 2 ulp."""
    if is_nvidia():
        result = tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    else:
        result = tl.exp2(x)
    return result


@triton.jit
def approx_reciprocal(x):
    """``1 / x`` in float32 to 1 ulp."""
    if is_nvidia():
        result = tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    else:
        result = 1.0 / x
    return result


@triton.jit
def approx_rsqrt(x):
    """``1 / sqrt(x)`` in float32 to 1 ulp."""
    if is_nvidia():
        result = tl.inline_asm_elementwise(
            "rsqrt.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    else:
        result = libdevice.rsqrt(x)
    return result


@triton.jit
def tanh(x):
    """Hyperbolic tangent to about 3 ulp.

    In float32 1 - 2 / (exp(2 |x|) + 1), and a polynomial near 0 where that cancels. libdevice's
    costs twice as much, which makes gelu bound by arithmetic.
    """
    if x.dtype == tl.float64:
        result = libdevice.tanh(x)
    else:
        size = tl.abs(x)
        large = 1.0 - 2.0 * approx_reciprocal(approx_exp2(size * 2.8853900817779268) + 1.0)
        square = x * x
        tail = square * -0.005895150288041602 + 0.020795964590209246
        tail = tail * square - 0.05378382803399114
        tail = tail * square + 0.1333192409798976
        tail = tail * square - 0.33333298000919204
        small = x + x * (square * tail)
        result = tl.where(size < 0.6, small, libdevice.copysign(large, x))
    return result


@triton.jit
def one_plus_tanh(x):
    """``1 + tanh(x)`` as 2 / (1 + exp(-2 x)), which is exact where tanh is near -1 as well."""
    if x.dtype == tl.float64:
        result = 1.0 + libdevice.tanh(x)
    else:
        result = approx_reciprocal(approx_exp2(x * -2.8853900817779268) * 0.5 + 0.5)
    return result


@triton.jit
def coarse_exp(x):
    """e to the power of ``x``, to 2 ** -17: in float32 the product is rounded before exp2."""
    return libdevice.exp(x) if x.dtype == tl.float64 else approx_exp2(x * 1.4426950408889634)


@triton.jit
def coarse_sigmoid(x):
    """``sigmoid`` by ``coarse_exp``."""
    power = 1.0 + coarse_exp(x * -1.0)
    return 1.0 / power if x.dtype == tl.float64 else approx_reciprocal(power)


@triton.jit
def one_plus_erf(x):
    """``1 + erf(x)`` to 2 ** -16, near -1 too: half the instructions of erf.

    With t = 1 / (1 + 0.4 |x|), erfc(|x|) is t * 2 ** (p(t) - x ** 2 log2(e)), a form of Numerical
    Recipes (Press et al., 1992, chapter 6.2); p is a minimax fit for |x| to 9.2.
    """
    if x.dtype == tl.float64:
        result = 1.0 + libdevice.erf(x)
    else:
        t = approx_reciprocal(tl.abs(x) * 0.4 + 1.0)
        power = t * 0.33465245366096497 - 1.0443066358566284
        power = power * t + 0.8147964477539062
        power = power * t - 0.06645650416612625
        power = power * t + 0.6725149154663086
        power = power * t + 1.436303973197937
        power = power * t - 2.1475014686584473
        far = t * approx_exp2(x * x * -1.4426950408889634 + power)
        result = tl.where(x < 0, far, 2.0 - far)
    return result


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)); an overflowing exp gives 0, as it should."""
    power = 1.0 + libdevice.exp(x * -1.0)
    return 1.0 / power if x.dtype == tl.float64 else approx_reciprocal(power)


@triton.jit
def silu(x):
    """x / (1 + exp(-x))."""
    power = 1.0 + libdevice.exp(x * -1.0)
    return x / power if x.dtype == tl.float64 else x * approx_reciprocal(power)
