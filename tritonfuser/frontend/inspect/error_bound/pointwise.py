"""The bound of an elementwise op: its exact function at the ends of the operands' intervals.

A function that rises or falls in each operand is extreme at the corners (R. Moore, R. Kearfott and
M. Cloud, Introduction to Interval Analysis, 2009, chapter 5), which holds for jumps as well: a
floor or a comparison gives both results there. One that repeats may be anything between its corners
where these lie in different pieces of it. A kink or a pole is mostly at zero, so an interval
that has it is looked at there too; a wide one also halfway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import torch

from ....dtypes import Category, DataType
from ....ops.accuracy import Accuracy, Pieces
from .bounded import (
    FLUSHED,
    WithErrorBound,
    distance,
    is_arithmetic,
    magnitude,
    of_either_sign,
    overflowed,
    rounded,
    roundoff,
    shows_no_rounding,
    smallest,
)

WIDE = 2.0**-7
"""An interval of more than this part of a number is looked at in more places."""

Function = Callable[..., torch.Tensor]


def as_operand(given: WithErrorBound, dtype: DataType) -> WithErrorBound:
    """An operand cast to the dtype that an op computes in."""
    category = dtype.info.category
    if category is Category.BOOL and given.is_float:
        across = (given.center.abs() <= given.bound) & (given.bound > 0)
        return WithErrorBound(
            given.center != 0, torch.zeros_like(given.bound).masked_fill(across, _INF)
        )
    if not is_arithmetic(dtype):
        return _as_integer(given, dtype)
    # A doubtful Bool is 0 or 1.
    bound = given.bound.clamp(max=1.0) if given.center.dtype is torch.bool else given.bound
    return rounded(WithErrorBound(given.center.double(), bound), dtype)


def _as_integer(given: WithErrorBound, dtype: DataType) -> WithErrorBound:
    target = dtype.info.torch
    assert target is not None
    return WithErrorBound(given.center.to(target), given.bound)


def applied(
    function: Function,
    operands: Sequence[WithErrorBound | None],
    computed: DataType,
    accuracy: Accuracy,
) -> WithErrorBound:
    """The result of an op before it is stored: what the operands' errors do, and its own.

    Parameters
    ----------
    function : callable
        The op on float64 tensors.
    operands : sequence of WithErrorBound
        As they are cast for the op; None is one that was not given.
    computed : DataType
        What the op computes in.
    accuracy : Accuracy
        Of the op.
    """
    inner = accuracy.inner * roundoff(computed) if is_arithmetic(computed) else 0.0
    widened = [None if x is None else _widened(x, inner) for x in operands]
    center = function(*(None if x is None else x.center for x in operands))
    bound = torch.zeros(center.shape, dtype=torch.float64, device=center.device)
    points = [*product(*map(_points, widened))]
    for point in points:
        bound = torch.maximum(bound, distance(function(*point), center))
    if accuracy.pieces is not None and center.is_floating_point():
        bound = _over_pieces(bound, points, accuracy.pieces)
    present = [x for x in widened if x is not None]
    bound = _decided(center, bound, present)
    if center.is_floating_point() and is_arithmetic(computed):
        if accuracy.chooses:
            signs = torch.stack([_sign_of_zero(x.center).expand(center.shape) for x in present])
            both = (signs > 0).any(0) & (signs < 0).any(0)
            return of_either_sign(WithErrorBound(center, bound), both, computed)
        if computed is DataType.Float and accuracy.ulps:
            stepwise = function(*(None if x is None else _in_float(x.center) for x in operands))
            # lerp(3e38, -3e38, 0.5) has a difference of -6e38 on the way.
            lost = distance(stepwise.float(), center.float()).isinf()
            bound = bound.masked_fill(lost, _INF)
        return _with_own_error(WithErrorBound(center, bound), computed, accuracy)
    return WithErrorBound(center, bound)


_INF = math.inf


def _sign_of_zero(x: torch.Tensor) -> torch.Tensor:
    """1 of 0.0, -1 of -0.0, else 0."""
    return torch.copysign(torch.ones_like(x), x).masked_fill(x != 0, 0.0)


def _in_float(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.dtype is torch.float64 else x


def _widened(operand: WithErrorBound, inner: float) -> WithErrorBound:
    if not inner or not operand.is_float:
        return operand
    return WithErrorBound(operand.center, operand.bound + inner * magnitude(operand.center))


def _points(operand: WithErrorBound | None) -> list[torch.Tensor | None]:
    """Where an operand is looked at: its center, and where its interval may matter most."""
    if operand is None:
        return [None]
    center, bound = operand.center, operand.bound
    if operand.is_exact or not (operand.is_float or center.dtype is torch.bool):
        return [center]
    if center.dtype is torch.bool:
        return [center, center ^ (bound > 0)]
    # In Double the error is no larger than the rounding of a sum.
    step = torch.where(bound > 0, torch.maximum(bound, center.abs() * 2.0**-52), 0.0)
    unknown = bound.isinf()
    step = step.masked_fill(unknown, math.nan)
    found: list[torch.Tensor | None] = [center, center + step, center - step]
    across = (center.abs() <= step) & (center != 0)
    if bool(across.any()):
        found.append(torch.where(across, 0.0, center + step))
    if bool((step > WIDE * center.abs().clamp(min=1.0)).any()):
        found += [center + step / 2, center - step / 2]
    return found


def _over_pieces(
    bound: torch.Tensor, points: Sequence[Sequence[torch.Tensor | None]], pieces: Pieces
) -> torch.Tensor:
    """The bound, with all that the function may be where the points are in different pieces."""
    numbers = torch.stack([pieces.number(*point).expand(bound.shape) for point in points])
    spans = torch.stack([pieces.span(*point).expand(bound.shape) for point in points])
    apart = numbers.amax(0) > numbers.amin(0)  # not so of nan
    return torch.where(apart, torch.maximum(bound, spans.amax(0)), bound)


def _decided(
    center: torch.Tensor, bound: torch.Tensor, operands: Sequence[WithErrorBound]
) -> torch.Tensor:
    """Integers and Bools are sure or not; two floats that may be equal have no known order."""
    if center.is_floating_point():
        whole = [x.bound for x in operands if not x.is_float and x.center.dtype is not torch.bool]
        for doubtful in whole:
            bound = torch.where(doubtful > 0, _INF, bound)
        return bound
    lost = bound > 0
    floats = [x for x in operands if x.is_float]
    for x in operands:
        lost = lost | (x.bound.isinf() if x.center.dtype is not torch.bool else False)
    if center.dtype is torch.bool and len(floats) == 2:
        reach = floats[0].bound + floats[1].bound
        lost = lost | ((floats[0].center - floats[1].center).abs() <= reach) & (reach > 0)
    return torch.zeros_like(bound).masked_fill(lost, _INF)


def _with_own_error(
    given: WithErrorBound, computed: DataType, accuracy: Accuracy
) -> WithErrorBound:
    """The bound with the op's own rounding."""
    unit = roundoff(computed)
    if accuracy.ulps <= 0.5 and not accuracy.coarse:
        if not accuracy.ulps:
            return given
        if computed is DataType.Double:
            return overflowed(WithErrorBound(given.center, _doubly_rounded(given, unit)), computed)
        return rounded(given, computed)
    # One unit in the last place is at most two roundoffs.
    relative = max(2 * accuracy.ulps * unit, accuracy.coarse)
    own = (magnitude(given.center) + given.bound) * relative
    own = own + accuracy.coarse_floor + FLUSHED * smallest(computed)
    own = torch.where(given.center.isfinite(), own, 0.0)
    return overflowed(WithErrorBound(given.center, given.bound + own), computed)


def _doubly_rounded(given: WithErrorBound, unit: float) -> torch.Tensor:
    """The bound of a result in Double, to which the reference may have come by other steps."""
    error = (magnitude(given.center) + given.bound) * unit
    whole = shows_no_rounding(given.center, DataType.Double)
    known = whole & (given.bound == 0) | ~given.center.isfinite()
    return torch.where(known, given.bound, given.bound + error)
