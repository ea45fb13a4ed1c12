"""The positions at which kernels compute a value for each element of their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_POSITIONS = 4
"""Up to so many positions of a value for each element of a result, a kernel computes all of them. A
kernel whose time is that of its memory has some forty instructions an element."""

MOST_EXPRESSIONS = 64
"""Up to so many positions, a kernel has an expression of a value for each, even if an element needs
only one of them, as for parts of a concatenation."""

Key = object
"""Identifies a position of a value: equal keys are equal positions."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position at which a kernel computes a value for a result.

    Attributes
    ----------
    share : float
        Share of the result's elements that need it.
    levels : int
        Levels of nested sums in its expression, at most.
    """

    share: float
    levels: int


@dataclass
class Uses:
    """The positions of a value, for each result by its number."""

    positions: dict[int, dict[Key, Position]] = field(default_factory=dict)

    def add(self, result: int, key: Key, position: Position) -> None:
        """Add a use of the value. Positions beyond the number that decides are dropped."""
        known = self.positions.setdefault(result, {})
        before = known.get(key)
        if before is None and len(known) > 2 * MOST_EXPRESSIONS:
            return
        if before is not None:
            share, levels = max(position.share, before.share), max(position.levels, before.levels)
            position = Position(share, levels)
        known[key] = position

    def repeated(self, elements: int, of_results: Sequence[int]) -> float:
        """How often an element of the value is recomputed; 0 if that is seldom.

        Parameters
        ----------
        elements : int
            Of the value.
        of_results : sequence of int
            Elements of each result. A result with fewer elements than the value needs several
            positions without recomputing any, as an unrolled sum of 8 elements.
        """
        often = 0.0
        for result, known in self.positions.items():
            each = max(elements / max(of_results[result], 1), 1.0)
            shares = sum(position.share for position in known.values()) / each
            again = shares - 1 if shares > MOST_POSITIONS else 0.0
            often = max(often, again, len(known) - 1 if len(known) > MOST_EXPRESSIONS else 0.0)
        return often

    @property
    def levels(self) -> int:
        """Levels of the position with most of them."""
        found = (p.levels for known in self.positions.values() for p in known.values())
        return max(found, default=0)
