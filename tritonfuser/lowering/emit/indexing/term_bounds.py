"""Bounds of the integer terms in a kernel's text: whether 32 bits hold all of them.

Writers report each term as they write it:

- positions along tiles, those past the end of an axis too, since masks compare them;
- the ends of loops, and coefficients that are computed from sizes;
- products and partial sums of index expressions, where masks hold, those of guards too: elsewhere
  they are not used.

Terms of an offset are added to a pointer one by one. Each is extended to 64 bits by itself, so
only the terms have to fit, and not their sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ....shapes.index_map import Guard
from ....shapes.memory import INT32_LIMIT
from ....symbolic.index_expr import Affine, Axis, Base, Digit
from ....symbolic.loaded_index import LoadedIndex
from ....symbolic.queries import (
    assume_at_most,
    is_implied_less,
    is_known_equal,
    is_known_less,
    known_divmod,
    min_by_hint,
)
from ....symbolic.sizes import is_size, parts_by_sign
from ....symbolic.substitution import strip_bounds
from ...tile.tile import Tile


class TermBounds:
    """Collects upper bounds of the magnitudes of all terms of a text."""

    def __init__(self) -> None:
        self._most = 0
        self._sizes: dict[int, None] = {}
        self._limits = _Limits()

    def add(self, bound: int) -> None:
        """Add the upper bound of a term."""
        if not is_size(bound):
            self._most = max(self._most, bound)
        elif not is_known_less(bound, INT32_LIMIT):
            self._sizes[bound] = None

    def add_tile(self, tile: Tile, before: int = 0) -> None:
        """Add the positions of a tile, also those past its end, and the end of a loop over it.

        Parameters
        ----------
        before : int
            The most positions of the axis that come before the tile.
        """
        for number in (tile.start, tile.end, tile.mask_end, tile.axis.extent):
            self.add_number(number)
        past = tile.width if tile.masked else 0
        self.add(before + (tile.start + tile.width if tile.is_behind else tile.end + past))

    def add_number(self, number: int) -> None:
        """Add a number in the text. A size is a sum of products, which count too."""
        if is_size(number):
            for part in parts_by_sign(number):
                self.add(part)

    def add_offset(self, expr: Affine, guards: Iterable[Guard] = ()) -> None:
        """Add the terms of an index expression that is added to a pointer.

        Parameters
        ----------
        guards : iterable of Guard
            Nobody uses the element where these do not hold.
        """
        ends = _ends_of_guards(guards)
        for item, coefficient in expr.terms:
            self._add_factor(coefficient)
            for bound in self._limits.ends(item, coefficient, ends):
                self.add(bound)
        self.add_number(expr.const)

    def add_sum(self, expr: Affine, beyond: int = 0) -> None:
        """Add the terms of an index expression, and their partial sums in any order.

        Parameters
        ----------
        beyond : int
            The most that the kernel adds to the result.
        """
        below, above = _by_sign(expr.const + beyond)
        self.add_number(expr.const)
        for item, coefficient in expr.terms:
            self._add_factor(coefficient)
            low, high = self._limits.ends(item, coefficient)
            below, above = below + low, above + high
        self.add(below)
        self.add(above)

    def _add_factor(self, coefficient: int) -> None:
        """Add the factor of a digit: in the text it is as large where the digit is 0 alone."""
        self.add_number(coefficient)
        if not is_size(coefficient):
            self.add(abs(coefficient))

    def assume_long(self) -> bool:
        """Whether some term needs 64 bits. Where that depends on sizes, a guard is recorded."""
        if self._most >= INT32_LIMIT:
            return True
        asked = [bound for bound in self._sizes if not is_implied_less(bound, INT32_LIMIT)]
        return any(assume_at_most(INT32_LIMIT, bound) for bound in _greatest(asked))


def _greatest(bounds: Iterable[int]) -> list[int]:
    """Bounds without those that are known to be at most another one."""
    found: list[int] = []
    for bound in bounds:
        if not any(is_known_less(bound - 1, other) for other in found):
            found = [other for other in found if not is_known_less(other - 1, bound)]
            found.append(bound)
    return found


def _ends_of_guards(guards: Iterable[Guard]) -> dict[Digit | Base, int]:
    """The ends of digits that a guard alone is about, and of axes; of those that do not vary."""
    found: dict[Digit | Base, int] = {}
    for guard in guards:
        place = strip_bounds(guard.expr)
        end = guard.high - place.const
        if len(place.terms) == 1 and not is_size(end):
            ((item, coefficient),) = place.terms
            if is_known_equal(coefficient, 1):
                about = item.base if _is_whole(item) else item
                found[about] = min(found.get(about, end), end)
    return found


def _is_whole(item: Digit) -> bool:
    """Whether a digit is its base."""
    if not is_known_equal(item.div, 1):
        return False
    base, mod = item.base, item.mod
    return mod is None or (isinstance(base, Axis) and is_known_equal(mod, base.extent))


def _by_sign(number: int) -> tuple[int, int]:
    """``(negative, positive)`` parts of a number, both 0 or more: ``-3`` -> ``(3, 0)``.

    A size of unknown sign has both, see ``parts_by_sign``.
    """
    if is_known_less(-1, number):
        return 0, number
    return (-number, 0) if is_known_less(number, 1) else parts_by_sign(number)


class _Limits:
    """Bounds of digits. The bound of a sum is cached.

    Expressions of a chain of views share their parts: without the cache the work would double with
    each view.
    """

    def __init__(self) -> None:
        self._known: dict[Affine, int] = {}

    def ends(
        self, item: Digit, coefficient: int, ends: Mapping[Digit | Base, int] = MappingProxyType({})
    ) -> tuple[int, int]:
        """``(below, above)`` with ``-below <= item * coefficient <= above``, where digits have the
        ``ends`` that guards let through."""
        below, above = _by_sign(coefficient)
        most = self._most(item, ends)
        return below * most, above * most

    def _most(self, item: Digit, ends: Mapping[Digit | Base, int]) -> int:
        """The upper bound of a digit where it is used; 0 for a loaded value without a dim."""
        base = item.base
        if isinstance(base, LoadedIndex):
            most = 0 if base.dim is None else base.dim.extent - 1
        else:
            most = self._above(base) if isinstance(base, Affine) else base.extent - 1
        most = _quotient(_below(most, ends.get(base)), item.div)
        most = most if item.mod is None else min_by_hint(most, item.mod - 1)
        return _below(most, ends.get(item))

    def _above(self, expr: Affine) -> int:
        """The upper bound of the sum of an expression's positive terms."""
        if expr not in self._known:
            total = _by_sign(expr.const)[1]
            for item, coefficient in expr.terms:
                total = total + self.ends(item, coefficient)[1]
            self._known[expr] = total
        return self._known[expr]


def _below(most: int, end: int | None) -> int:
    return most if end is None or is_size(most) else min(most, max(end - 1, 0))


def _quotient(number: int, by: int) -> int:
    whole, rest = known_divmod(number, by)
    within = is_known_less(-1, rest) and is_known_less(rest, by)
    return whole if within else number // by
