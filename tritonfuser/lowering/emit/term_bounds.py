"""Bounds of the integer terms in a kernel's text: whether 32 bits hold all of them.

What is written of positions is told here, term by term: positions along tiles, the last ones past
the end too, since masks are made of them; steps of loops; products and sums that an index is made
of; coefficients that are computed of sizes. What is computed of a position counts where the mask
holds: elsewhere nobody uses it. Terms that are added to an address one by one are extended to 64
bits one by one, so that only each of them has to fit.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...shapes import INT32_LIMIT
from ...symbolic.index_expr import Affine, Digit
from ...symbolic.loaded_index import Loaded
from ...symbolic.queries import (
    assume_at_most,
    is_implied_less,
    is_known_less,
    known_divmod,
    min_by_hint,
)
from ...symbolic.sizes import is_size, parts_by_sign
from ..tile.tile import Tile


class TermBounds:
    """Upper bounds of all terms of a text; of terms below 0, of their negatives."""

    def __init__(self) -> None:
        self._most = 0
        self._sizes: dict[int, None] = {}
        self._limits = _Limits()

    def add(self, bound: int) -> None:
        """A number that some term is never above."""
        if not is_size(bound):
            self._most = max(self._most, bound)
        elif not is_known_less(bound, INT32_LIMIT):
            self._sizes[bound] = None

    def add_tile(self, tile: Tile, before: int = 0) -> None:
        """Add the positions of a tile, also those past its end, and the end of a loop over it.

        Parameters
        ----------
        before : int
            Positions of the axis that other programs have, at most.
        """
        for number in (tile.start, tile.end, tile.mask_end, tile.axis.extent):
            self.add_number(number)
        past = tile.width if tile.masked else 0
        self.add(before + (tile.start + tile.width if tile.is_behind else tile.end + past))

    def add_number(self, number: int) -> None:
        """A number in the text: one of sizes is computed of products and sums."""
        if is_size(number):
            for part in parts_by_sign(number):
                self.add(part)

    def add_apart(self, expr: Affine) -> None:
        """The terms of an index that are added to an address one by one."""
        for item, coefficient in expr.terms:
            self.add_number(coefficient)
            for bound in self._limits.ends(item, coefficient):
                self.add(bound)
        self.add_number(expr.const)

    def add_sum(self, expr: Affine, beyond: int = 0) -> None:
        """Add the terms of an index, and their partial sums in any order.

        Parameters
        ----------
        beyond : int
            What may be added to it.
        """
        below, above = _by_sign(expr.const + beyond)
        self.add_number(expr.const)
        for item, coefficient in expr.terms:
            self.add_number(coefficient)
            low, high = self._limits.ends(item, coefficient)
            below, above = below + low, above + high
        self.add(below)
        self.add(above)

    def assume_long(self) -> bool:
        """Whether a term needs 64 bits, from here on for all sizes."""
        if self._most >= INT32_LIMIT:
            return True
        asked = [bound for bound in self._sizes if not is_implied_less(bound, INT32_LIMIT)]
        return any(assume_at_most(INT32_LIMIT, bound) for bound in _greatest(asked))


def _greatest(bounds: Iterable[int]) -> list[int]:
    """The terms that no other one bounds from above; each once."""
    found: list[int] = []
    for bound in bounds:
        if not any(is_known_less(bound - 1, other) for other in found):
            found = [other for other in found if not is_known_less(other - 1, bound)]
            found.append(bound)
    return found


def _by_sign(number: int) -> tuple[int, int]:
    """A number as its negative, if it is below 0, and as it is, if it is above."""
    if is_known_less(-1, number):
        return 0, number
    return (-number, 0) if is_known_less(number, 1) else parts_by_sign(number)


class _Limits:
    """What digits are at least and at most. A sum is looked at once: expressions share their parts,
    so that ten views one behind the other make thousands of ways to an axis."""

    def __init__(self) -> None:
        self._known: dict[Affine, int] = {}

    def ends(self, item: Digit, coefficient: int) -> tuple[int, int]:
        """What ``item * coefficient`` is at least, as its negative, and at most."""
        below, above = _by_sign(coefficient)
        most = self._most(item)
        return below * most, above * most

    def _most(self, item: Digit) -> int:
        """What a digit is at most where it is used; 0 of a number that may be any."""
        base = item.base
        if isinstance(base, Loaded):
            most = 0 if base.dim is None else base.dim.extent - 1
        else:
            most = self._above(base) if isinstance(base, Affine) else base.extent - 1
        most = _quotient(most, item.div)
        return most if item.mod is None else min_by_hint(most, item.mod - 1)

    def _above(self, expr: Affine) -> int:
        """What the terms of an expression that are above 0 are together at most."""
        if expr not in self._known:
            total = _by_sign(expr.const)[1]
            for item, coefficient in expr.terms:
                total = total + self.ends(item, coefficient)[1]
            self._known[expr] = total
        return self._known[expr]


def _quotient(number: int, by: int) -> int:
    whole, rest = known_divmod(number, by)
    within = is_known_less(-1, rest) and is_known_less(rest, by)
    return whole if within else number // by
