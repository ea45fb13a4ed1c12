"""Polynomials with integer coefficients over numbered variables, and lower bounds of them.

A polynomial maps monomials to coefficients, none zero; a monomial is the sorted tuple of its
variables, each as often as its power: ``3*a*a*b - 2`` is ``{(0, 0, 1): 3, (): -2}``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from math import gcd, prod
from operator import and_

Monomial = tuple[int, ...]
Polynomial = dict[Monomial, int]
Terms = tuple[tuple[Monomial, int], ...]
"""A polynomial that can be hashed."""

Range = Callable[[int], tuple[int, int]]
"""The bounds of a variable, both inclusive."""


def added(a: Mapping[Monomial, int], b: Mapping[Monomial, int], times: int = 1) -> Polynomial:
    """``a + times * b``."""
    total = dict(a)
    for monomial, coefficient in b.items():
        total[monomial] = total.get(monomial, 0) + times * coefficient
        if not total[monomial]:
            del total[monomial]
    return total


def multiplied(a: Mapping[Monomial, int], b: Mapping[Monomial, int]) -> Polynomial:
    """``a * b``."""
    total: Polynomial = {}
    for left, c in a.items():
        for right, d in b.items():
            monomial = tuple(sorted(left + right))
            total[monomial] = total.get(monomial, 0) + c * d
    return {monomial: c for monomial, c in total.items() if c}


def value_at(p: Mapping[Monomial, int], value: Callable[[int], int]) -> int:
    """The value of a polynomial, from that of each variable."""
    return sum(c * prod(value(v) for v in monomial) for monomial, c in p.items())


def in_order(p: Mapping[Monomial, int]) -> list[tuple[Monomial, int]]:
    """The terms as they are written: those of high degree first."""
    return sorted(p.items(), key=lambda term: (-len(term[0]), term[0]))


def terms_of(p: Mapping[Monomial, int]) -> Terms:
    """The terms in a fixed order, for keys of dicts."""
    return tuple(sorted(p.items()))


def content(p: Mapping[Monomial, int]) -> int:
    """The greatest number that divides all coefficients."""
    return reduce(gcd, p.values(), 0)


def divided(p: Mapping[Monomial, int], by: Mapping[Monomial, int]) -> tuple[Polynomial, Polynomial]:
    """``(whole, rest)`` of the polynomial division ``p == by * whole + rest``.

    Where the leading monomial of ``by`` divides a monomial of ``rest``, the coefficient there is in
    ``0 .. c - 1``, with ``c`` the leading coefficient of ``by``.
    """
    lead = max(by, key=lambda monomial: (len(monomial), monomial))
    whole: Polynomial = {}
    rest = dict(p)
    for monomial in sorted(p, key=lambda monomial: (-len(monomial), monomial)):
        quotient = _without(monomial, lead)
        times = rest.get(monomial, 0) // by[lead] if quotient is not None else 0
        if quotient is not None and times:
            whole[quotient] = times
            rest = added(rest, multiplied(by, {quotient: times}), -1)
    return whole, rest


def common_part(monomials: Iterable[Monomial]) -> Monomial:
    """The greatest monomial that divides all."""
    counts = [Counter(monomial) for monomial in monomials]
    return tuple(sorted(reduce(and_, counts).elements())) if counts else ()


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """``monomial / part``, or None where ``part`` does not divide it."""
    left = list(monomial)
    for variable in part:
        if variable not in left:
            return None
        left.remove(variable)
    return tuple(left)


def lower_bound(p: Mapping[Monomial, int], bounds: Range) -> int:
    """A lower bound of ``p`` for variables within ``bounds``.

    Each variable is substituted by its lower bound plus a rest of 0 or more. Then only terms with
    negative coefficients lower the constant term. ``a*b - a`` with ``a, b >= 2`` becomes
    ``2 + (a-2) + 2*(b-2) + (a-2)*(b-2)``, which is 2 or more.
    """
    shifted: Polynomial = {}
    for monomial, coefficient in p.items():
        part: Polynomial = {(): coefficient}
        for variable in monomial:
            part = multiplied(part, {(variable,): 1, (): bounds(variable)[0]})
        shifted = added(shifted, part)
    found = shifted.pop((), 0)
    for monomial, coefficient in shifted.items():
        if coefficient < 0:
            found += coefficient * prod(_span(bounds(v)) for v in monomial)
    return found


def _span(bounds: tuple[int, int]) -> int:
    return bounds[1] - bounds[0]


def never_zero(p: Mapping[Monomial, int]) -> bool:
    """Whether divisibility alone proves that ``p`` is not 0, as for ``4*a + 2``."""
    rest = {monomial: c for monomial, c in p.items() if monomial}
    return bool(rest) and p.get((), 0) % content(rest) != 0
