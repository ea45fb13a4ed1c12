"""The bounds of reductions and scans.

A sum of ``n`` numbers is off by at most ``r u`` times the sum of the absolute values, where ``r``
is how many additions a summand goes through (N. Higham, Accuracy and Stability of Numerical
Algorithms, 2nd edition, 2002, section 4.2). Kernels add the elements of a tile in pairs, and tiles
one after the other: ``log2(n)`` additions, and one for each tile.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ....dtypes import DataType
from .bounded import (
    WithErrorBound,
    distance,
    magnitude,
    of_either_sign,
    overflowed,
    roundoff,
    shows_no_rounding,
    smallest,
    underflow,
)

TILE = 64
"""Elements of a sum at least that a kernel adds in pairs before it adds them to the others."""

HIDDEN = 2.0**-40
"""Share of a sum in float64 that is lost to rounding at most, for up to 8192 summands."""

Along = Callable[[torch.Tensor], torch.Tensor]
"""Joins the elements of float64 tensors as an op does: over dims, or all those before along one."""


def additions(count: int) -> float:
    """How many additions a summand of ``count`` goes through at most."""
    return math.ceil(math.log2(count)) + count / TILE if count > 1 else 0.0


def summed(given: WithErrorBound, along: Along, count: int, computed: DataType) -> WithErrorBound:
    """The sums of ``count`` elements each; exact where no partial sum needs to be rounded."""
    center, size = along(given.center), along(magnitude(given.center))
    carried = along(given.bound)
    unit = roundoff(computed)
    own = additions(count) * unit * (size + carried)
    # Multiples of a number, of which the sum is not too many times that number.
    grid = unit * torch.exp2(torch.frexp(size).exponent.double())
    own = torch.where(_all_multiples(given.center, along, grid, size), 0.0, own)
    own = torch.where(center.isfinite(), own, 0.0)
    found = overflowed(WithErrorBound(center, carried + own), computed)
    # Of -0.0 alone: a kernel may begin with 0.0, and with the first of them.
    minus = ((given.center == 0) & given.center.signbit()).double()
    both = (along(minus) > 0) & (along(1 - minus) == 0)
    return of_either_sign(partly_overflowed(found, center, size, computed), both, computed)


def _all_multiples(
    x: torch.Tensor, along: Along, grid: torch.Tensor, size: torch.Tensor
) -> torch.Tensor:
    """Whether all summands are multiples of one grid for all results, the coarsest one."""
    if not size.numel():
        return torch.ones_like(size, dtype=torch.bool)
    coarsest = grid.max().clamp(min=5e-324)
    uneven = torch.fmod(magnitude(x), coarsest) != 0
    return along(uneven.double()) == 0


def partly_overflowed(
    found: WithErrorBound, center: torch.Tensor, size: torch.Tensor, computed: DataType
) -> WithErrorBound:
    """Undecided where partial sums may overflow otherwise than the sum does.

    A finite sum is in doubt where all summands of one sign may overflow; an infinite one where
    those of the other sign may.

    Parameters
    ----------
    center, size : Tensor
        The sums of the summands, and of their magnitudes, before any overflow.
    """
    target = computed.info.torch
    assert target is not None
    largest, apart = torch.finfo(target).max, magnitude(center)
    # The summands of the other sign; in the sums one that is far larger hides them.
    others = (size - apart) / 2 + HIDDEN * size
    risky = torch.where(apart <= largest, size > largest, others > largest)
    return WithErrorBound(found.center, found.bound.masked_fill(risky, math.inf))


def multiplied(
    given: WithErrorBound, along: Along, count: int, computed: DataType
) -> WithErrorBound:
    """The products of ``count`` elements each, in any order."""
    center, size = along(given.center), along(given.center.abs())
    grown = along(given.center.abs() + given.bound)
    target = computed.info.torch
    assert target is not None
    whole = shows_no_rounding(center, computed)
    own = count * roundoff(computed) * grown.nan_to_num(nan=0.0, posinf=0.0)
    own = torch.where(whole & (grown == size), 0.0, own)
    bound = distance(grown, size) + torch.where(center.isfinite(), own, 0.0)
    peak = along(magnitude(given.center + given.bound).clamp(min=1.0))
    shrunk = along(given.center.abs().masked_fill(given.center == 0, 1.0).clamp(max=1.0))
    bound = bound + torch.where(shrunk < smallest(computed), smallest(computed) * peak, 0.0)
    risky = (peak > torch.finfo(target).max) & center.isfinite()
    # Of a factor that may be any number nothing is known: the product of flags is 0.
    risky = risky | (along((~given.bound.isinf()).double()) == 0)
    return overflowed(WithErrorBound(center, bound.masked_fill(risky, math.inf)), computed)


def chosen(given: WithErrorBound, along: Along, dtype: DataType) -> WithErrorBound:
    """The greatest or the smallest elements: as far off as the interval's ends."""
    center, zero = along(given.center), given.center == 0
    step = given.bound.masked_fill(given.bound.isinf(), math.nan)
    ends = [distance(along(given.center + side * step), center) for side in (-1.0, 1.0)]
    signed = torch.copysign(torch.ones_like(given.center), given.center) * smallest(dtype)
    both = along(torch.where(zero, signed, given.center)) == along(
        torch.where(zero, -signed, given.center)
    )
    return of_either_sign(WithErrorBound(center, torch.maximum(*ends)), both, dtype)


def moments(
    given: WithErrorBound, dims: tuple[int, ...], count: int, dtype: DataType
) -> list[WithErrorBound]:
    """Means, sums of squared deviations and counts.

    Moments of parts are joined by the formulas of T. Chan, G. Golub and R. LeVeque, Updating
    formulae and a pairwise algorithm for computing sample variances, 1979. A mean that is off by d
    adds 2 d times the sum of absolute deviations, and n d ** 2.
    """
    x, n = given.center, max(count, 1)

    def add(t: torch.Tensor) -> torch.Tensor:
        return torch.sum(t, dims, keepdim=True)

    mean = add(x) / n
    unit = (additions(count) + 3) * roundoff(dtype)
    size = add(magnitude(x))
    own = unit * size / n + (additions(count) + 3) * underflow(size, dtype)
    own = torch.where(mean.isfinite(), own, 0.0)
    drift = add(given.bound) / n + own
    apart = (x - mean).abs()
    squares = add(apart**2)
    each = given.bound + drift
    error = add(2 * magnitude(apart) * each + each**2) + unit * magnitude(squares)
    # A mean that is infinite is nan where moments of parts were joined: inf - inf.
    drifts = drift.masked_fill(mean.isinf(), math.inf)
    flat = [torch.sum(t, dims) for t in (mean, drifts, squares, error)]
    total = torch.sum(size, dims)
    found = [
        partly_overflowed(overflowed(WithErrorBound(*pair), dtype), flat[0], total, dtype)
        for pair in (flat[:2], flat[2:])
    ]
    counts = torch.full(flat[0].shape, count, dtype=torch.int64, device=x.device)
    return [*found, WithErrorBound(counts, torch.zeros_like(flat[0]))]
