"""Loads and stores of interleaved pairs: both elements of each pair at every position.

Boxes of interleaved values have one element of a pair each: a rotary embedding of pairs reads
``2 * x`` and ``2 * x + 1``, and stores both. Together they are a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ir import Value
from ...symbolic.index_expr import Affine, Axis, digit
from ...symbolic.sizes import is_size
from .traffic import Traffic


class Half(NamedTuple):
    """An offset that is of a pair.

    Attributes
    ----------
    pair : Affine
        The offset of the pair's first element.
    is_second : bool
        Whether the offset is that of the second one.
    """

    pair: Affine
    is_second: bool

    @property
    def in_pairs(self) -> Affine:
        """Where the pair is, in pairs."""
        return Affine(tuple((d, step // 2) for d, step in self.pair.terms), self.pair.const // 2)

    def run(self, axis: Axis, doubled: Axis) -> Affine:
        """The offset of the elements of all pairs along an axis, where each position is two."""
        total = Affine((), self.pair.const)
        for item, step in self.pair.terms:
            along = item.base == axis
            kept = digit(doubled, 2 * item.div, item.mod) if along else Affine(((item, 1),))
            total = total + kept * step
        return total + digit(doubled, 1, 2)


def pairs_in(traffic: Sequence[Traffic], fastest: Axis) -> dict[Traffic, Half]:
    """The loads and stores of which both halves are there, each with which pair it is of."""
    halves = {item: half_of(item.offset, fastest) for item in traffic}
    places: dict[tuple[Value, bool, Affine], list[Traffic]] = {}
    for item, half in halves.items():
        if half is not None:
            places.setdefault((item.value, item.is_store, half.pair), []).append(item)
    both = (item for found in places.values() if len(found) == 2 for item in found)
    return {item: half for item in both if (half := halves[item]) is not None}


def half_of(offset: Affine, fastest: Axis) -> Half | None:
    """Which pair an offset is of, if neighbours along an axis are of neighbouring pairs."""
    steps = [step for _, step in offset.terms]
    if is_size(offset.const) or any(is_size(step) or step % 2 for step in steps):
        return None
    if not all(isinstance(item.base, Axis) and not is_size(item.div) for item, _ in offset.terms):
        return None
    if not any(d.base == fastest and d.div == 1 and step == 2 for d, step in offset.terms):
        return None
    is_second = offset.const % 2
    return Half(Affine(offset.terms, offset.const - is_second), bool(is_second))
