"""The parts of a ``ShapeEnv``: atoms (symbols, and numbers computed from them), guards, choices."""

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
