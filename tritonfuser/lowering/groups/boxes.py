"""Boxes of a loop nest: axes cut at positions, or split into digits (quotient, remainder).

An axis is named by where it comes from and by its extent: boxes of one shape have the same axes,
so one kernel can hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ...shapes.index_map import Guard, Index
from ...symbolic.index_expr import Affine, Axis, Digit, digit
from ...symbolic.queries import is_known_equal, is_known_less, known_divmod
from ...symbolic.sizes import hint
from ...symbolic.substitution import substitute


@dataclass(frozen=True)
class Box:
    """Some positions of a loop nest, as a loop nest of their own.

    Attributes
    ----------
    axes : tuple of Axis
        Its axes, in the order of those that it was made of. None of one position.
    at : mapping of Axis to Affine
        Where the axes that were cut or split are, as functions of its own.
    """

    axes: tuple[Axis, ...]
    at: Mapping[Axis, Affine] = field(default_factory=dict)

    def index(self, index: Index) -> Index:
        """An index over the axes that it was made of, over its own."""
        return tuple(substitute(item, self.at) for item in index)

    def then(self, inner: Box) -> Box:
        """Compose: ``inner``, a box of this box, as a box of the original loop nest."""
        moved = {axis: substitute(at, inner.at) for axis, at in self.at.items()}
        return Box(inner.axes, {**inner.at, **moved})

    def cut(self, axis: Axis, start: int, stop: int) -> Box:
        """The positions from ``start`` to ``stop`` of one of its axes."""
        part = Axis(f"{axis.name}:{stop - start}", stop - start)
        return self.then(_replaced(self.axes, axis, (part,), digit(part) + start))

    def split(self, item: Digit) -> Box:
        """This box with the axis of a digit split into the digit and the axes around it."""
        axis = item.base
        assert isinstance(axis, Axis) and item.mod is not None
        step = item.div * item.mod
        high = Axis(f"{axis.name}/{step}", axis.extent // step)
        middle = self.digit_axis(item)
        low = Axis(f"{axis.name}%{item.div}", item.div)
        at = digit(high) * step + digit(middle) * item.div + digit(low)
        return self.then(_replaced(self.axes, axis, (high, middle, low), at))

    @staticmethod
    def digit_axis(item: Digit) -> Axis:
        """The axis that a digit is after ``split``."""
        assert isinstance(item.base, Axis) and item.mod is not None
        return Axis(f"{item.base.name}/{item.div}%{item.mod}", item.mod)


def _replaced(axes: tuple[Axis, ...], axis: Axis, by: tuple[Axis, ...], at: Affine) -> Box:
    kept = tuple(a for a in by if not is_known_equal(a.extent, 1))
    place = axes.index(axis)
    return Box((*axes[:place], *kept, *axes[place + 1 :]), {axis: at})


class Cut(NamedTuple):
    """Where a guard starts and ends to hold along an axis, or along a digit of one.

    Attributes
    ----------
    digit : Digit
        The axis, or its digit.
    points : tuple of int
        The positions, one or two, that divide those where the guard holds from others.
    """

    digit: Digit
    points: tuple[int, ...]

    @property
    def axis(self) -> Axis:
        """The axis that is cut, or split first."""
        assert isinstance(self.digit.base, Axis)
        return self.digit.base

    @property
    def is_whole(self) -> bool:
        """Whether the axis itself is cut."""
        return _is_whole(self.digit)


def _is_whole(item: Digit) -> bool:
    if not isinstance(item.base, Axis) or not is_known_equal(item.div, 1):
        return False
    return item.mod is None or is_known_equal(item.mod, item.base.extent)


def cut_of(guard: Guard) -> Cut | None:
    """Where to cut a loop nest so that a guard is constant in every box.

    None where that is not known for all sizes, and for guards that no cut across one axis decides.
    """
    expr, bounds = guard.expr, guard.expr.range
    if bounds is None or expr.loaded():
        return None
    ends = [n for n in (guard.low, guard.high) if not _is_outside(n, bounds)]
    ends = [end - expr.const for end in ends]
    lone = _as_digit(Affine(expr.terms), ends)
    if lone is None or not ends:
        return None
    item, points = lone
    if not isinstance(item.base, Axis) or not _splits(item):
        return None
    extent = item.base.extent if item.mod is None else item.mod
    inside = all(is_known_less(0, n) and is_known_less(n, extent) for n in points)
    in_order = all(is_known_less(a, b) for a, b in pairwise(points))
    return Cut(item, tuple(points)) if inside and in_order else None


def _is_outside(end: int, bounds: tuple[int, int]) -> bool:
    """Whether all positions are on one side of an end."""
    return is_known_less(end - 1, bounds[0]) or is_known_less(bounds[1], end)


def _splits(item: Digit) -> bool:
    """Whether an axis factors into a digit, whole digits above it and whole digits below it."""
    assert isinstance(item.base, Axis)
    if item.mod is None:
        return is_known_equal(item.div, 1)
    return is_known_equal(known_divmod(item.base.extent, item.div * item.mod)[1], 0)


def _as_digit(expr: Affine, ends: list[int]) -> tuple[Digit, list[int]] | None:
    """A digit and thresholds on it that are equivalent to thresholds on an expression.

    ``96 * h + j < 3072`` where ``0 <= j < 96`` as ``h < 32``.
    """
    while len(expr.terms) > 1:
        steps = sorted({step for _, step in expr.terms}, key=hint)
        coarser = next((c for step in steps[1:] if (c := _coarser(expr, ends, step))), None)
        if coarser is None:
            return None
        expr, ends = coarser
    for item, step in expr.terms:
        if not is_known_less(0, step):
            return None
        # Below an end is below the first multiple of the step at it or behind it.
        found = [known_divmod(end + step - 1, step) for end in ends]
        known = type(step) is int and all(type(end) is int for end in ends)
        exact = all(is_known_equal(rest, step - 1) for _, rest in found)
        return (item, [whole for whole, _ in found]) if known or exact else None
    return None


def _coarser(expr: Affine, ends: Iterable[int], step: int) -> tuple[Affine, list[int]] | None:
    """An expression and thresholds divided by a common step, without terms below the step."""
    whole, rest = expr.split(step)
    bounds = rest.range
    if bounds is None or not (is_known_less(-1, bounds[0]) and is_known_less(bounds[1], step)):
        return None
    if not whole.terms or len(whole.terms) >= len(expr.terms):
        return None
    divided = [known_divmod(end, step) for end in ends]
    if not all(is_known_equal(left, 0) for _, left in divided):
        return None
    return whole, [place for place, _ in divided]
