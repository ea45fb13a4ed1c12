"""What a ``ShapeEnv`` holds: atoms (symbols and what is computed from them), guards, choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .polynomials import Terms

LARGEST_SIZE = 2**62
"""The upper bound of a size of which nothing else is known, in elements."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A symbol, or a quotient or a residue that is no polynomial of others.

    Attributes
    ----------
    name : str
        ``size0``: the atom times ``multiple``.
    hint : int
        What it is in this run.
    low, high : int
        Bounds, inclusive.
    multiple : int
        Of a symbol, and of what is chosen: the number that the size is a multiple of.
    parts : (Terms, str, Terms), optional
        Of what is computed: ``numerator // denominator`` or ``%``.
    chosen : callable, optional
        Of what heuristics choose: gives the size from the values of the atoms before it.
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
        """Whether it is a size of the inputs, and not made from others."""
        return self.parts is None and self.chosen is None


class Relation(Enum):
    """What a guard says of its polynomial."""

    AT_LEAST_ZERO = ">="
    ZERO = "=="
    NOT_ZERO = "!="


@dataclass(frozen=True, slots=True)
class Guard:
    """A polynomial and what holds of it."""

    terms: Terms
    relation: Relation


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A question that was answered by the sizes of this run, where any answer is right.

    Attributes
    ----------
    ask : callable
        The question, of facts in plain numbers.
    facts : object
        The facts, with sizes in them.
    answer : object
        What it is in this run.
    """

    ask: Callable[[Any], Any]
    facts: Any
    answer: Any
