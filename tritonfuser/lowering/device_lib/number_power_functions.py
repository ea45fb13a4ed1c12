"""Powers whose exponent is a number, as torch has them."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .integer_functions import int_pow
from .rounded_functions import reciprocal


@triton.jit
def power_by_number(power, x, y):
    """``x ** y`` as torch has it for one exponent: of 0.5 and -0.5 it is the root, or 1 / root.

    They have the sign of a zero, and minus infinity has none.
    """
    x = tl.where(power == power, x, x)  # it may be a number
    edge = tl.where(x == 0, libdevice.copysign(power, x), float("nan"))
    return tl.where((tl.abs(y) == 0.5) & (x <= 0), edge, power)


@triton.jit
def inverse_power(x, n: tl.constexpr):
    """``x ** -n`` for 1 and 2, as torch has it where the exponent is a number."""
    if x.dtype.is_int():
        found = int_pow(x, tl.full(x.shape, -n, x.dtype))
    else:
        y = x if n == 1 else x * x
        found = reciprocal(y) if x.dtype == tl.float32 else 1.0 / y
    return found
