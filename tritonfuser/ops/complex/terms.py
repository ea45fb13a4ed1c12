"""``Pair`` and ``Term``: the notation in which formulas of complex numbers record ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...ir import Const

Rule = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """The real and the imaginary part: two values, constants or terms."""

    re: Any
    im: Any


class Term:
    """A real operand whose operators and methods record ops: ``x * y``, ``x.sin()``.

    Parameters
    ----------
    ops : OpNamespace
        Where they are recorded.
    operand : Value or Const
        What it stands for.
    """

    def __init__(self, ops: Any, operand: Any) -> None:
        self._ops = ops
        self.operand = operand

    def __getattr__(self, name: str) -> Callable[..., Term]:
        def record(*others: Any) -> Term:
            made = getattr(self._ops, name)(self.operand, *map(plain, others))
            return Term(self._ops, made)

        return record

    @property
    def number(self) -> Any:
        """The number, if it is a constant."""
        return self.operand.value if isinstance(self.operand, Const) else None

    def __add__(self, other: Any) -> Term:
        return self.add(other)

    def __radd__(self, other: Any) -> Term:
        return self.add(other)

    def __sub__(self, other: Any) -> Term:
        return self.sub(other)

    def __rsub__(self, other: Any) -> Term:
        return Term(self._ops, self._ops.sub(other, self.operand))

    def __mul__(self, other: Any) -> Term:
        return self.mul(other)

    def __rmul__(self, other: Any) -> Term:
        return self.mul(other)

    def __truediv__(self, other: Any) -> Term:
        return self.div(other)

    def __rtruediv__(self, other: Any) -> Term:
        return Term(self._ops, self._ops.div(other, self.operand))

    def __neg__(self) -> Term:
        return self.neg()


def plain(item: Any) -> Any:
    """What a term stands for, in pairs and tuples too; other things as they are."""
    if isinstance(item, Term):
        return item.operand
    if isinstance(item, Pair):
        return Pair(plain(item.re), plain(item.im))
    return tuple(map(plain, item)) if isinstance(item, tuple) else item


def formula(function: Callable[..., Any]) -> Rule:
    """A rule from a function of terms and of pairs of terms."""

    def term(ops: Any, operand: Any) -> Any:
        if isinstance(operand, Pair):
            return Pair(Term(ops, operand.re), Term(ops, operand.im))
        return Term(ops, operand)

    @functools.wraps(function)
    def rule(ops: Any, *operands: Any, **attrs: Any) -> Any:
        return plain(function(*(term(ops, x) for x in operands), **attrs))

    return rule
