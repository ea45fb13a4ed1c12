"""Symbolic extents of a recorded definition (sympy), before a run gives the numbers.

They say what is certain of shapes while ops are recorded, as that ``i0 + i0`` is ``2*i0``. At a run
all extents are numbers, or a ``Size``. sympy is loaded when the first such extent is made: it takes
a quarter of a second, and a definition of known sizes does without.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Union


@dataclass(frozen=True, slots=True, repr=False)
class SymbolicExtent:
    """A polynomial with integer coefficients over names. ``symbol`` makes one of a name.

    A quotient that is no polynomial is a name itself, as ``(i0*i1)//(c0)``. Two are equal where
    they are the same polynomial. Arithmetic whose result is a number gives an int.

    Attributes
    ----------
    expression : sympy.Expr
        Expanded.
    """

    expression: Any

    def __add__(self, other: Extent) -> Extent:
        return _made(self.expression + _plain(other))

    __radd__ = __add__

    def __mul__(self, other: Extent) -> Extent:
        return _made(self.expression * _plain(other))

    __rmul__ = __mul__

    def __sub__(self, other: Extent) -> Extent:
        return _made(self.expression - _plain(other))

    def __rsub__(self, other: Extent) -> Extent:
        return _made(_plain(other) - self.expression)

    def __floordiv__(self, other: Extent) -> Extent:
        return quotient(self, other)

    def __str__(self) -> str:
        return str(self.expression)

    __repr__ = __str__


Extent = Union[int, SymbolicExtent]


LONGEST_NAME = 400
"""Characters of the name of a symbol. What slices of slices keep is named by what they are slices
of, so names of a cat of two slices double with every step."""


def symbol(name: str) -> SymbolicExtent:
    """The extent of that name; of a name that is too long, its beginning and its digest."""
    if len(name) > LONGEST_NAME:
        digest = hashlib.blake2b(name.encode(), digest_size=12).hexdigest()
        name = f"{name[: LONGEST_NAME // 4]}...{digest}"
    return SymbolicExtent(_sympy().Symbol(name, integer=True, nonnegative=True))


def quotient(whole: Extent, part: Extent) -> Extent:
    """``whole // part``: a polynomial where ``part`` divides ``whole``."""
    sympy = _sympy()
    ratio = sympy.cancel(sympy.Integer(1) * _plain(whole) / _plain(part))
    numerator, denominator = sympy.fraction(sympy.together(ratio))
    if denominator == 1:
        return _made(numerator)
    return symbol(
        f"({whole})//({part})" if isinstance(part, SymbolicExtent) else f"({whole})//{part}"
    )


@cache
def _sympy() -> Any:
    return import_module("sympy")


def _plain(value: Extent) -> Any:
    return value.expression if isinstance(value, SymbolicExtent) else int(value)


def _made(expression: Any) -> Extent:
    expanded = _sympy().expand(expression)
    return int(expanded) if expanded.is_Integer else SymbolicExtent(expanded)
