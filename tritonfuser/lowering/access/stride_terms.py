"""The offset of a load or store as a sum of stride terms, one or more for each kernel axis.

``768 * row + column % 4`` has two: 768 elements a position of ``row``, and 1 element a position of
``column``, back at 0 after every fourth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...heuristics.streams import StrideTerm
from ...symbolic.index_expr import Affine, Axis, Bounded, Digit
from ...symbolic.loaded_index import LoadedIndex
from ...symbolic.sizes import hint
from .reads import Read

ANYWHERE = 1009
"""Elements between neighbours that are read at indices from memory, for each step of the index: no
two are taken to share a sector. A prime, so that no alignment is read off it."""


def stride_terms_of(offset: Affine, axes: Sequence[Axis]) -> tuple[StrideTerm, ...]:
    """The stride terms of an offset along ``axes``, in the order of the expression.

    A digit of a sum, as ``(4 * a + b) // 6``, is approximated by one term for each axis, as if the
    other axes were at 0. Terms of step 0 are left out.
    """
    terms = _Terms(axes)
    return tuple(
        term
        for item, coefficient in offset.terms
        for term in terms.of(item, coefficient)
        if hint(term.step)
    )


class _Terms:
    """The stride terms of digits. Those of a sum are found once: digits share their parts, which
    makes of ten views one behind the other thousands of ways to an axis."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self._places = {axis: place for place, axis in enumerate(axes)}
        self._known: dict[Affine, tuple[StrideTerm, ...]] = {}

    def of(self, item: Digit, coefficient: int) -> Iterator[StrideTerm]:
        """The terms of a digit, times a coefficient."""
        base = item.base
        if isinstance(base, Axis):
            if base in self._places:
                extent = -(-base.extent // item.div) if item.mod is None else item.mod
                yield StrideTerm(self._places[base], item.div, extent, coefficient)
        elif isinstance(base, LoadedIndex):
            yield from self._anywhere(base, coefficient)
        else:
            for term in self._of_sum(base.expr if isinstance(base, Bounded) else base):
                yield _divided(term, item, coefficient)

    def _of_sum(self, inner: Affine) -> tuple[StrideTerm, ...]:
        if inner not in self._known:
            found = (term for part, factor in inner.terms for term in self.of(part, factor))
            self._known[inner] = tuple(dict.fromkeys(found))
        return self._known[inner]

    def _anywhere(self, base: LoadedIndex, coefficient: int) -> Iterator[StrideTerm]:
        """Terms of an index that is read from memory, along the axes that it is read along."""
        if not isinstance(base.key, Read):
            return
        for item in base.key.index:
            for part, _ in item.terms:
                for term in self.of(part, 1):
                    yield term._replace(step=coefficient * ANYWHERE, is_indexed=True)


def _divided(term: StrideTerm, item: Digit, coefficient: int) -> StrideTerm:
    """A term of a sum as one of a digit of the sum, in the numbers of this run."""
    step, div = abs(hint(term.step)), hint(item.div)
    apart = max(div // step, 1)
    moved = max(step // div, 1)
    extent = -(-hint(term.extent) // apart)
    if item.mod is not None:
        mod = hint(item.mod)
        extent = max(min(extent, mod // moved), 1)
        moved = moved % mod or 1
    return term._replace(div=hint(term.div) * apart, extent=extent, step=hint(coefficient) * moved)
