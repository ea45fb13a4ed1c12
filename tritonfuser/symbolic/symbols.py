"""``Symbols``: sizes that vary and numbers computed of them: bounds, values and division."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from .polynomials import (
    Polynomial,
    Terms,
    added,
    divided,
    lower_bound,
    terms_of,
    value_at,
)

LARGEST_SIZE = 2**62
"""The upper bound of a size of which nothing else is known, in elements."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A variable of polynomials: a symbol, a quotient or remainder, or a number that is chosen.

    Attributes
    ----------
    name : str
        The name in texts, such as ``size0``. It stands for the atom times ``multiple``.
    hint : int
        The value of the atom in this run.
    low, high : int
        Inclusive bounds of the atom.
    multiple : int
        The known divisor of the size: the size is the atom times this. 1 for quotients and
        remainders.
    parts : (Terms, str, Terms), optional
        For a quotient or a remainder: numerator, ``"//"`` or ``"%"``, denominator.
    chosen : callable, optional
        For a number that heuristics choose: the size as a function of the values of the atoms
        before it.
    """

    name: str
    hint: int
    low: int
    high: int
    multiple: int = 1
    parts: tuple[Terms, str, Terms] | None = None
    chosen: Callable[[Sequence[int]], int] | None = field(default=None, repr=False)

    @property
    def is_symbol(self) -> bool:
        """Whether it is a size of the inputs, and not computed from other atoms."""
        return self.parts is None and self.chosen is None


class Symbols:
    """The variables of the polynomials of one env.

    Attributes
    ----------
    atoms : list of Atom
        Symbols, and quotients and remainders of them. Operands come before results.
    """

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._chosen: dict[str, int] = {}
        self._computed: dict[tuple[Terms, str, Terms], int] = {}

    # -- adding --------------------------------------------------------------

    def add(self, hint: int, multiple: int = 1) -> int:
        """Add a symbol for a size of 2 or more. Returns its index in ``atoms``."""
        assert hint >= 2 and hint % multiple == 0, (hint, multiple)
        low = -(-2 // multiple)
        return self._append(hint // multiple, low, LARGEST_SIZE // multiple, multiple, None)

    def add_chosen(
        self,
        key: str,
        hint: int,
        low: int,
        high: int,
        chosen: Callable[[Sequence[int]], int],
        multiple: int = 1,
    ) -> int:
        """Add a number that ``chosen`` computes at any sizes. Returns its index in ``atoms``.

        A key that was added before gives the index from then.
        """
        assert hint % multiple == 0, (hint, multiple)
        if key not in self._chosen:
            self._chosen[key] = self._append(
                hint // multiple, -(-low // multiple), high // multiple, multiple, None
            )
            place = self._chosen[key]
            self.atoms[place] = replace(self.atoms[place], chosen=chosen)
        return self._chosen[key]

    def atom_of(self, p: Polynomial) -> Atom:
        """An atom that equals a positive polynomial; a new one where there is none."""
        for atom_place, atom in enumerate(self.atoms):
            if p == {(atom_place,): atom.multiple}:
                return atom
        ((made,),) = self._compute(p, "//", {(): 1})
        return self.atoms[made]

    def _append(
        self, hint: int, low: int, high: int, multiple: int, parts: tuple[Terms, str, Terms] | None
    ) -> int:
        name = f"size{len(self.atoms)}"
        self.atoms.append(Atom(name, hint, low, high, multiple, parts))
        return len(self.atoms) - 1

    def _compute(self, numerator: Polynomial, sign: str, denominator: Polynomial) -> Polynomial:
        """An atom for ``numerator // denominator`` or ``%``; the denominator is positive."""
        parts = (terms_of(numerator), sign, terms_of(denominator))
        place = self._computed.get(parts)
        if place is None:
            whole, rest = divmod(self.hint(numerator), self.hint(denominator))
            ends = self._bounds_of_computed(parts)
            place = self._append(rest if sign == "%" else whole, *ends, 1, parts)
            self._computed[parts] = place
        return {(place,): 1}

    # -- bounds and values ---------------------------------------------------

    def bounds(self, p: Polynomial) -> tuple[int, int]:
        """Proved bounds of a polynomial, both inclusive."""
        return self.lower_bound(p), -self.lower_bound(added({}, p, -1))

    def lower_bound(self, p: Polynomial) -> int:
        """A proved lower bound of a polynomial."""
        return lower_bound(p, self._bounds_of_atom)

    def _bounds_of_atom(self, place: int) -> tuple[int, int]:
        atom = self.atoms[place]
        return atom.low, atom.high

    def _bounds_of_computed(self, parts: tuple[Terms, str, Terms]) -> tuple[int, int]:
        """Inclusive bounds of a quotient or a remainder."""
        numerator, sign, denominator = parts
        below, above = self.bounds(dict(numerator)), self.bounds(dict(denominator))
        if sign == "%":
            return 0, above[1] - 1
        ends = [n // max(d, 1) for n in below for d in above]
        return min(ends), max(ends)

    def set_bounds(self, place: int, low: int, high: int) -> None:
        """Give an atom other bounds, both inclusive."""
        self.atoms[place] = replace(self.atoms[place], low=low, high=high)

    def tighten_computed(self) -> None:
        """Tighten the bounds of quotients and remainders by the current bounds of symbols.

        Afterwards these bounds do not depend on whether an atom or a guard was recorded first.
        """
        for place, atom in enumerate(self.atoms):
            if atom.parts is not None:
                low, high = self._bounds_of_computed(atom.parts)
                self.set_bounds(place, max(atom.low, low), min(atom.high, high))

    def hint(self, p: Polynomial) -> int:
        """The value of the polynomial in this run."""
        return value_at(p, lambda place: self.atoms[place].hint)

    def values(self, symbols: Iterable[int]) -> list[int]:
        """The value of each atom where the symbols have these sizes, in elements."""
        given = iter(symbols)
        found: list[int] = []
        for atom in self.atoms:
            if atom.chosen is not None:
                found.append(atom.chosen(found) // atom.multiple)
                continue
            if atom.parts is None:
                found.append(next(given) // atom.multiple)
                continue
            over, sign, under = atom.parts
            n, d = (value_at(dict(p), found.__getitem__) for p in (over, under))
            found.append(n // d if sign == "//" else n % d)
        return found

    # -- dividing ------------------------------------------------------------

    def quotient(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """``p // q``, rounded down; ``q`` is positive."""
        if q.keys() == {()} and p and all(c <= 0 for c in p.values()):
            # ceil_div(n, 512) is written -(-n // 512).
            up = added(added({}, p, -1), {(): q[()] - 1})
            return added({}, self.quotient(up, q), -1)
        whole, rest = self.split(p, q)
        if self._is_residue(rest, q):
            return whole
        rest, q, _, _ = _reduced(rest, q)
        return added(whole, self._compute(rest, "//", q))

    def residue(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """``p % q``; ``q`` is positive."""
        _, rest = self.split(p, q)
        if self._is_residue(rest, q):
            return rest
        rest, q, factor, left = _reduced(rest, q)
        return added({(): left} if left else {}, self._compute(rest, "%", q), factor)

    def split(self, p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
        """``(whole, rest)`` with ``p == q * whole + rest``; ``0 <= rest < q`` where provable."""
        whole, rest = divided(p, q)
        raised = added(rest, q)  # a negative rest becomes one in 0 .. q - 1
        if not self._is_residue(rest, q) and self._is_residue(raised, q):
            return added(whole, {(): -1}), raised
        return whole, rest

    def _is_residue(self, p: Polynomial, q: Polynomial) -> bool:
        """Whether ``0 <= p < q`` is proved."""
        return self.lower_bound(p) >= 0 and self.lower_bound(added(added(q, p, -1), {(): -1})) >= 0


def _reduced(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial, int, int]:
    """Cancel the factor that a constant ``q`` shares with all terms of ``p`` but the constant one.

    ``(16*a + 5) // 32`` -> ``a // 2``, with the factor 16 and 5 left over.

    Returns
    -------
    (Polynomial, Polynomial, int, int)
        The smaller ``p`` and ``q``, the factor, and what is left over of the constant of ``p``.
    """
    if q.keys() != {()}:
        return p, q, 1, 0
    factor = gcd(q[()], *(c for monomial, c in p.items() if monomial))
    left = p.get((), 0) % factor
    less = {monomial: c // factor for monomial, c in p.items() if c // factor}
    return less, {(): q[()] // factor}, factor, left
