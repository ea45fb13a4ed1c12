"""Torch references of ops that torch lacks, or defines differently.

All take tensors of one dtype (``pointwise_make.typed`` has cast them). Integers divided by zero
give what the GPU gives, all bits set, where torch on a CPU raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def _is_bool(x: Tensor) -> bool:
    return x.dtype is torch.bool


def identity_unless_float(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    return function(x) if x.is_floating_point() else x.clone()


# --- one operand -------------------------------------------------------------------------------


def neg(x: Tensor) -> Tensor:
    return x.clone() if _is_bool(x) else torch.neg(x)


def absolute(x: Tensor) -> Tensor:
    return x.clone() if _is_bool(x) else torch.abs(x)


def frac(x: Tensor) -> Tensor:
    return torch.frac(x) if x.is_floating_point() else torch.zeros_like(x)


def relu(x: Tensor) -> Tensor:
    """0.0 also for -0.0, as a comparison has it."""
    return x.clone() if _is_bool(x) else torch.where(x <= 0, 0, x)


def erfcinv(x: Tensor) -> Tensor:
    """Through the quantile of the normal distribution, which is exact in the tails too.

    Of half of the least numbers, that is: for those themselves log(erfc) is solved.
    """
    wide = x.double()
    found = torch.sub(0.0, torch.special.ndtri(wide / 2) / math.sqrt(2))
    least = (wide != 0) & (wide.abs() < HALVED_EXACTLY)
    return torch.where(least, _far_erfcinv(wide), found).to(x.dtype)


HALVED_EXACTLY = 2.0**-1021
"""The least number of which half is a normal one."""


def _far_erfcinv(x: Tensor) -> Tensor:
    """Newton's steps on log(erfc) from about where it is that of the least numbers."""
    y = torch.full_like(x, 27.0)
    for _ in range(4):
        scaled = torch.special.erfcx(y)
        y = y + (scaled.log() - y * y - x.log()) * scaled * (math.sqrt(math.pi) / 2)
    return y


def sigmoid(x: Tensor) -> Tensor:
    """Of complex numbers torch's own is nan on the far left, where it is 0."""
    if not x.is_complex():
        return torch.sigmoid(x)
    left = x.real < 0
    power = torch.exp(torch.where(left, x, -x))
    return torch.where(left, power, 1) / (1 + power)


def silu(x: Tensor) -> Tensor:
    return x * sigmoid(x) if x.is_complex() else torch.nn.functional.silu(x)


def imag(x: Tensor) -> Tensor:
    return x.imag


# --- arithmetic with a meaning for integers and bools --------------------------------------------


def add(x: Tensor, y: Tensor) -> Tensor:
    return x | y if _is_bool(x) else _by_parts(torch.add, x, y)


def sub(x: Tensor, y: Tensor) -> Tensor:
    return x ^ y if _is_bool(x) else _by_parts(torch.sub, x, y)


def _by_parts(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """A sum or difference. Torch on a CPU multiplies complex ones by 1+0j, where inf gives nan."""
    if not x.is_complex():
        return function(x, y)
    return torch.complex(function(x.real, y.real), function(x.imag, y.imag))


def div(x: Tensor, y: Tensor) -> Tensor:
    """Integers truncate."""
    if _is_bool(x):
        return x | ~y
    if x.is_floating_point() or x.is_complex():
        return torch.div(x, y)
    negated = y == -1  # the smallest integer divided by -1 traps on x86
    quotient = torch.div(x, _divisor(y), rounding_mode="trunc")
    return torch.where(y == 0, -1, torch.where(negated, -x, quotient))


def fmod(x: Tensor, y: Tensor) -> Tensor:
    """C's %: the sign of the dividend."""
    if _is_bool(x):
        return ~y & (x | ~x)
    if x.is_floating_point():
        return _float_fmod(x, y)
    return torch.where(y == 0, -1, torch.fmod(x, _divisor(y)))


def remainder(x: Tensor, y: Tensor) -> Tensor:
    """Python's %: the sign of the divisor."""
    if _is_bool(x):
        return fmod(x, y)
    if x.is_floating_point():
        left = _float_fmod(x, y)
        return torch.where((left != 0) & ((left < 0) != (y < 0)), left + y, left)
    return torch.where(y == 0, -1, torch.remainder(x, _divisor(y)))


def _float_fmod(x: Tensor, y: Tensor) -> Tensor:
    """C's ``fmod``; torch's of many elements on a CPU is nan where the quotient overflows."""
    found = torch.fmod(x, y)
    lost = found.isnan() & x.isfinite() & (y != 0) & ~y.isnan()
    if found.device.type != "cpu" or not lost.any():
        return found
    pairs = zip(*(t.expand(found.shape)[lost].tolist() for t in (x, y)), strict=True)
    exact = [math.fmod(*pair) for pair in pairs]
    return found.masked_scatter(lost, torch.tensor(exact, dtype=found.dtype))


def _divisor(y: Tensor) -> Tensor:
    return torch.where((y == 0) | (y == -1), 1, y)


def power(x: Tensor, y: Tensor) -> Tensor:
    """Integers wrap around; a negative exponent gives 0 unless the base is 1 or -1."""
    if _is_bool(x):
        return x | ~y
    if x.is_complex():
        return torch.where(y == 0, 1, torch.pow(x, y))  # torch has nan for 0 ** 0
    if x.is_floating_point():
        return torch.pow(x, y)
    sign = torch.where(y % 2 == 0, 1, -1)
    inverse = torch.where(x == 1, 1, torch.where(x == -1, sign, 0)).to(x.dtype)
    return torch.where(y < 0, inverse, torch.pow(x, y.clamp(min=0)))


def power_by_number(x: Tensor, y: Tensor) -> Tensor:
    """``power`` with one exponent: for 0.5 and -0.5 torch takes roots, of -0 and -inf others."""
    root = _ROOTS.get(y.item()) if x.is_floating_point() else None
    return power(x, y) if root is None else root(x)


_ROOTS = {0.5: torch.sqrt, -0.5: torch.rsqrt}


def lerp(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    if _is_bool(x):
        return torch.where(weight, y, x)
    if not x.is_floating_point():
        return x + weight * (y - x)
    return torch.where(weight.abs() < 0.5, x + weight * (y - x), y - (y - x) * (1 - weight))


def addcmul(i1: Tensor, i2: Tensor, i3: Tensor, alpha: Tensor) -> Tensor:
    return add(i1, i2 * (i3 * alpha))


def gcd(x: Tensor, y: Tensor) -> Tensor:
    """Not negative, also where torch's own is: beside the smallest integer."""
    return torch.gcd(x, y).abs()


# --- choices -------------------------------------------------------------------------------------


def clamp(x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    if low is not None:
        x = torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


def threshold(x: Tensor, limit: Tensor, value: Tensor) -> Tensor:
    return torch.where(x <= limit, value, x)


# --- bits ----------------------------------------------------------------------------------------


def _bits(x: Tensor) -> int:
    return x.element_size() * 8


def shift_left(x: Tensor, y: Tensor) -> Tensor:
    """0 where the shift is not in ``[0, bits)``."""
    valid = (y >= 0) & (y < _bits(x))
    return torch.where(valid, x << torch.where(valid, y, 0), 0)


def shift_right(x: Tensor, y: Tensor) -> Tensor:
    """Arithmetic; the sign alone where the shift is not in ``[0, bits)``."""
    last = _bits(x) - 1
    return x >> torch.where((y >= 0) & (y <= last), y, last)


def shift_right_logical(x: Tensor, y: Tensor) -> Tensor:
    """Filling with zeros; 0 where the shift is not in ``[0, bits)``."""
    bits = _bits(x)
    inside = (y > 0) & (y < bits)
    amount = torch.where(inside, y, 1)
    kept = (torch.ones_like(amount) << (bits - amount)) - 1
    return torch.where(inside, (x >> amount) & kept, torch.where(y == 0, x, 0))
