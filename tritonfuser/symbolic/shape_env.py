"""``ShapeEnv``: symbols for sizes that vary, their bounds, and the guards of a lowering.

One env belongs to one lowering. ``known_*`` tells what its bounds and guards prove of a polynomial
over its symbols. ``assume_*`` decides the rest by the hints, and records the answer as a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import gcd

from .guards import LARGEST_SIZE, Atom, Choice, Guard, Relation
from .polynomials import (
    Polynomial,
    Terms,
    added,
    content,
    divided,
    in_order,
    least,
    never_zero,
    value_at,
)


class ShapeEnv:
    """Symbols with what is known of them, and the guards recorded.

    Attributes
    ----------
    atoms : list of Atom
        Symbols and what is computed from them, each after what it is made of.
    guards : list of Guard
        What was decided by the hints, in that order.
    choices : dict
        What was chosen by the hints, each question once; see ``choices.py``.
    closed : bool
        Whether no more guards may be recorded: what is asked then has to be known.
    """

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.guards: list[Guard] = []
        self.choices: dict[str, Choice] = {}
        self.closed = False
        self._assumed: set[Guard] = set()
        self._chosen: dict[str, int] = {}
        self._computed: dict[tuple[Terms, str, Terms], int] = {}

    # -- atoms ---------------------------------------------------------------

    def add(self, hint: int, multiple: int = 1) -> int:
        """The place of a new symbol for a size of 2 and more."""
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
        """The place of a number that heuristics choose at any sizes; each key once."""
        assert hint % multiple == 0, (hint, multiple)
        if key not in self._chosen:
            self._chosen[key] = self._append(
                hint // multiple, -(-low // multiple), high // multiple, multiple, None
            )
            place = self._chosen[key]
            self.atoms[place] = replace(self.atoms[place], chosen=chosen)
        return self._chosen[key]

    def _append(
        self, hint: int, low: int, high: int, multiple: int, parts: tuple[Terms, str, Terms] | None
    ) -> int:
        name = f"size{len(self.atoms)}"
        self.atoms.append(Atom(name, hint, low, high, multiple, parts))
        return len(self.atoms) - 1

    def _compute(self, numerator: Polynomial, sign: str, denominator: Polynomial) -> Polynomial:
        """An atom for ``numerator // denominator`` or ``%``; the denominator is positive."""
        parts = (_terms(numerator), sign, _terms(denominator))
        place = self._computed.get(parts)
        if place is None:
            whole, rest = divmod(self.hint(numerator), self.hint(denominator))
            ends = self._ends(parts)
            place = self._append(rest if sign == "%" else whole, *ends, 1, parts)
            self._computed[parts] = place
        return {(place,): 1}

    def named(self, p: Polynomial) -> Atom:
        """The atom that a positive polynomial is; one is made where none is."""
        for atom_place, atom in enumerate(self.atoms):
            if p == {(atom_place,): atom.multiple}:
                return atom
        ((made,),) = self._compute(p, "//", {(): 1})
        return self.atoms[made]

    def _ends(self, parts: tuple[Terms, str, Terms]) -> tuple[int, int]:
        """What a quotient or a remainder is at least and at most."""
        numerator, sign, denominator = parts
        below, above = self._bounds(dict(numerator)), self._bounds(dict(denominator))
        if sign == "%":
            return 0, above[1] - 1
        ends = [n // max(d, 1) for n in below for d in above]
        return min(ends), max(ends)

    def tighten_computed(self) -> None:
        """Bounds of quotients and remainders by what is known of symbols by now.

        What is told of them does not depend on whether they or the guards came first then.
        """
        for place, atom in enumerate(self.atoms):
            if atom.parts is not None:
                low, high = self._ends(atom.parts)
                tight = max(atom.low, low), min(atom.high, high)
                self.atoms[place] = replace(atom, low=tight[0], high=tight[1])

    # -- what is known -------------------------------------------------------

    def bounds(self, place: int) -> tuple[int, int]:
        atom = self.atoms[place]
        return atom.low, atom.high

    def _bounds(self, p: Polynomial) -> tuple[int, int]:
        return self.least(p), -self.least(added({}, p, -1))

    def least(self, p: Polynomial) -> int:
        """A number that the polynomial is sure not to be below."""
        return least(p, self.bounds)

    def hint(self, p: Polynomial) -> int:
        """What the polynomial is in this run."""
        return value_at(p, lambda place: self.atoms[place].hint)

    def known_at_least_zero(self, p: Polynomial) -> bool | None:
        """Whether the polynomial is 0 or more for all sizes; None where that is not known."""
        low, high = self._bounds(p)
        if low >= 0 or high < 0:
            return low >= 0
        if _normal(p, Relation.AT_LEAST_ZERO) in self._assumed:
            return True
        return False if _normal(_below_zero(p), Relation.AT_LEAST_ZERO) in self._assumed else None

    def implies_at_least_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0 or more, by bounds of symbols and at most one guard."""
        if self.known_at_least_zero(p):
            return True
        return any(
            self.least(added(p, known, -times)) >= 0
            for guard in self.guards
            if guard.relation is Relation.AT_LEAST_ZERO
            for known in [dict(guard.terms)]
            for times in {p[m] // c for m, c in known.items() if m and m in p}
            if times > 0
        )

    def known_zero(self, p: Polynomial) -> bool | None:
        """Whether the polynomial is 0 for all sizes; None where that is not known."""
        if not p or p.keys() == {()}:
            return not p
        low, high = self._bounds(p)
        if low > 0 or high < 0 or never_zero(p):
            return False
        if _normal(p, Relation.ZERO) in self._assumed:
            return True
        return False if _normal(p, Relation.NOT_ZERO) in self._assumed else None

    def constant(self, p: Polynomial) -> int | None:
        """The number that the polynomial is at all sizes; None where none is known."""
        low, high = self._bounds(p)
        found = self.hint(p)
        known = low == high or self.known_zero(added(p, {(): found}, -1))
        return found if known else None

    # -- assuming ------------------------------------------------------------

    def assume_at_least_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0 or more: as in this run, where it is not known."""
        known = self.known_at_least_zero(p)
        if known is not None:
            return known
        answer = self.hint(p) >= 0
        self._record(_normal(p if answer else _below_zero(p), Relation.AT_LEAST_ZERO))
        return answer

    def assume_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0: as in this run, where it is not known."""
        known = self.known_zero(p)
        if known is not None:
            return known
        answer = self.hint(p) == 0
        self._record(_normal(p, Relation.ZERO if answer else Relation.NOT_ZERO))
        return answer

    def assume_constant(self, p: Polynomial) -> int:
        """What the polynomial is in this run, and from here on at all sizes."""
        found = self.hint(p)
        self.assume_zero(added(p, {(): found}, -1))
        return found

    def _record(self, guard: Guard) -> None:
        if self.closed:
            raise AssertionError(f"a guard too late: {guard}")
        self._assumed.add(guard)
        self.guards.append(guard)
        self._tighten(guard)

    def _tighten(self, guard: Guard) -> None:
        """Bounds of a symbol that a guard on it alone gives."""
        p = dict(guard.terms)
        constant = p.pop((), 0)
        if len(p) != 1 or guard.relation is Relation.NOT_ZERO:
            return
        ((monomial, coefficient),) = p.items()
        if len(monomial) != 1:
            return
        atom = self.atoms[monomial[0]]
        low, high = atom.low, atom.high
        if coefficient > 0:
            low = max(low, -(constant // coefficient))
        else:
            high = min(high, constant // -coefficient)
        if guard.relation is Relation.ZERO:
            low = high = atom.hint
        self.atoms[monomial[0]] = replace(atom, low=low, high=high)

    def keep_schedule(self) -> None:
        """Take what was chosen so far for all sizes: it is not asked again."""
        self.choices.clear()

    def close(self) -> None:
        """Record no more guards; drop those that others imply: ``a <= 9`` beside ``a <= 5``."""
        self.closed = True
        tightest: dict[Terms, Guard] = {}
        for guard in self.guards:
            if guard.relation is not Relation.AT_LEAST_ZERO:
                continue
            rest, constant = _parted(guard)
            if rest not in tightest or constant < _parted(tightest[rest])[1]:
                tightest[rest] = guard
        kept = set(tightest.values())
        self.guards = [
            g for g in self.guards if g.relation is not Relation.AT_LEAST_ZERO or g in kept
        ]

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
        """``p == q * whole + rest``; rounded down where that is known."""
        whole, rest = divided(p, q)
        below = added(rest, q)  # of what is just negative
        if not self._is_residue(rest, q) and self._is_residue(below, q):
            return added(whole, {(): -1}), below
        return whole, rest

    def _is_residue(self, p: Polynomial, q: Polynomial) -> bool:
        """Whether ``0 <= p < q`` is known."""
        return self.least(p) >= 0 and self.least(added(added(q, p, -1), {(): -1})) >= 0

    # -- other sizes ---------------------------------------------------------

    def values(self, symbols: Iterable[int]) -> list[int]:
        """What each atom is where the symbols' sizes are these."""
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


@contextmanager
def sealed(env: ShapeEnv | None) -> Iterator[None]:
    """A block in which no guards are recorded: what is asked of sizes has to be known."""
    if env is None:
        yield
        return
    was, env.closed = env.closed, True
    env.tighten_computed()
    try:
        yield
    finally:
        env.closed = was


def _below_zero(p: Polynomial) -> Polynomial:
    """A polynomial that is 0 or more where ``p`` is less than 0."""
    return added({(): -1}, p, -1)


def _parted(guard: Guard) -> tuple[Terms, int]:
    """What varies, and the constant."""
    p = dict(guard.terms)
    constant = p.pop((), 0)
    return _terms(p), constant


def _terms(p: Polynomial) -> Terms:
    return tuple(sorted(p.items()))


def _reduced(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial, int, int]:
    """``p / q`` without the factor that a constant ``q`` has in common with all but p's constant.

    ``(16*a + 5) // 32 -> a // 2``, with the factor 16 and 5 left over.
    """
    if q.keys() != {()}:
        return p, q, 1, 0
    factor = gcd(q[()], *(c for monomial, c in p.items() if monomial))
    left = p.get((), 0) % factor
    less = {monomial: c // factor for monomial, c in p.items() if c // factor}
    return less, {(): q[()] // factor}, factor, left


def _normal(p: Polynomial, relation: Relation) -> Guard:
    """Without common factors: ``4*a - 6 >= 0`` is ``a - 2 >= 0``."""
    factor = content({monomial: c for monomial, c in p.items() if monomial})
    if relation is Relation.AT_LEAST_ZERO:
        return Guard(_terms({m: v for m, c in p.items() if (v := c // factor)}), relation)
    factor = content(p) * (1 if in_order(p)[0][1] > 0 else -1)
    return Guard(_terms({m: c // factor for m, c in p.items()}), relation)
