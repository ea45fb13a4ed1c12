"""``Guard`` and ``Choice``: the decisions about sizes that a ``ShapeEnv`` records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .polynomials import Polynomial, Terms, added, content, in_order, terms_of


class Relation(Enum):
    """The relation of a guard's polynomial to 0."""

    AT_LEAST_ZERO = ">="
    ZERO = "=="
    NOT_ZERO = "!="


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on sizes: a polynomial and its relation to 0."""

    terms: Terms
    relation: Relation


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A question that was answered by the sizes of this run. Any answer gives correct kernels.

    Attributes
    ----------
    ask : callable
        The question, a function of facts in plain numbers.
    facts : object
        The facts, which contain sizes.
    answer : object
        The answer in this run.
    """

    ask: Callable[[Any], Any]
    facts: Any
    answer: Any


def guard_of(p: Polynomial, relation: Relation) -> Guard:
    """The guard ``p relation 0`` in normal form: ``4*a - 6 >= 0`` becomes ``a - 2 >= 0``."""
    factor = content({monomial: c for monomial, c in p.items() if monomial})
    if relation is Relation.AT_LEAST_ZERO:
        return Guard(terms_of({m: v for m, c in p.items() if (v := c // factor)}), relation)
    factor = content(p) * (1 if in_order(p)[0][1] > 0 else -1)
    return Guard(terms_of({m: c // factor for m, c in p.items()}), relation)


def below_zero(p: Polynomial) -> Polynomial:
    """A polynomial that is 0 or more where ``p`` is less than 0."""
    return added({(): -1}, p, -1)


def tightest(guards: Iterable[Guard]) -> list[Guard]:
    """The guards without those that another one implies: ``a <= 9`` beside ``a <= 5``."""
    guards = list(guards)
    kept: dict[Terms, Guard] = {}
    for guard in guards:
        if guard.relation is not Relation.AT_LEAST_ZERO:
            continue
        rest, constant = _parted(guard)
        if rest not in kept or constant < _parted(kept[rest])[1]:
            kept[rest] = guard
    needed = set(kept.values())
    return [g for g in guards if g.relation is not Relation.AT_LEAST_ZERO or g in needed]


def _parted(guard: Guard) -> tuple[Terms, int]:
    """The terms of a guard without its constant, and the constant."""
    p = dict(guard.terms)
    constant = p.pop((), 0)
    return terms_of(p), constant
