"""Sizes that vary between runs: integers known by an expression, and by a hint for this run.

A ``Size`` does arithmetic as an int does and gives Sizes. What a pass asks of it (is it below 512?
is it zero?) is proved from what holds of the symbols, or else decided by the hint and written down
as a guard: other sizes may use what the pass has made if all guards hold for them. A Size that is
turned into a plain number is pinned to it by a guard. So a pass may treat it as the int it stands
for; it is annotated as one, and is no subclass only because C code would read the hint unseen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import gcd
from typing import Any, cast

from .polynomials import Polynomial, Terms, added, common_part, content, multiplied, value_at
from .shape_env import Ledger
from .size_text import size_text


class Size:
    """A polynomial over the symbols of a ledger; constant ones are plain ints instead."""

    __slots__ = ("_hash", "ledger", "terms")

    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self.ledger = ledger
        self.terms = terms
        self._hash = hash((id(ledger), terms))

    # Whoever asks ``isinstance(n, int)`` must go on as with an int: whatever is done to it then
    # is proved or guarded, but "no int" mostly stands for "not known".
    __class__ = property(lambda self: int)

    def __hash__(self) -> int:
        # Equal numbers may hash apart: then two things are taken for different that a guard would
        # have made one.
        return self._hash

    # -- reading -------------------------------------------------------------

    def __index__(self) -> int:
        return self.ledger.pinned(dict(self.terms))

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        return not self.ledger.is_zero(dict(self.terms))

    def __str__(self) -> str:
        return f"{self}"

    def __repr__(self) -> str:
        return size_text(self.ledger, dict(self.terms))

    def __format__(self, spec: str) -> str:
        if spec:
            return format(self.__index__(), spec)
        text = repr(self)
        return text if text.isidentifier() else f"({text})"

    # -- arithmetic ----------------------------------------------------------

    def __add__(self, other: object) -> Any:
        return _binary(operator.add, self, other, lambda a, b: added(a, b))

    def __radd__(self, other: object) -> Any:
        return self.__add__(other)

    def __sub__(self, other: object) -> Any:
        return _binary(operator.sub, self, other, lambda a, b: added(a, b, -1))

    def __rsub__(self, other: object) -> Any:
        return _binary(operator.sub, other, self, lambda a, b: added(a, b, -1))

    def __mul__(self, other: object) -> Any:
        return _binary(operator.mul, self, other, multiplied)

    def __rmul__(self, other: object) -> Any:
        return self.__mul__(other)

    def __floordiv__(self, other: object) -> Any:
        return _binary(operator.floordiv, self, other, self.ledger.quotient)

    def __rfloordiv__(self, other: object) -> Any:
        return _binary(operator.floordiv, other, self, self.ledger.quotient)

    def __mod__(self, other: object) -> Any:
        return _binary(operator.mod, self, other, self.ledger.residue)

    def __rmod__(self, other: object) -> Any:
        return _binary(operator.mod, other, self, self.ledger.residue)

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return self.__index__() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.__index__()

    def __pow__(self, other: Any) -> Any:
        return self.__index__() ** other

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    # -- comparing -----------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if isinstance(other, float) and other.is_integer():
            other = int(other)
        found = _polynomial(other, self.ledger)
        if found is None:
            return False if isinstance(other, float) else NotImplemented
        return self.ledger.is_zero(added(dict(self.terms), found, -1))

    def __lt__(self, other: object) -> bool:
        return self._below(other, 1)

    def __le__(self, other: object) -> bool:
        return self._below(other, 0)

    def __gt__(self, other: object) -> bool:
        return _not(self._below(other, 0))

    def __ge__(self, other: object) -> bool:
        return _not(self._below(other, 1))

    def _below(self, other: object, by: int) -> bool:
        """``self + by <= other``."""
        found = _polynomial(other, self.ledger)
        if found is None:
            plain = operator.lt if by else operator.le
            return plain(self.__index__(), other) if isinstance(other, float) else NotImplemented
        difference = added(added(found, dict(self.terms), -1), {(): by}, -1)
        return self.ledger.is_at_least_zero(difference)


def _not(answer: bool) -> bool:
    return answer if answer is NotImplemented else not answer


def _polynomial(value: object, ledger: Ledger) -> Polynomial | None:
    """A number as a polynomial; None for what is no integer."""
    if type(value) is Size:
        return dict(value.terms) if value.ledger is ledger else {(): value.__index__()}
    if isinstance(value, int):
        return {(): int(value)} if value else {}
    return None


def _binary(
    plain: Callable[[Any, Any], Any],
    a: object,
    b: object,
    combine: Callable[[Polynomial, Polynomial], Polynomial],
) -> Any:
    ledger = next(x.ledger for x in (a, b) if type(x) is Size)
    left, right = _polynomial(a, ledger), _polynomial(b, ledger)
    if left is not None and right is not None:
        return made(ledger, combine(left, right))
    if isinstance(a, float) or isinstance(b, float):
        return plain(float(cast(float, a)), float(cast(float, b)))
    return NotImplemented


def made(ledger: Ledger, p: Polynomial) -> int:
    """A polynomial as a Size, a constant one as an int."""
    if not p or p.keys() == {()}:
        return p.get((), 0)
    return cast(int, Size(ledger, tuple(sorted(p.items()))))


def symbol(ledger: Ledger, hint: int, multiple: int = 1) -> int:
    """A new size of which nothing is known but that it is 2 or more, and a multiple of a number."""
    return made(ledger, {(ledger.add(hint, multiple),): multiple})


# --- asking without deciding ------------------------------------------------------------------


def is_size(value: object) -> bool:
    """Whether a number varies between runs."""
    return type(value) is Size


def _sizes(*values: int) -> list[Size]:
    return [cast(Size, value) for value in values if is_size(value)]


def hint(value: int) -> int:
    """The number in this run. Nothing that must be right for other sizes may depend on it."""
    if type(value) is int:
        return value
    for size in _sizes(value):
        return size.ledger.hint(dict(size.terms))
    return value


def guarded(answer: bool) -> bool:
    """The answer to a question that is asked for the guard it takes, not to decide anything."""
    return answer


def same(a: int, b: int) -> bool:
    """Whether two numbers are equal in every run; False where that is not sure."""
    if type(a) is int and type(b) is int:
        return a == b
    sizes = _sizes(a, b)
    return a == b if not sizes else len(sizes) == 2 and sizes[0].terms == sizes[1].terms


def surely_below(a: int, b: int) -> bool:
    """Whether ``a < b`` in every run; False where that is not sure."""
    difference = b - a
    if type(difference) is int:
        return difference > 0
    for size in _sizes(difference):
        return size.ledger.least(dict(size.terms)) > 0
    return difference > 0


def surely_multiple(a: int, n: int) -> bool:
    """Whether ``n`` divides ``a`` in every run; False where that is not sure."""
    return same(divided(a, n)[1], 0)


def known_divisor(value: int) -> int:
    """The greatest number that is sure to divide a size; a number itself."""
    for size in _sizes(value):
        return content(dict(size.terms))
    return value


def common_factor(a: int, b: int) -> int:
    """What is sure to divide both: the gcd of numbers, the factors that sizes have in common."""
    sizes = _sizes(a, b)
    if not sizes:
        return gcd(a, b)
    both = [_known(n, sizes[0].ledger) for n in (a, b)]
    factor = gcd(*(content(p) for p in both))
    part = common_part(monomial for p in both for monomial in p)
    return made(sizes[0].ledger, {part: factor} if factor else {})


def divided(a: int, n: int) -> tuple[int, int]:
    """``(whole, rest)`` with ``a == n * whole + rest``; ``divmod`` where that is sure."""
    sizes = _sizes(a, n)
    if not sizes:
        return divmod(a, n)
    ledger = sizes[0].ledger
    whole, rest = ledger.split(_known(a, ledger), _known(n, ledger))
    return made(ledger, whole), made(ledger, rest)


def lesser(a: int, b: int) -> int:
    """The lesser of two numbers; either of them where it is not sure which that is."""
    if surely_below(a, b):
        return a
    return b if surely_below(b - 1, a) or hint(b) < hint(a) else a


def _known(value: int, ledger: Ledger) -> Polynomial:
    found = _polynomial(value, ledger)
    assert found is not None
    return found


def integer(value: Any) -> int:
    """``int(value)``, but a size stays one."""
    return cast(int, value) if is_size(value) else int(value)


# --- what it is at other sizes ----------------------------------------------------------------


def number(value: int, atoms: Sequence[int]) -> int:
    """The number that a size is where the atoms of its ledger have these values."""
    for size in _sizes(value):
        return value_at(dict(size.terms), lambda place: atoms[place])
    return value
