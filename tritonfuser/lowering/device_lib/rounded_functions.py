"""Products, quotients, reciprocals and square roots in float32, rounded to nearest.

Products are rounded before they are summed. The others have few branches.

The assembler's own have a branch for operands whose steps would overflow or underflow. A loop with
branches is not unrolled, and the elements of a thread wait for one another. Here such operands are
scaled by a power of two. The steps are the assembler's: an approximation by the hardware, and what
is missing from it by fused multiply-adds (Markstein, Computation of elementary functions on the IBM
RISC System/6000 processor, 1990). Quotients take twice the instructions that way, and are left to
the assembler but for zeros over a number.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .float_functions import approx_reciprocal, approx_rsqrt
from .power_functions import is_nvidia


@triton.jit
def div_rounded(x, y):
    """``x / y``, to the nearest number.

    Zeros take the assembler's branch, and all lanes of the warp with them, some thirty
    instructions: those behind the end of a row are zeros, and what a mask or a relu has dropped.
    In their place a small number is divided: it has a quotient for each number that ``x / y`` is
    zero for.
    """
    if is_nvidia():
        is_zero = x == 0
        result = tl.div_rn(tl.where(is_zero, 2.384185791015625e-07, x), y)
        result = tl.where(is_zero, x * result, result)
    else:
        result = tl.div_rn(x, y)
    return result


@triton.jit
def reciprocal(x):
    """``1 / x``, to the nearest number; to 1 ulp where that is below 2 ** -126."""
    if is_nvidia():
        # The approximation takes and gives numbers below 2 ** -126 as 0.
        scale = tl.where(tl.abs(x) > 1.0, 2.3283064365386963e-10, 4294967296.0)
        near = approx_reciprocal(x * scale) * scale
        missing = tl.fma(-x, near, 1.0)
        result = tl.where(tl.abs(missing) < 1.0, tl.fma(missing, near, near), near)
    else:
        result = tl.div_rn(1.0, x)
    return result


@triton.jit
def square_root(x):
    """The square root, to the nearest number."""
    if x.dtype == tl.float64:
        result = tl.sqrt(x)
    elif is_nvidia():
        small = x < 1.0
        scaled = x * tl.where(small, 18446744073709551616.0, 1.0)
        inverse = approx_rsqrt(scaled)
        near = scaled * inverse
        missing = tl.fma(-near, near, scaled)
        result = tl.fma(missing, inverse * 0.5, near)
        result = result * tl.where(small, 2.3283064365386963e-10, 1.0)
        result = tl.where((x == 0) | (x == float("inf")), x, result)
    else:
        result = tl.sqrt_rn(x)
    return result


@triton.jit
def mul_rn(x, y):
    """``x * y`` in float32, rounded before any sum: the compiler may contract ``x * y + z``."""
    if is_nvidia():
        result = libdevice.mul_rn(x, y)
    else:
        result = tl.inline_asm_elementwise(
            "v_mul_f32 $0, $1, $2", "=v,v,v", [x, y], tl.float32, is_pure=True, pack=1
        )
    return result
