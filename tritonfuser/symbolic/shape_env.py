"""``ShapeEnv``: symbols for sizes that vary, their bounds, and the guards of a lowering.

One env belongs to one lowering. ``known_*`` answers what bounds and guards prove of a polynomial
over the symbols. ``assume_*`` answers anything else by the hints (the sizes of this run), and
records the answer as a guard.
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
    lower_bound,
    never_zero,
    value_at,
)


class ShapeEnv:
    """Symbols with what is known of them, and the guards recorded.

    Attributes
    ----------
    atoms : list of Atom
        Symbols, and quotients and remainders of them. Operands come before results.
    guards : list of Guard
        The decisions that were made by the hints, in the order in which they were made.
    choices : dict
        The questions that ``choices.py`` answered by the hints, each once.
    closed : bool
        Whether recording a guard is an error: answers have to be known from now on.
    """

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.guards: list[Guard] = []
        self.choices: dict[str, Choice] = {}
        self.closed = False
        self._assumed: set[Guard] = set()
        self._required: dict[Guard, None] = {}
        self._chosen: dict[str, int] = {}
        self._computed: dict[tuple[Terms, str, Terms], int] = {}

    # -- atoms ---------------------------------------------------------------

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
            ends = self._bounds_of_computed(parts)
            place = self._append(rest if sign == "%" else whole, *ends, 1, parts)
            self._computed[parts] = place
        return {(place,): 1}

    def atom_of(self, p: Polynomial) -> Atom:
        """An atom that equals a positive polynomial; a new one where there is none."""
        for atom_place, atom in enumerate(self.atoms):
            if p == {(atom_place,): atom.multiple}:
                return atom
        ((made,),) = self._compute(p, "//", {(): 1})
        return self.atoms[made]

    def _bounds_of_computed(self, parts: tuple[Terms, str, Terms]) -> tuple[int, int]:
        """Inclusive bounds of a quotient or a remainder."""
        numerator, sign, denominator = parts
        below, above = self._bounds(dict(numerator)), self._bounds(dict(denominator))
        if sign == "%":
            return 0, above[1] - 1
        ends = [n // max(d, 1) for n in below for d in above]
        return min(ends), max(ends)

    def tighten_computed(self) -> None:
        """Tighten the bounds of quotients and remainders by the current bounds of symbols.

        Afterwards these bounds do not depend on whether an atom or a guard was recorded first.
        """
        for place, atom in enumerate(self.atoms):
            if atom.parts is not None:
                low, high = self._bounds_of_computed(atom.parts)
                tight = max(atom.low, low), min(atom.high, high)
                self.atoms[place] = replace(atom, low=tight[0], high=tight[1])

    # -- what is known -------------------------------------------------------

    def bounds(self, place: int) -> tuple[int, int]:
        atom = self.atoms[place]
        return atom.low, atom.high

    def _bounds(self, p: Polynomial) -> tuple[int, int]:
        return self.lower_bound(p), -self.lower_bound(added({}, p, -1))

    def lower_bound(self, p: Polynomial) -> int:
        """A proved lower bound of the polynomial."""
        return lower_bound(p, self.bounds)

    def hint(self, p: Polynomial) -> int:
        """The value of the polynomial in this run."""
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
            self.lower_bound(added(p, known, -times)) >= 0
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
        """The value of the polynomial, if it is proved to be the same at all sizes; else None."""
        low, high = self._bounds(p)
        found = self.hint(p)
        known = low == high or self.known_zero(added(p, {(): found}, -1))
        return found if known else None

    # -- assuming ------------------------------------------------------------

    def assume_at_least_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0 or more: proved, else as in this run, with a guard."""
        known = self.known_at_least_zero(p)
        if known is not None:
            return known
        answer = self.hint(p) >= 0
        self._record(_normal(p if answer else _below_zero(p), Relation.AT_LEAST_ZERO))
        return answer

    def assume_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0: proved, else as in this run, with a guard."""
        known = self.known_zero(p)
        if known is not None:
            return known
        answer = self.hint(p) == 0
        self._record(_normal(p, Relation.ZERO if answer else Relation.NOT_ZERO))
        return answer

    def assume_constant(self, p: Polynomial) -> int:
        """The value of the polynomial in this run, recorded as a guard."""
        found = self.hint(p)
        self.assume_zero(added(p, {(): found}, -1))
        return found

    def require_at_least_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0 or more in this run; then kernels serve no sizes below.

        Unlike what is assumed, this decides nothing: the guard comes when the env is closed.
        """
        known = self.known_at_least_zero(p)
        if known is None and self.hint(p) >= 0:
            self._required[_normal(p, Relation.AT_LEAST_ZERO)] = None
        return self.hint(p) >= 0

    def _record(self, guard: Guard) -> None:
        if self.closed:
            raise AssertionError(f"a guard too late: {guard}")
        self._assumed.add(guard)
        self.guards.append(guard)
        self._tighten(guard)

    def _tighten(self, guard: Guard) -> None:
        """Tighten the bounds of a symbol by a guard on that symbol alone."""
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
        """Forget the choices: the schedule made so far is used at all sizes."""
        self.choices.clear()

    def close(self) -> None:
        """Record no more guards; drop those that others imply: ``a <= 9`` beside ``a <= 5``."""
        self.closed = True
        for needed in self._required:
            if not self.implies_at_least_zero(dict(needed.terms)):
                self.guards.append(needed)
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
        """``(whole, rest)`` with ``p == q * whole + rest``; ``0 <= rest < q`` where provable."""
        whole, rest = divided(p, q)
        raised = added(rest, q)  # a negative rest becomes one in 0 .. q - 1
        if not self._is_residue(rest, q) and self._is_residue(raised, q):
            return added(whole, {(): -1}), raised
        return whole, rest

    def _is_residue(self, p: Polynomial, q: Polynomial) -> bool:
        """Whether ``0 <= p < q`` is proved."""
        return self.lower_bound(p) >= 0 and self.lower_bound(added(added(q, p, -1), {(): -1})) >= 0

    # -- other sizes ---------------------------------------------------------

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


@contextmanager
def sealed(env: ShapeEnv | None) -> Iterator[None]:
    """A context in which recording a guard is an error: answers about sizes have to be known."""
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
    """The terms of a guard without its constant, and the constant."""
    p = dict(guard.terms)
    constant = p.pop((), 0)
    return _terms(p), constant


def _terms(p: Polynomial) -> Terms:
    return tuple(sorted(p.items()))


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


def _normal(p: Polynomial, relation: Relation) -> Guard:
    """The guard ``p relation 0`` in normal form: ``4*a - 6 >= 0`` becomes ``a - 2 >= 0``."""
    factor = content({monomial: c for monomial, c in p.items() if monomial})
    if relation is Relation.AT_LEAST_ZERO:
        return Guard(_terms({m: v for m, c in p.items() if (v := c // factor)}), relation)
    factor = content(p) * (1 if in_order(p)[0][1] > 0 else -1)
    return Guard(_terms({m: c // factor for m, c in p.items()}), relation)
