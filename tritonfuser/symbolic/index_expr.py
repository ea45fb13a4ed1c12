"""Integer index expressions over kernel axes: affine sums of mixed-radix digits.

An index is ``const + sum(coefficient * digit)`` where a digit is ``base // div % mod`` of an axis,
of a value read at run time, or of a whole sub-expression. The few rules below keep one normal
form, so that equal indices compare equal: ``(x // 768) * 768 + x % 768`` is ``x``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Union

from ..lazy import cached_property
from .loaded_index import LoadedIndex
from .queries import (
    assume_max,
    common_factor,
    is_known_equal,
    is_known_less,
    is_known_multiple,
    known_divmod,
    min_by_hint,
)
from .sizes import hint, is_size

# --- what an index is made of ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop or grid variable of a kernel: ``0 <= name < extent``."""

    name: str
    extent: int


def extent(axes: Iterable[Axis]) -> int:
    """The number of positions of a nest of axes; 1 without axes."""
    return prod(axis.extent for axis in axes)


@dataclass(frozen=True)
class Bounded:
    """An expression that is in ``0 .. extent - 1`` wherever it is used: a guard checks that."""

    expr: Affine
    extent: int

    def __hash__(self) -> int:
        return hash((self.expr, self.extent))

    def __eq__(self, other: object) -> bool:
        # By hash first: extents that vary may be equal without being the same expression.
        if not isinstance(other, Bounded) or hash(self) != hash(other):
            return False
        return (self.expr, self.extent) == (other.expr, other.extent)


@dataclass(frozen=True)
class Digit:
    """``base // div % mod``; ``mod`` None means no modulus."""

    base: Base
    div: int = 1
    mod: int | None = None

    @cached_property
    def _hash(self) -> int:
        return hash((self.base, self.div, self.mod))

    def __hash__(self) -> int:
        # Cached: expressions share their parts, and are keys of many dicts.
        return self._hash

    def __eq__(self, other: object) -> bool:
        # By hash first: sizes that vary may be equal without being the same expression.
        if not isinstance(other, Digit) or self._hash != other._hash:
            return False
        return (self.base, self.div, self.mod) == (other.base, other.div, other.mod)

    @cached_property
    def order(self) -> tuple[str, int, int, str]:
        """Sort key of terms, the same in every process."""
        if isinstance(self.base, Axis):
            name = f"a{self.base.name}"
        else:
            name = f"z{_digest(self.base)}"
        varies = is_size(self.div) or is_size(self.mod)
        mod = 0 if self.mod is None else hint(self.mod)
        return name, -hint(self.div), mod, f"{self.div} {self.mod}" if varies else ""

    @property
    def inner(self) -> Affine | None:
        """The expression that it is a digit of; None for an axis and for a loaded value."""
        if isinstance(self.base, Bounded):
            return self.base.expr
        return self.base if isinstance(self.base, Affine) else None

    @cached_property
    def range(self) -> tuple[int, int] | None:
        """Inclusive bounds, or None where they are not known."""
        if isinstance(self.base, Axis | Bounded):
            return 0, self._up_to(self.base.extent)
        if self.mod is not None:
            return 0, self.mod - 1
        if isinstance(self.base, LoadedIndex):
            extent = self.base.extent
            return None if extent is None else (0, self._up_to(extent))
        bounds = self.base.range
        return None if bounds is None else (bounds[0] // self.div, bounds[1] // self.div)

    def _up_to(self, extent: int) -> int:
        """The largest value of the digit where its base is below ``extent``."""
        top = assume_max(extent - 1, 0) // self.div
        return top if self.mod is None else min_by_hint(top, self.mod - 1)


@dataclass(frozen=True)
class Affine:
    """``const + sum(coefficient * digit)``, terms in a fixed order, none zero."""

    terms: tuple[tuple[Digit, int], ...] = ()
    const: int = 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.const))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Affine) or self._hash != other._hash:
            return False
        return (self.terms, self.const) == (other.terms, other.const)

    @cached_property
    def digest(self) -> str:
        """A short text that stands for the expression."""
        return _short(f"{[(item.order, c) for item, c in self.terms]} {self.const}")

    @cached_property
    def range(self) -> tuple[int, int] | None:
        """Inclusive bounds, or None where a value read at run time is among the terms."""
        low = high = self.const
        for digit, coefficient in self.terms:
            bounds = digit.range
            if bounds is None:
                return None
            ends = (bounds[0] * coefficient, bounds[1] * coefficient)
            if not is_known_less(-1, coefficient):
                if not is_known_less(coefficient, 0):
                    return None
                ends = ends[::-1]
            low, high = low + ends[0], high + ends[1]
        return low, high

    def __add__(self, other: Affine | int) -> Affine:
        if not isinstance(other, Affine):
            return Affine(self.terms, self.const + other)
        if not self.terms or not other.terms:  # both are in normal form
            return Affine(self.terms or other.terms, self.const + other.const)
        sums = dict(self.terms)
        for digit, coefficient in other.terms:
            sums[digit] = sums.get(digit, 0) + coefficient
        return _normal(sums, self.const + other.const)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + other * -1

    def __mul__(self, factor: int) -> Affine:
        if not self.terms:
            return Affine((), self.const * factor)
        if is_known_equal(factor, 1):
            return self
        if is_known_equal(factor, 0):
            return Affine()
        return Affine(tuple([(d, c * factor) for d, c in self.terms]), self.const * factor)

    def __floordiv__(self, n: int) -> Affine:
        found = _quotient(self, n)
        return _opaque_quotient(self, n) if found is None else found

    def __mod__(self, n: int) -> Affine:
        found = _residue(self, n)
        return _opaque_residue(self, n) if found is None else found

    def split(self, n: int) -> tuple[Affine, Affine]:
        """``(whole, rest)`` with ``self == n * whole + rest``.

        Every coefficient of ``rest`` is in ``1 .. n - 1``. Where coefficients are sizes, ``whole``
        has only what ``n`` is proved to divide out of them.
        """
        return self._split(n, known_divmod)

    def _split(
        self, n: int, divide: Callable[[int, int], tuple[int, int]]
    ) -> tuple[Affine, Affine]:
        const, left = divide(self.const, n)
        parts = [(digit, *divide(coefficient, n)) for digit, coefficient in self.terms]
        # Often all terms go to one side, and stay in normal form there.
        if not [over for _, _, over in parts if type(over) is not int or over]:
            return Affine(tuple([(d, whole) for d, whole, _ in parts]), const), constant(left)
        if not [whole for _, whole, _ in parts if type(whole) is not int or whole]:
            return constant(const), Affine(self.terms, left)
        whole = {digit: whole for digit, whole, _ in parts}
        return _normal(whole, const), _normal({digit: over for digit, _, over in parts}, left)

    def floored(self, n: int) -> tuple[Affine, Affine]:
        """As ``split`` with ``divmod``: no coefficient of ``rest`` is negative."""
        return self._split(n, divmod)

    def axes(self) -> frozenset[Axis]:
        """The axes the value depends on, those inside sub-expressions too."""
        return self._axes

    @cached_property
    def _axes(self) -> frozenset[Axis]:
        found: set[Axis] = set()
        for digit, _ in self.terms:
            inner = digit.inner
            if inner is not None:
                found |= inner.axes()
            elif isinstance(digit.base, Axis):
                found.add(digit.base)
        return frozenset(found)

    def loaded(self) -> tuple[LoadedIndex, ...]:
        """The run-time values that the index depends on, each once."""
        return self._loaded

    @cached_property
    def _loaded(self) -> tuple[LoadedIndex, ...]:
        found: list[LoadedIndex] = []
        for digit, _ in self.terms:
            inner = digit.inner
            if inner is not None:
                found.extend(inner.loaded())
            elif isinstance(digit.base, LoadedIndex):
                found.append(digit.base)
        return tuple(dict.fromkeys(found))


Base = Union[Axis, LoadedIndex, Bounded, Affine]
"""What a digit may be taken of."""


def constant(value: int) -> Affine:
    """A number as an expression."""
    return Affine((), value)


def digit(base: Base, div: int = 1, mod: int | None = None) -> Affine:
    """``base // div % mod`` as an expression, in normal form."""
    if isinstance(base, Bounded) and not base.expr.terms:
        whole = constant(base.expr.const) // div
        return whole if mod is None else whole % mod
    if isinstance(base, Axis | Bounded):
        span = -(-base.extent // div)
        if mod is None or is_known_less(span - 1, mod):
            mod = span
        if is_known_less(mod, 2):
            return Affine()
    elif isinstance(base, Affine) and is_known_equal(div, 1) and (mod is None or _fits(base, mod)):
        return base
    return Affine(((Digit(base, div, mod), 1),))


def _digest(base: Base) -> str:
    if isinstance(base, Affine):
        return base.digest
    return _short(f"{base.expr.digest} {base.extent}" if isinstance(base, Bounded) else repr(base))


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


# --- the normal form of a sum ---------------------------------------------------------------------


def _normal(sums: dict[Digit, int], const: int) -> Affine:
    """Drop zeros, join neighbouring digits of one base, and order the terms."""
    # Inlined for speed: most coefficients are ints, and most expressions have few terms.
    terms = {d: c for d, c in sums.items() if (c if type(c) is int else not is_known_equal(c, 0))}
    while len(terms) > 1 and (pair := _neighbours(terms)) is not None:
        high, low = pair
        factor = terms.pop(low)
        del terms[high]
        mod = None if high.mod is None or low.mod is None else high.mod * low.mod
        whole = _reduced(low.base, low.div, mod)
        const += whole.const * factor
        for item, coefficient in whole.terms:
            terms[item] = terms.get(item, 0) + coefficient * factor
            if is_known_equal(terms[item], 0):
                del terms[item]
    if len(terms) > 1:
        return Affine(tuple(sorted(terms.items(), key=lambda item: item[0].order)), const)
    return Affine(tuple(terms.items()), const)


def _neighbours(terms: dict[Digit, int]) -> tuple[Digit, Digit] | None:
    """A pair (high, low) that can be joined into one digit; None without such.

    Bases are compared by hash first: ``==`` of sizes may be undecided.
    """
    hashed = [(hash(digit.base), digit, coefficient) for digit, coefficient in terms.items()]
    for number, low, factor in hashed:
        if low.mod is None:
            continue
        for other, high, coefficient in hashed:
            if (
                other == number
                and high is not low
                and high.base == low.base
                and is_known_equal(high.div, low.div * low.mod)
                and is_known_equal(coefficient, factor * low.mod)
            ):
                return high, low
    return None


def _fits(value: Affine, n: int) -> bool:
    bounds = value.range
    return bounds is not None and is_known_less(-1, bounds[0]) and is_known_less(bounds[1], n)


def _reduced(base: Base, div: int, mod: int | None) -> Affine:
    """``base // div % mod`` in normal form, also where the base is an expression."""
    if not isinstance(base, Affine):
        return digit(base, div, mod)
    quotient = base // div
    return quotient if mod is None else quotient % mod


# --- quotients and remainders ---------------------------------------------------------------------


def _lone_digit(value: Affine) -> Digit | None:
    """The digit of an expression that is one digit with coefficient 1."""
    if len(value.terms) != 1 or not is_known_equal(value.const, 0):
        return None
    ((lone, coefficient),) = value.terms
    return lone if is_known_equal(coefficient, 1) else None


def _quotient(value: Affine, n: int) -> Affine | None:
    """``value // n`` as a sum of digits; None where a digit of the whole sum is needed."""
    if is_known_equal(n, 1):
        return value
    whole, rest = value.split(n)
    if _fits(rest, n):
        return whole
    lone = _lone_digit(rest)
    if lone is not None and (lone.mod is None or is_known_multiple(lone.mod, n)):
        mod = None if lone.mod is None else lone.mod // n
        return whole + _reduced(lone.base, lone.div * n, mod)
    smaller = _smaller(rest, n)
    part = None if smaller is None else _quotient(*smaller)
    return None if part is None else whole + part


def _opaque_quotient(value: Affine, n: int) -> Affine:
    """``value // n`` as a digit of a sum.

    The sum is kept whole, so that all digits of one position have one base. A sum that may be
    negative is first reduced to one that is not, since generated code truncates and does not floor.
    """
    if _may_be_negative(value):
        whole, value = value.floored(n)
        return whole + Affine(((Digit(value, n, None), 1),))
    smaller = _smaller(value, n)
    if smaller is not None:
        return smaller[0] // smaller[1]
    return Affine(((Digit(value, n, None), 1),))


def _may_be_negative(value: Affine) -> bool:
    return value.range is None or not is_known_less(-1, value.range[0])


def _smaller(value: Affine, n: int) -> tuple[Affine, int] | None:
    """``(sum, m)`` with ``value // n == sum // m`` and a smaller ``m``; None without such."""
    for factor, high, _ in _levels(value, n):
        return high, n // factor
    return None


def _levels(value: Affine, n: int) -> Iterator[tuple[int, Affine, Affine]]:
    """Ways to write ``value`` as ``factor * high + low`` with ``0 <= low < factor``.

    Each factor is a proper divisor of ``n``; the largest come first.
    """
    factors = {common_factor(n, c) for _, c in value.terms} - {1, n}
    for factor in sorted(factors, key=hint, reverse=True):
        high, low = _quotient(value, factor), _residue(value, factor)
        if high is not None and low is not None:
            yield factor, high, low


def _residue(value: Affine, n: int) -> Affine | None:
    """``value % n`` as a sum of digits; None where a digit of the whole sum is needed."""
    if is_known_equal(n, 1):
        return Affine()
    rest = value.split(n)[1]
    if _fits(rest, n):
        return rest
    lone = _lone_digit(rest)
    if lone is not None and lone.mod is None:
        return digit(lone.base, lone.div, n)
    if lone is not None and lone.mod is not None and is_known_multiple(lone.mod, n):
        return _reduced(lone.base, lone.div, n)
    for factor, high, low in _levels(rest, n):
        part = _residue(high, n // factor)
        if part is not None:
            return part * factor + low
    return None


def _opaque_residue(value: Affine, n: int) -> Affine:
    """``value % n`` as a digit of a sum that is never negative."""
    if _may_be_negative(value):
        value = value.floored(n)[1]
    for factor, high, low in _levels(value, n):
        return (high % (n // factor)) * factor + low
    return Affine(((Digit(value, 1, n), 1),))


def axes_in_order(expr: Affine) -> tuple[Axis, ...]:
    """The axes whose digits are terms, in the order of decreasing coefficients."""
    found = [(step, item.base) for item, step in expr.terms if isinstance(item.base, Axis)]
    return tuple(axis for _, axis in sorted(found, key=lambda pair: -hint(pair[0])))
