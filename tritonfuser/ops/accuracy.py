"""``Accuracy``: how far what an expression of an op yields may be from the exact result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Pieces:
    """Where a function of floats turns or jumps over and over, as a sine or a remainder.

    Within a piece it rises or falls, or has one minimum, as lgamma between two poles. What it is at
    the ends of an interval over several pieces says nothing of what it is between them.

    Attributes
    ----------
    number : callable
        Of the operands: the number of the piece that they are in.
    span : callable
        Of the operands: by how much results in different pieces may differ.
    """

    number: Callable[..., Tensor]
    span: Callable[..., Tensor]


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
    pieces : Pieces, optional
        Of a function that repeats.
    of_dtype : bool
        Whether the exact result says something about the dtype itself, as which number is the next
        one: in float64 it is another.
    chooses : bool
        Whether the result is the operand that is the greater or the smaller one. Of zeros of both
        signs, which are equal, it may be either.
    """

    ulps: float = 0.5
    inner: float = 0.0
    coarse: float = 0.0
    coarse_floor: float = 0.0
    pieces: Pieces | None = None
    of_dtype: bool = False
    chooses: bool = False


COARSE = 2.0**-16
"""The relative error that functions may have where only results of 16 bits depend on them."""

EXACT = Accuracy(0.0)
CHOICE = Accuracy(0.0, chooses=True)
ROUNDED = Accuracy()
