"""Which bounds of a read's guards remain to be checked at the positions of a tile.

Each tile of a row has a part of its positions: the guard ``r < 2464`` always holds in a tile of
positions 0 to 2047, and never in one of positions 3072 to 3079. Several guards of one position are
checked as one: ``r >= 1``, ``r < 2464`` and ``r < 1233`` as ``1 <= r < 1233``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from ....shapes.index_map import Guard
from ....symbolic.index_expr import Affine, Axis, Digit
from ....symbolic.queries import is_known_less
from ....symbolic.sizes import is_size
from ....symbolic.substitution import strip_bounds
from ...tile.tile import Tile

Interval = tuple[float, float]
"""Inclusive bounds; an infinity where nothing is known."""

Remaining = tuple[Affine, int | None, int | None]
"""A position with the lower bound and the exclusive upper bound to check; None for one that holds
anyhow."""


class GuardRanges:
    """Guards compared with the positions of tiles, and with one another.

    Parameters
    ----------
    tiles : mapping
        The kernel axes by name.
    """

    def __init__(self, tiles: Mapping[str, Tile]) -> None:
        self._tiles = tiles

    def remaining(self, guards: Iterable[Guard], given: Iterable[Guard] = ()) -> list[Remaining]:
        """The bounds that remain to be checked.

        Parameters
        ----------
        given : iterable of Guard
            Guards that hold wherever the value is used.
        """
        known = self._intervals(given)
        found: dict[object, Remaining] = {}
        for guard in guards:
            place, low, high = _position_and_bounds(guard)
            if place not in known:
                known[place] = self._interval(place)
            least, most = known[place]
            bounds = place.range
            checks_low = least < low if _are_numbers(low) else not _is_above(bounds, low)
            checks_high = most >= high if _are_numbers(high) else not _is_below(bounds, high)
            wanted = place, low if checks_low else None, high if checks_high else None
            key = place if _are_numbers(low, high) else guard
            found[key] = _intersection(found[key], wanted) if key in found else wanted
        return [each for each in found.values() if each[1:] != (None, None)]

    def never(self, guards: Iterable[Guard]) -> bool:
        """Whether some guards do not hold together at any position of the tiles."""
        return any(low > high for low, high in self._intervals(guards).values())

    def _intervals(self, guards: Iterable[Guard]) -> dict[Affine, Interval]:
        """What positions are at least and at most where guards hold."""
        found: dict[Affine, Interval] = {}
        for place, low, high in map(_position_and_bounds, guards):
            if place not in found:
                found[place] = self._interval(place)
            least, most = found[place]
            if _are_numbers(low, high):
                found[place] = max(least, low), min(most, high - 1)
        return found

    def _interval(self, expr: Affine) -> Interval:
        """What an expression is at least and at most, in the tiles that it runs over."""
        low: float = 0
        high: float = 0
        for item, step in expr.terms:
            least, most = self._digit_interval(item)
            if not is_size(step):
                ends = sorted((least * step, most * step))
            elif least >= 0 and is_known_less(-1, step):
                ends = [0, inf]
            else:
                return -inf, inf
            low, high = low + ends[0], high + ends[1]
        return low + expr.const, high + expr.const

    def _digit_interval(self, item: Digit) -> Interval:
        if item.range is None:
            return -inf, inf
        bounds = _numbers_of(*item.range)
        base = item.base
        tile = self._tiles.get(base.name) if isinstance(base, Axis) else None
        if tile is None or tile.axis != base or tile.part is not None or tile.scattered:
            return bounds
        if not _are_numbers(tile.start, tile.end, item.div, item.mod or 1):
            return bounds
        first, last = tile.start // item.div, (tile.end - 1) // item.div
        if item.mod is None:
            return first, last
        same = first // item.mod == last // item.mod
        return (first % item.mod, last % item.mod) if same else bounds


def _position_and_bounds(guard: Guard) -> tuple[Affine, int, int]:
    """The position that a guard is about, and its bounds of it."""
    expr = strip_bounds(guard.expr)
    return expr - expr.const, guard.low - expr.const, guard.high - expr.const


def _intersection(first: Remaining, second: Remaining) -> Remaining:
    """The bounds of two guards of one position together."""
    lows = [n for n in (first[1], second[1]) if n is not None]
    highs = [n for n in (first[2], second[2]) if n is not None]
    return first[0], max(lows, default=None), min(highs, default=None)


def _are_numbers(*numbers: int) -> bool:
    """Whether none of them varies between runs."""
    return not any(map(is_size, numbers))


def _numbers_of(low: int, high: int) -> Interval:
    """Bounds with an infinity for each that varies between runs."""
    return -inf if is_size(low) else low, inf if is_size(high) else high


def _is_above(bounds: tuple[int, int] | None, low: int) -> bool:
    return bounds is not None and is_known_less(low - 1, bounds[0])


def _is_below(bounds: tuple[int, int] | None, high: int) -> bool:
    return bounds is not None and is_known_less(bounds[1], high)
