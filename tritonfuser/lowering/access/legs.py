"""The offset of a load or store in, its legs out: by how much each axis of a kernel moves it.

``768 * row + column % 4`` has two: 768 elements a position of ``row``, and one a position of
``column``, back to 0 after every fourth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...heuristics.problem import Leg
from ...symbolic.index_expr import Affine, Axis, Bounded, Digit
from ...symbolic.loaded_index import Loaded
from ...symbolic.sizes import hint
from .read_footprint import Read

ANYWHERE = 1009
"""Elements between neighbours that are read at indices from memory, for each step of the index: no
two are taken to share a sector. A prime, so that no alignment is read off it."""


def legs_of(offset: Affine, axes: Sequence[Axis]) -> tuple[Leg, ...]:
    """The legs of an offset along axes, in the order of its terms.

    Of a digit of a sum, as ``(4 * a + b) // 6``, each axis is taken alone. It moves by the whole
    steps that it makes, or by one after as many positions as make one.
    """
    places = {axis: place for place, axis in enumerate(axes)}
    return tuple(
        leg
        for item, coefficient in offset.terms
        for leg in _legs(item, coefficient, places)
        if hint(leg.step)
    )


def _legs(item: Digit, coefficient: int, places: dict[Axis, int]) -> Iterator[Leg]:
    base = item.base
    if isinstance(base, Axis):
        if base in places:
            extent = -(-base.extent // item.div) if item.mod is None else item.mod
            yield Leg(places[base], item.div, extent, coefficient)
    elif isinstance(base, Loaded):
        yield from _anywhere(base, coefficient, places)
    else:
        inner = base.expr if isinstance(base, Bounded) else base
        for part, factor in inner.terms:
            for leg in _legs(part, factor, places):
                yield _divided(leg, item, coefficient)


def _divided(leg: Leg, item: Digit, coefficient: int) -> Leg:
    """A leg of a sum as one of a digit of the sum, in the numbers of this run."""
    step, div = abs(hint(leg.step)), hint(item.div)
    apart = max(div // step, 1)
    moved = max(step // div, 1)
    extent = -(-hint(leg.extent) // apart)
    if item.mod is not None:
        mod = hint(item.mod)
        extent = max(min(extent, mod // moved), 1)
        moved = moved % mod or 1
    return Leg(leg.axis, hint(leg.div) * apart, extent, hint(coefficient) * moved)


def _anywhere(base: Loaded, coefficient: int, places: dict[Axis, int]) -> Iterator[Leg]:
    """Legs of an index that is read from memory, along the axes that it is read along."""
    if not isinstance(base.key, Read):
        return
    for item in base.key.index:
        for part, _ in item.terms:
            for leg in _legs(part, 1, places):
                yield Leg(leg.axis, leg.div, leg.extent, coefficient * ANYWHERE)
