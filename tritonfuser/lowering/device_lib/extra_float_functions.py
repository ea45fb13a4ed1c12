"""Functions of floats that libdevice lacks, in terms of those that it has."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def erfcinv(x):
    """Inverse of erfc on (0, 2): erfinv in the middle, Halley steps on log(erfc) in the tails.

    Where erfc itself is below the normal numbers it has too few digits to tell how far it is off.
    """
    tail = tl.minimum(x, 2.0 - x)
    log_tail = libdevice.log(tail)
    # Half of the smallest number is 0.
    t = libdevice.sqrt(1.3862943611198906 - 2.0 * log_tail)
    guess = (2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481))
    y = 0.7071067811865476 * (t - guess)
    for _ in tl.static_range(2):
        scaled = libdevice.erfcx(y)  # erfc(y) = exp(-y ** 2) * scaled
        slope = 1.1283791670955126 / scaled
        error = libdevice.log(scaled) - y * y - log_tail
        y += error / (slope + error * (0.5 * slope - y))
    y = tl.where(tail == 0, float("inf"), tl.where(tail < 0, float("nan"), y))
    near = tl.abs(1.0 - x) <= 0.5
    middle = libdevice.erfinv(tl.where(near, 1.0 - x, 0.0))
    result = tl.where(near, middle, tl.where(x < 1, y, -y))
    return tl.where(x == x, result, x)


@triton.jit
def float_remainder(x, y):
    """Remainder of a division of floats with the sign of the divisor."""
    rest = libdevice.fmod(x, y)
    return tl.where(tl.where(y < 0, rest > 0, rest < 0), rest + y, rest)


@triton.jit
def lerp(x, y, weight):
    """Linear interpolation, exact at both ends."""
    step = y - x
    near = (weight > -0.5) & (weight < 0.5)
    return tl.where(near, x + weight * step, y - step * (1.0 - weight))
