"""Extents that a definition does not know: polynomials over names, until a run gives the numbers.

They say what is certain of shapes while ops are recorded, as that ``i0 + i0`` is ``2*i0``. At a run
all extents are numbers, or a ``Size``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

_Monomial = tuple[str, ...]
_Terms = tuple[tuple[_Monomial, int], ...]


@dataclass(frozen=True, slots=True)
class SymbolicExtent:
    """A polynomial with integer coefficients over names. ``symbol`` makes one of a name.

    A quotient that is no polynomial is a name itself, as ``(i0*i1)//(c0)``. Two are equal where
    they are the same polynomial. Arithmetic whose result is a number gives an int.

    Attributes
    ----------
    terms : tuple of (names, coefficient)
        Names are sorted, each as often as its power; terms are in order, no coefficient is 0.
    """

    terms: _Terms

    def __add__(self, other: Extent) -> Extent:
        total = dict(self.terms)
        for names, count in _terms(other):
            total[names] = total.get(names, 0) + count
        return _made(total)

    __radd__ = __add__

    def __mul__(self, other: Extent) -> Extent:
        total: dict[_Monomial, int] = {}
        for left, c in self.terms:
            for right, d in _terms(other):
                names = tuple(sorted((*left, *right)))
                total[names] = total.get(names, 0) + c * d
        return _made(total)

    __rmul__ = __mul__

    def __sub__(self, other: Extent) -> Extent:
        return self + other * -1

    def __rsub__(self, other: Extent) -> Extent:
        return self * -1 + other

    def __floordiv__(self, other: Extent) -> Extent:
        return quotient(self, other)

    def __str__(self) -> str:
        parts: list[str] = []
        for names, count in self.terms:
            factors = [f"{count}"] if abs(count) != 1 or not names else ["-"] if count < 0 else []
            parts.append("*".join([*factors, *names]).replace("-*", "-"))
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


Extent = Union[int, SymbolicExtent]


def symbol(name: str) -> SymbolicExtent:
    """The extent of that name."""
    return SymbolicExtent((((name,), 1),))


def quotient(whole: Extent, part: Extent) -> Extent:
    """``whole // part``: a polynomial where ``part`` is one term that divides all of ``whole``."""
    divisor = _terms(part)
    if len(divisor) == 1:
        names, count = divisor[0]
        terms = [(_without(own, names), own_count, count) for own, own_count in _terms(whole)]
        if all(left is not None and c % d == 0 for left, c, d in terms):
            return _made({left: c // d for left, c, d in terms if left is not None})
    return symbol(
        f"({whole})//({part})" if isinstance(part, SymbolicExtent) else f"({whole})//{part}"
    )


def _terms(value: Extent) -> _Terms:
    if isinstance(value, SymbolicExtent):
        return value.terms
    return (((), int(value)),) if value else ()


def _made(total: Mapping[_Monomial, int]) -> Extent:
    terms = [(names, count) for names, count in total.items() if count]
    if all(not names for names, _ in terms):
        return sum(count for _, count in terms)
    return SymbolicExtent(tuple(sorted(terms, key=lambda term: (-len(term[0]), term[0]))))


def _without(names: _Monomial, part: _Monomial) -> _Monomial | None:
    """``names / part``, or None where that is no monomial."""
    left = list(names)
    for name in part:
        if name not in left:
            return None
        left.remove(name)
    return tuple(left)
