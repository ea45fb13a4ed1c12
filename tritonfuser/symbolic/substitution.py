"""Index expressions with parts replaced: axes by expressions, bounded ones by what is in them."""

from __future__ import annotations

from collections.abc import Mapping

from .index_expr import Affine, Axis, Bounded, Digit, digit
from .loaded_index import LoadedIndex
from .queries import is_known_equal


def substitute(expr: Affine, axes: Mapping[Axis, Affine]) -> Affine:
    """``expr`` with axes replaced by expressions; axes not named stay."""
    total = Affine((), expr.const)
    for item, coefficient in expr.terms:
        total = total + _substitute_digit(item, axes) * coefficient
    return total


def _substitute_digit(item: Digit, axes: Mapping[Axis, Affine]) -> Affine:
    base = item.base
    if isinstance(base, LoadedIndex):
        return Affine(((item, 1),))
    if isinstance(base, Bounded):
        return digit(Bounded(substitute(base.expr, axes), base.extent), item.div, item.mod)
    inner = axes.get(base, digit(base)) if isinstance(base, Axis) else substitute(base, axes)
    found = inner // item.div
    return found if item.mod is None else found % item.mod


def strip_bounds(expr: Affine) -> Affine:
    """``expr`` with whole ``Bounded`` expressions replaced by the expressions in them.

    ``Bounded(x - 768) + 768 * y`` -> ``x + 768 * y - 768``.
    """
    if not any(isinstance(item.base, Bounded) for item, _ in expr.terms):
        return expr
    total = Affine((), expr.const)
    for item, coefficient in expr.terms:
        base = item.base
        if isinstance(base, Bounded) and _is_whole(item, base):
            total = total + strip_bounds(base.expr) * coefficient
        else:
            total = total + Affine(((item, coefficient),))
    return total


def _is_whole(item: Digit, base: Bounded) -> bool:
    """Whether a digit equals its base."""
    whole = item.mod is None or is_known_equal(item.mod, base.extent)
    return whole and is_known_equal(item.div, 1)
