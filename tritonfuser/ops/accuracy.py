"""``Accuracy``: how far what an expression of an op yields may be from the exact result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far the expression of a pointwise op may be from the exact result.

    Attributes
    ----------
    ulps : float
        Error of the result in units of its last place; 0.5 is a correctly rounded result, 0 an
        exact one. For libdevice: CUDA Math API, "Mathematical Functions, Accuracy".
    inner : float
        Roundings on the way that count relative to the operands, not to the result.
    coarse : float
        Relative error where only results of 16 bits depend on the op.
    coarse_floor : float
        Absolute error to be added then.
    """

    ulps: float = 0.5
    inner: float = 0.0
    coarse: float = 0.0
    coarse_floor: float = 0.0


COARSE = 2.0**-16
"""The relative error that functions may have where only results of 16 bits depend on them."""

EXACT = Accuracy(0.0)
ROUNDED = Accuracy()
