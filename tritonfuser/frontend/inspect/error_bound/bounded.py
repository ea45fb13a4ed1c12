"""A tensor in float64 with a bound on the error of each element, and its rounding to a dtype.

``u`` is the unit roundoff of a dtype, half the distance from 1 to the next number. A rounded sum,
product or quotient is ``x (1 + d)`` with ``|d| <= u`` (N. Higham, Accuracy and Stability of
Numerical Algorithms, 2nd edition, 2002, section 2.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ....dtypes import REDUCED_FLOATS, Category, DataType

FLUSHED = 256.0
"""Functions flush numbers below the smallest normal one; a factor of ``x`` may lie outside."""


@dataclass(frozen=True, eq=False)
class WithErrorBound:
    """What a kernel should have computed, and how far from it each element may be.

    Attributes
    ----------
    center : Tensor
        float64, or the integers and Bools themselves.
    bound : Tensor
        float64, of the same shape. 0 is exact; inf is undecided: a comparison, a rounding to an
        integer or an overflow on the way could go either way, and any number is right.
    """

    center: torch.Tensor
    bound: torch.Tensor

    @property
    def is_float(self) -> bool:
        return self.center.is_floating_point()

    @property
    def is_exact(self) -> bool:
        """Whether no element has an error."""
        return not bool(self.bound.any())


def exact(given: torch.Tensor, dtype: DataType) -> WithErrorBound:
    """Numbers of a dtype, without errors; those that can be added are widened to float64."""
    center = given.double() if is_arithmetic(dtype) else given
    return WithErrorBound(
        center, torch.zeros(center.shape, dtype=torch.float64, device=center.device)
    )


def is_arithmetic(dtype: DataType) -> bool:
    """Whether numbers of a dtype can be added in float64: not those of four bits, or exponents."""
    is_float = dtype.info.category is Category.FLOAT
    return is_float and dtype in (DataType.Double, DataType.Float, *REDUCED_FLOATS)


def roundoff(dtype: DataType) -> float:
    """The unit roundoff; of Double twice that, since the reference is rounded as well."""
    found = dtype.info.torch
    assert found is not None
    eps = torch.finfo(found).eps
    return eps if dtype is DataType.Double else eps / 2


def smallest(dtype: DataType) -> float:
    """The smallest number of full precision."""
    found = dtype.info.torch
    assert found is not None
    return torch.finfo(found).smallest_normal


def underflow(size: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """What a result may lose to underflow: half of the least number, where there is anything."""
    return torch.zeros_like(size).masked_fill(size > 0, smallest(dtype) * roundoff(dtype))


def shows_no_rounding(center: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """Where a result that is computed in float64 fits a dtype, so that nothing was rounded.

    In Double what is lost is not seen, since the center is rounded as well. There a result is taken
    for exact that needs no more bits than Float has.
    """
    target = torch.float32 if dtype is DataType.Double else dtype.info.torch
    assert target is not None
    return center.to(target).double() == center


def distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Absolute differences in float64; inf where only one is nan or they are infinitely apart.

    The difference of complex numbers is the larger of those of their parts.
    """
    if one.is_complex():
        return torch.maximum(distance(one.real, other.real), distance(one.imag, other.imag))
    same = (one == other) | (one.isnan() & other.isnan())
    apart = (one.double() - other.double()).abs().nan_to_num(nan=math.inf, posinf=math.inf)
    return torch.where(same, 0.0, apart)


def rounded(given: WithErrorBound, dtype: DataType) -> WithErrorBound:
    """A float rounded to nearest in a dtype, by one operation.

    The center of a wide dtype stays as it is, so that a bound measures all roundings; that of a
    16-bit or 8-bit one is rounded, since most errors vanish in the rounding.
    """
    target = dtype.info.torch
    assert target is not None
    center, bound = given.center, given.bound
    here = center.to(target).double()
    if dtype in REDUCED_FLOATS:
        return _snapped(center, bound, here, target)
    size = magnitude(center) + bound
    error = size * roundoff(dtype) + underflow(size, dtype)
    known = distance(here, center).masked_fill(here.isinf(), 0.0)
    return overflowed(WithErrorBound(center, torch.where(bound == 0, known, bound + error)), dtype)


def of_either_sign(found: WithErrorBound, both: torch.Tensor, dtype: DataType) -> WithErrorBound:
    """Zeros chosen among zeros of ``both`` signs, which are equal: 0.0 or -0.0 may come of them."""
    least = found.bound.clamp(min=smallest(dtype))
    return WithErrorBound(found.center, torch.where((found.center == 0) & both, least, found.bound))


def stored(given: WithErrorBound, computed: DataType, dtype: DataType) -> WithErrorBound:
    """What an op computes in one dtype, in the dtype of its result."""
    if dtype is computed or given.center.dtype is dtype.info.torch:
        return given
    if is_arithmetic(dtype):
        wide = WithErrorBound(given.center.double(), given.bound)
        # There is no way from other dtypes to narrow ones but through Float.
        through = dtype in REDUCED_FLOATS and computed is not DataType.Float
        return rounded(rounded(wide, DataType.Float) if through else wide, dtype)
    target = dtype.info.torch
    assert target is not None
    center = given.center.to(target)
    if not given.is_float:
        return WithErrorBound(center, given.bound)
    ends = [(given.center + side * given.bound).to(target) for side in (-1.0, 1.0)]
    lost = (ends[0] != center) | (ends[1] != center) | given.bound.isinf()
    return WithErrorBound(center, torch.zeros_like(given.bound).masked_fill(lost, math.inf))


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """Absolute values in float64; 0 for nan and infinities, which are not rounded."""
    return x.double().abs().nan_to_num(nan=0.0, posinf=0.0)


def _snapped(
    center: torch.Tensor, bound: torch.Tensor, here: torch.Tensor, target: torch.dtype
) -> WithErrorBound:
    """The neighbours that the ends of the interval are rounded to."""
    ends = [(center + side * bound).to(target).double() for side in (-1.0, 1.0)]
    apart = torch.maximum(distance(ends[0], here), distance(ends[1], here))
    return WithErrorBound(
        here, torch.where(bound == 0, 0.0, apart.masked_fill(bound.isinf(), math.inf))
    )


def overflowed(given: WithErrorBound, dtype: DataType) -> WithErrorBound:
    """Infinite where every number of the interval overflows; undecided where some do."""
    target = dtype.info.torch
    low, high = ((given.center + side * given.bound).to(target) for side in (-1.0, 1.0))
    finite = given.center.isfinite() & given.bound.isfinite()
    beyond = finite & low.isinf() & (low == high)
    either = finite & ~beyond & (low.isinf() | high.isinf())
    center = torch.where(beyond, low.double(), given.center)
    bound = given.bound.masked_fill(beyond, 0.0).masked_fill(either, math.inf)
    return WithErrorBound(center, bound)
