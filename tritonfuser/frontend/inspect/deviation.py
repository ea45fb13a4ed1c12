"""How far two tensors differ: the worst element, in absolute numbers and in ULPs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Deviation:
    """How a result differs from the reference, which is rounded to the result's dtype to show it.

    Attributes
    ----------
    wrong, undecided, count : int
        Elements that are off by more than they may be, elements that may be anything, and
        elements in all.
    max_abs, max_rel : float
        The largest absolute difference, and the largest one relative to the reference; inf where
        only one of the two is finite or nan.
    index : tuple of int, optional
        The worst element: that with the largest difference for what is allowed. None of an empty
        tensor.
    expected, actual : number, optional
        What should be there, and what is.
    ulps : float, optional
        Their distance in units of the last place of the expected number; None where the dtype is
        not a float.
    limit : float
        How far the worst element may be off.
    """

    wrong: int
    undecided: int
    count: int
    max_abs: float
    max_rel: float
    index: tuple[int, ...] | None
    expected: Any
    actual: Any
    ulps: float | None
    limit: float

    @property
    def ok(self) -> bool:
        """Whether every element is as near as it has to be."""
        return not self.wrong


NONE = Deviation(0, 0, 0, 0.0, 0.0, None, None, None, None, 0.0)
"""Of tensors without elements."""


def deviation(actual: torch.Tensor, expected: torch.Tensor, limit: torch.Tensor) -> Deviation:
    """Compare tensors of one shape; nan equals nan, and infinities of one sign each other.

    An element is right if it is as near to the reference as ``limit`` says, or if it is the
    reference rounded to its dtype. Packed numbers of four bits are compared byte by byte.
    """
    if not actual.numel():
        return NONE
    expected, limit = expected.to(actual.device), limit.to(actual.device)
    if actual.dtype is torch.float4_e2m1fn_x2:
        # Pairs of numbers in a byte, of which torch converts none.
        actual, expected = actual.view(torch.uint8), expected.view(torch.uint8)
    wanted, got = _wide(expected.to(actual.dtype)), _wide(actual)
    apart = _apart(got, wanted)
    off = torch.minimum(apart, _apart(got, _wide(expected)))
    undecided = limit.isinf()
    wrong = (off > limit) & ~undecided
    size = wanted.abs().double().nan_to_num(nan=0.0, posinf=0.0)
    relative = torch.where(apart == 0, 0.0, apart / size).masked_fill(undecided, 0.0)
    apart = apart.masked_fill(undecided, 0.0)
    flat = int(_badness(off.masked_fill(undecided, 0.0), limit).argmax())
    where = _unraveled(flat, tuple(got.shape))
    return Deviation(
        wrong=int(wrong.sum()),
        undecided=int(undecided.sum()),
        count=actual.numel(),
        max_abs=float(apart.max()),
        max_rel=float(relative.max()),
        index=where,
        expected=wanted[where].item(),
        actual=got[where].item(),
        ulps=_ulps(float(apart.flatten()[flat]), float(size.flatten()[flat]), actual.dtype),
        limit=float(limit.flatten()[flat]),
    )


def _badness(off: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
    """Errors for what is allowed; where nothing is, the largest error is the worst."""
    if not bool(limit.any()):
        return off
    return torch.where(off == 0, 0.0, off / limit)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """In numbers that can be subtracted without another rounding."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    if tensor.is_floating_point():
        return tensor.double()
    return tensor.to(torch.int64)


def _apart(got: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Absolute differences in float64; inf where there is none to speak of."""
    same = (got == wanted) | (got.isnan() & wanted.isnan())
    if got.is_complex():
        # Where one part is infinite the other is still compared.
        found = torch.hypot(_apart(got.real, wanted.real), _apart(got.imag, wanted.imag))
    else:
        found = (got.double() - wanted.double()).abs()
        if not got.is_floating_point():
            # float64 does not tell all great integers apart.
            found = found.clamp(min=1.0)
    return torch.where(same, 0.0, found.nan_to_num(nan=math.inf, posinf=math.inf))


def _unraveled(flat: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    found: list[int] = []
    for size in reversed(sizes):
        flat, place = divmod(flat, size)
        found.append(place)
    return tuple(reversed(found))


def _ulps(apart: float, size: float, dtype: torch.dtype) -> float | None:
    if not (dtype.is_floating_point or dtype.is_complex):
        return None
    if math.isinf(apart):
        return math.inf
    return apart / ulp(size, dtype)


def ulp(size: float, dtype: torch.dtype) -> float:
    """The distance between neighbouring numbers of a floating-point dtype around ``size``."""
    info = torch.finfo(dtype)
    exponent = math.frexp(max(size, info.smallest_normal))[1] - 1
    return math.ldexp(info.eps, exponent)
