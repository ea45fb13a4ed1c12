"""What an index map is made of: which elements of its operands a view reads, and where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir import Const, Value
from ..symbolic.index_expr import Affine
from ..symbolic.loaded_index import Indexed
from ..symbolic.queries import is_known_less

Index = tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """``low <= expr < high``: a condition for reading a source."""

    expr: Affine
    low: int
    high: int

    @property
    def always(self) -> bool:
        """Whether it is proved to hold at all positions."""
        bounds = self.expr.range
        if bounds is None:
            return False
        inside = is_known_less(self.low - 1, bounds[0])
        return inside and is_known_less(bounds[1], self.high)

    @property
    def never(self) -> bool:
        """Whether it is proved to hold at no position."""
        bounds = self.expr.range
        if bounds is None:
            return False
        below = is_known_less(bounds[1], self.low)
        return below or is_known_less(self.high - 1, bounds[0])


@dataclass(frozen=True, slots=True)
class Source:
    """Where an element of a view may come from. A view reads the first source whose guards hold.

    Attributes
    ----------
    operand : Value, Const or None
        None stands for zero of any dtype.
    index : tuple of Affine
        The index in the operand.
    guards : tuple of Guard
        Conditions that must all hold.
    """

    operand: Value | Const | None
    index: Index = ()
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The index in the result at which a scatter stores an element, if the guards hold."""

    index: Index
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Pull:
    """The arguments of an index map.

    Attributes
    ----------
    index : tuple of Affine
        The index of an element.
    read : callable
        ``(value, index, dim) -> Affine``: an element of an index tensor, as an index of ``dim``.
    """

    index: Index
    read: Callable[[Value, Index, Indexed], Affine]
