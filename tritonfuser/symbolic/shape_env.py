"""``ShapeEnv``: symbols for sizes that vary, and the guards that a lowering records on them.

One env belongs to one lowering. ``known_*`` answers what bounds and guards prove of a polynomial
over the symbols. ``assume_*`` answers anything else by the hints (the sizes of this run), and
records the answer as a guard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .guards import Choice, Guard, Relation, below_zero, guard_of, tightest
from .polynomials import Polynomial, added, never_zero
from .symbols import Atom, Symbols


class ShapeEnv:
    """Symbols with what is known of them, and the guards recorded.

    Attributes
    ----------
    symbols : Symbols
        The sizes that vary, and numbers computed of them.
    guards : list of Guard
        The decisions that were made by the hints, in the order in which they were made.
    choices : dict
        The questions that ``choices.py`` answered by the hints, each once.
    closed : bool
        Whether recording a guard is an error: answers have to be known from now on.
    """

    def __init__(self) -> None:
        self.symbols = Symbols()
        self.guards: list[Guard] = []
        self.choices: dict[str, Choice] = {}
        self.closed = False
        self._assumed: set[Guard] = set()
        self._required: dict[Guard, None] = {}

    @property
    def atoms(self) -> list[Atom]:
        """The variables of polynomials: symbols, and numbers computed of them."""
        return self.symbols.atoms

    # -- what is known -------------------------------------------------------

    def known_at_least_zero(self, p: Polynomial) -> bool | None:
        """Whether the polynomial is 0 or more for all sizes; None where that is not known."""
        low, high = self.symbols.bounds(p)
        if low >= 0 or high < 0:
            return low >= 0
        if guard_of(p, Relation.AT_LEAST_ZERO) in self._assumed:
            return True
        return False if guard_of(below_zero(p), Relation.AT_LEAST_ZERO) in self._assumed else None

    def implies_at_least_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0 or more, by bounds of symbols and at most one guard."""
        if self.known_at_least_zero(p):
            return True
        return any(
            self.symbols.lower_bound(added(p, known, -times)) >= 0
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
        low, high = self.symbols.bounds(p)
        if low > 0 or high < 0 or never_zero(p):
            return False
        if guard_of(p, Relation.ZERO) in self._assumed:
            return True
        return False if guard_of(p, Relation.NOT_ZERO) in self._assumed else None

    def constant(self, p: Polynomial) -> int | None:
        """The value of the polynomial, if it is proved to be the same at all sizes; else None."""
        low, high = self.symbols.bounds(p)
        found = self.symbols.hint(p)
        known = low == high or self.known_zero(added(p, {(): found}, -1))
        return found if known else None

    # -- assuming ------------------------------------------------------------

    def assume_at_least_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0 or more: proved, else as in this run, with a guard."""
        known = self.known_at_least_zero(p)
        if known is not None:
            return known
        answer = self.symbols.hint(p) >= 0
        self._record(guard_of(p if answer else below_zero(p), Relation.AT_LEAST_ZERO))
        return answer

    def assume_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0: proved, else as in this run, with a guard."""
        known = self.known_zero(p)
        if known is not None:
            return known
        answer = self.symbols.hint(p) == 0
        self._record(guard_of(p, Relation.ZERO if answer else Relation.NOT_ZERO))
        return answer

    def assume_constant(self, p: Polynomial) -> int:
        """The value of the polynomial in this run, recorded as a guard."""
        found = self.symbols.hint(p)
        self.assume_zero(added(p, {(): found}, -1))
        return found

    def require_at_least_zero(self, p: Polynomial) -> bool:
        """Whether the polynomial is 0 or more in this run; then kernels serve no sizes below.

        Unlike what is assumed, this decides nothing: the guard comes when the env is closed.
        """
        known = self.known_at_least_zero(p)
        if known is None and self.symbols.hint(p) >= 0:
            self._required[guard_of(p, Relation.AT_LEAST_ZERO)] = None
        return self.symbols.hint(p) >= 0

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
        self.symbols.set_bounds(monomial[0], low, high)

    def keep_schedule(self) -> None:
        """Forget the choices: the schedule made so far is used at all sizes."""
        self.choices.clear()

    def close(self) -> None:
        """Record no more guards; drop those that others imply: ``a <= 9`` beside ``a <= 5``."""
        self.closed = True
        for needed in self._required:
            if not self.implies_at_least_zero(dict(needed.terms)):
                self.guards.append(needed)
        self.guards = tightest(self.guards)


@contextmanager
def sealed(env: ShapeEnv | None) -> Iterator[None]:
    """A context in which recording a guard is an error: answers about sizes have to be known."""
    if env is None:
        yield
        return
    was, env.closed = env.closed, True
    env.symbols.tighten_computed()
    try:
        yield
    finally:
        env.closed = was
