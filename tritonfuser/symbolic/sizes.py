"""``Size``: an integer that varies between runs: a polynomial over symbols, with a hint.

Arithmetic on a ``Size`` gives Sizes. A ``Size`` is annotated as ``int``, though it is no instance
of it. Comparisons and conversions to a plain number (``int(n)``, ``range(n)``) succeed where the
bounds of the symbols prove one answer for all sizes. Otherwise they raise ``UndecidedSizeError``;
they never record a guard. Code that may meet a ``Size`` asks ``queries`` instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, cast

from .polynomials import Polynomial, Terms, added, multiplied, value_at
from .shape_env import ShapeEnv
from .size_text import size_text
from .symbols import Atom


class UndecidedSizeError(Exception):
    """A pass compared or converted a ``Size``, and the answer differs between sizes.

    It is an error of the pass. Users do not see it: a lowering that fails with open sizes is
    repeated with constant ones.
    """

    def __init__(self, question: str) -> None:
        super().__init__(
            f"{question} is not known for all sizes; ask symbolic.queries instead: is_known_equal "
            "and the like record nothing, assume_equal and the like record a guard"
        )


class Size:
    """A polynomial over the symbols of an env; constant ones are plain ints instead.

    Two are equal where they are the same expression of one env.
    """

    __slots__ = ("_hash", "env", "terms")

    def __init__(self, env: ShapeEnv, terms: Terms) -> None:
        self.env = env
        self.terms = terms
        # hash(-1) == hash(-2), and equal hashes make dicts call ``==``, which may be undecided.
        self._hash = hash((id(env), tuple((monomial, hash(2 * c)) for monomial, c in terms)))

    def __hash__(self) -> int:
        return self._hash

    # -- reading -------------------------------------------------------------

    def __index__(self) -> int:
        found = self.env.constant(dict(self.terms))
        if found is None:
            raise UndecidedSizeError(f"int({self!r})")
        return found

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        return self != 0

    def __str__(self) -> str:
        return f"{self}"

    def __repr__(self) -> str:
        return size_text(self.env, dict(self.terms))

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
        return _binary(operator.floordiv, self, other, self._quotient)

    def __rfloordiv__(self, other: object) -> Any:
        return _binary(operator.floordiv, other, self, self._quotient)

    def __mod__(self, other: object) -> Any:
        return _binary(operator.mod, self, other, self._residue)

    def __rmod__(self, other: object) -> Any:
        return _binary(operator.mod, other, self, self._residue)

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

    def _quotient(self, p: Polynomial, q: Polynomial) -> Polynomial:
        if self._is_negative(q):
            return self._quotient(added({}, p, -1), added({}, q, -1))
        return self.env.symbols.quotient(p, q)

    def _residue(self, p: Polynomial, q: Polynomial) -> Polynomial:
        if self._is_negative(q):
            return added({}, self._residue(added({}, p, -1), added({}, q, -1)), -1)
        return self.env.symbols.residue(p, q)

    def _is_negative(self, divisor: Polynomial) -> bool:
        if not divisor:
            raise ZeroDivisionError("division of a size by zero")
        answer = self.env.known_at_least_zero(added(divisor, {(): -1}))
        if answer is None:
            raise UndecidedSizeError(f"the sign of a divisor, {size_text(self.env, divisor)},")
        return not answer

    # -- comparing -----------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if type(other) is Size and other.env is self.env and other.terms == self.terms:
            return True
        found = self._difference(other)
        if found is None:
            return NotImplemented
        return self._decided(self.env.known_zero(found), f"{self!r} == {other!r}")

    def __lt__(self, other: object) -> Any:
        return self._below(other, 1, "<")

    def __le__(self, other: object) -> Any:
        return self._below(other, 0, "<=")

    def __gt__(self, other: object) -> Any:
        return _not(self._below(other, 0, ">"))

    def __ge__(self, other: object) -> Any:
        return _not(self._below(other, 1, ">="))

    def _below(self, other: object, by: int, sign: str) -> Any:
        """``self + by <= other``."""
        found = self._difference(other)
        if found is None:
            return NotImplemented
        answer = self.env.known_at_least_zero(added(found, {(): by}, -1))
        return self._decided(answer, f"{self!r} {sign} {other!r}")

    def _difference(self, other: object) -> Polynomial | None:
        """``other - self``; None for what is no integer."""
        found = _polynomial(other, self.env)
        return None if found is None else added(found, dict(self.terms), -1)

    def _decided(self, answer: bool | None, question: str) -> bool:
        if answer is None:
            raise UndecidedSizeError(question)
        return answer


def _not(answer: Any) -> Any:
    return answer if answer is NotImplemented else not answer


def _polynomial(value: object, env: ShapeEnv) -> Polynomial | None:
    """A number as a polynomial; None for what is no integer."""
    if type(value) is Size:
        assert value.env is env, "sizes of two signatures have nothing to do with one another"
        return dict(value.terms)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return {(): int(value)} if value else {}
    return None


def _binary(
    plain: Callable[[Any, Any], Any],
    a: object,
    b: object,
    combine: Callable[[Polynomial, Polynomial], Polynomial],
) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        return plain(float(cast(float, a)), float(cast(float, b)))
    env = next(x.env for x in (a, b) if type(x) is Size)
    left, right = _polynomial(a, env), _polynomial(b, env)
    if left is None or right is None:
        return NotImplemented
    return as_size(env, combine(left, right))


def as_size(env: ShapeEnv, p: Polynomial) -> int:
    """A polynomial as a Size, a constant one as an int."""
    if not p or p.keys() == {()}:
        return p.get((), 0)
    return cast(int, Size(env, tuple(sorted(p.items()))))


def symbol(env: ShapeEnv, hint: int, multiple: int = 1) -> int:
    """A new size, known to be 2 or more and a multiple of ``multiple``."""
    return as_size(env, {(env.symbols.add(hint, multiple),): multiple})


def size_of_atom(env: ShapeEnv, atom: Atom) -> int:
    """The size that an atom's name stands for in texts: the atom times its multiple."""
    return as_size(env, {(env.atoms.index(atom),): atom.multiple})


def as_atom(value: int) -> int:
    """A positive size as a lone atom of its env, which has a name in texts; an int as it is."""
    for size in sizes_among(value):
        return size_of_atom(size.env, size.env.symbols.atom_of(dict(size.terms)))
    return value


# --- what a number is -------------------------------------------------------------------------


def is_size(value: object) -> bool:
    """Whether a number varies between runs."""
    return type(value) is Size


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number: an int, or a size."""
    return type(value) is int or type(value) is Size or isinstance(value, int)


def integer(value: Any) -> int:
    """``int(value)``, but a size stays one."""
    return value if type(value) is int else cast(int, value) if is_size(value) else int(value)


def sizes_among(*values: int) -> list[Size]:
    """The numbers among ``values`` that are sizes."""
    found: tuple[object, ...] = values
    return [value for value in found if type(value) is Size]


def polynomial(value: int, env: ShapeEnv) -> Polynomial:
    """A number, or a size of an env, as a polynomial."""
    found = _polynomial(value, env)
    assert found is not None
    return found


def parts_by_sign(value: int) -> tuple[int, int]:
    """``(negative, positive)`` parts of a number, with ``value == positive - negative``.

    The parts of a size are the sums of its terms with negative and with positive coefficients.
    """
    for size in sizes_among(value):
        below = {monomial: -c for monomial, c in size.terms if c < 0}
        return as_size(size.env, below), as_size(size.env, {m: c for m, c in size.terms if c > 0})
    return max(-value, 0), max(value, 0)


def hint(value: int) -> int:
    """The number in this run. Nothing that must be right for other sizes may depend on it."""
    if type(value) is int:
        return value
    for size in sizes_among(value):
        return size.env.symbols.hint(dict(size.terms))
    return value


def evaluate_size(value: int, atoms: Sequence[int]) -> int:
    """The value of a size where the atoms of its env have these values; an int as it is."""
    for size in sizes_among(value):
        return value_at(dict(size.terms), lambda place: atoms[place])
    return value
