"""The contiguous run of an index expression along a tile, as Triton's axis analysis proves it.

Triton gives neighbouring threads the elements along the dim of a tile with the longest run that it
proves: of ``x`` it proves a run of the tile's width, of ``x % 12`` one of 4, of ``x * 2`` and
``x % 305`` none. These are the rules of its analysis of axes (``AxisInfo`` in
``lib/Analysis/AxisInfo.cpp``, Triton 3.6), as far as what kernels compute with indices needs them.
"""

from __future__ import annotations

from typing import NamedTuple

from ...symbolic.index_expr import Affine, Axis, Bounded, Digit
from ...symbolic.loaded_index import LoadedIndex
from ...symbolic.queries import is_known_equal, is_known_less
from ...symbolic.sizes import is_size
from ...symbolic.substitution import strip_bounds
from ..access.reads import Read
from ..access.traffic import axes_of
from .tile import Tile

_MOST = 1 << 30
"""Stands for any power of two: that of a constant, or of what does not run along a tile."""


class _Known(NamedTuple):
    """Powers of two that are known of a number, along a tile.

    Attributes
    ----------
    run : int
        Neighbours that are consecutive.
    same : int
        Neighbours that are equal.
    multiple : int
        What the first of each run, or of equal neighbours, is a multiple of.
    """

    run: int = 1
    same: int = 1
    multiple: int = 1


def proven_run(offset: Affine, tile: Tile) -> int:
    """Neighbours along a tile whose offsets Triton knows to be consecutive; 1 for none.

    The tile's limit on the neighbours of a thread does not count.
    """
    return _of_sum(strip_bounds(offset), tile, {}).run


_Sums = dict[int, _Known]
"""What is known of sums so far, by identity: digits of digits have sums in common, and each would
be followed as often as there are ways to it."""


def _of_sum(expr: Affine, tile: Tile, sums: _Sums) -> _Known:
    if id(expr) not in sums:
        total = _of_constant(expr.const)
        for item, step in expr.terms:
            total = _sum(total, _scaled(_of_digit(item, tile, sums), step))
        sums[id(expr)] = total
    return sums[id(expr)]


def _sum(one: _Known, other: _Known) -> _Known:
    run = max(min(one.same, other.run), min(one.run, other.same))
    return _Known(run, min(one.same, other.same), min(one.multiple, other.multiple))


def _scaled(known: _Known, step: int) -> _Known:
    if not is_known_equal(step, 1):
        return _Known(1, known.same, min(known.multiple * _power(step), _MOST))
    return known


def _of_digit(item: Digit, tile: Tile, sums: _Sums) -> _Known:
    known = _of_base(item, tile, sums)
    if not is_known_equal(item.div, 1):
        equal = min(known.run, known.multiple, _power(item.div))
        known = _Known(1, max(known.same, equal))
    if item.mod is None or _holds_all(item):
        return known
    power = _power(item.mod)
    run = min(known.run, known.multiple, power)
    return _Known(run, known.same, min(known.multiple, power))


def _holds_all(item: Digit) -> bool:
    """Whether a digit of an axis is not written as a remainder: all of the axis is below it."""
    base = item.base
    if not isinstance(base, Axis | Bounded) or item.mod is None:
        return False
    return is_known_less(base.extent - 1, item.div * item.mod)


def _of_base(item: Digit, tile: Tile, sums: _Sums) -> _Known:
    base = item.base
    if base == tile.axis:
        return _of_positions(tile)
    if isinstance(base, Axis):
        return _of_constant(None)
    if isinstance(base, Bounded):
        return _of_sum(base.expr, tile, sums)
    if isinstance(base, Affine):
        return _of_sum(base, tile, sums)
    if tile.axis not in axes_of(Affine(((item, 1),))):
        return _of_constant(None)
    return _of_loaded(base, tile, sums) if isinstance(base.key, Read) else _Known()


def _of_loaded(base: LoadedIndex, tile: Tile, sums: _Sums) -> _Known:
    """What is known of an index from memory: neighbours that read one element have the same."""
    assert isinstance(base.key, Read)
    same = min((_of_sum(item, tile, sums).same for item in base.key.index), default=_MOST)
    return _Known(1, same, 1)


def _of_positions(tile: Tile) -> _Known:
    if tile.scattered:
        return _Known()
    return _Known(tile.width, 1, tile.multiple if tile.part is None else 1)


def _of_constant(number: int | None) -> _Known:
    """What is known of a number that is the same all along a tile; None for any number."""
    return _Known(1, _MOST, 1 if number is None else _power(number))


def _power(number: int) -> int:
    """The largest power of two that divides a number; 1 of a size that varies."""
    if is_size(number):
        return 1
    return _MOST if number == 0 else min(number & -number, _MOST)
