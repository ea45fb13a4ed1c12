"""How the dims of a reduction are cut for its parts: factors of extents, and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ....ir import Node
from ....ops.builder import as_call
from ....ops.forms import Moments, Reduction
from ....symbolic.queries import assume_equal
from ....symbolic.sizes import hint, is_size
from .factors import contiguous_factors, interleaved_factors, is_near, splits_well
from .parts import Interleaved, Padded, reduced_extents

MOST_PADDING = 0.125
"""Share of a dim that padding adds at most where another dim could be padded: it costs the
instructions of as many elements, and no bytes."""


@dataclass(frozen=True, slots=True)
class SplitFactors:
    """How the dims of a reduction's operand are cut.

    Attributes
    ----------
    factors : dict
        Reduced dim -> the factor that the second step reduces, 1 for none.
    interleaved : bool
        Whether the parts are interleaved; else they are contiguous.
    padded : (int, int), optional
        A reduced dim, and its extent with the padding that it needs; None for no padding.
    """

    factors: dict[int, int]
    interleaved: bool = False
    padded: tuple[int, int] | None = None

    @property
    def parts(self) -> int:
        """Partial results that the second step combines."""
        return prod(self.factors.values())


def split_factors(
    node: Node, wanted: int | tuple[int, ...] | Interleaved | Padded
) -> SplitFactors | None:
    """How to split a reduction; None where its extents give no two parts."""
    dims, extents = as_call(node).dims(), reduced_extents(node)
    if isinstance(wanted, Padded):
        # One more than fits at least, so that there is padding at all sizes.
        part = extents[wanted.place] // wanted.count + 1
        found = _padded_to(dims, dims[wanted.place], wanted.count, part, wanted.interleaved)
        whole = {dims[place]: extents[place] for place in wanted.second}
        return replace(found, factors={**found.factors, **whole})
    if isinstance(wanted, tuple):
        return SplitFactors(dict(zip(dims, wanted, strict=True)))
    paddable = isinstance(as_call(node).op.form, Reduction | Moments)
    if isinstance(wanted, Interleaved):
        factors = interleaved_factors(extents, wanted.count, wanted.multiple_of)
        if prod(factors) > 1 and (not paddable or is_near(prod(factors), wanted.count)):
            return SplitFactors(dict(zip(dims, factors, strict=True)), interleaved=True)
        wanted = wanted.count
    if paddable and not splits_well(extents, wanted):
        found = _padded_factors(dims, extents, wanted)
    else:
        found = SplitFactors(dict(zip(dims, contiguous_factors(extents, wanted), strict=True)))
    return found if found.parts > 1 else None


def _padded_factors(dims: tuple[int, ...], extents: tuple[int, ...], parts: int) -> SplitFactors:
    """A reduced dim padded to a multiple of about ``parts``: see ``_padded_place``.

    A prime number of elements has no divisors: ``[1009], 4`` -> 1012, four parts of 253.
    """
    place = _padded_place(tuple(hint(size) for size in extents), parts)
    size = extents[place]
    count, part = _counted_parts(size, parts)
    return _padded_to(dims, dims[place], count, part)


def _padded_place(extents: tuple[int, ...], parts: int) -> int:
    """The outermost dim that has so many parts with little padding, else the longest.

    Parts of an outer dim are whole along those inside. H200, sums over ``[61, 32, :, 112]`` in
    float32 by 5 parts: 50 us with pieces of 23 of the 112.
    """
    for place, size in enumerate(extents):
        count, part = _counted_parts(size, parts)
        if is_near(count, parts) and count * part - size <= MOST_PADDING * size:
            return place
    return place_of_longest(extents)


def _counted_parts(size: int, parts: int) -> tuple[int, int]:
    """The number of parts of a dim, and the elements of each."""
    count = max(min(parts, hint(size) // 2), 1)
    part = -(-size // count)
    return (count if is_size(part) else -(-size // part)), part


def _padded_to(
    dims: tuple[int, ...], padded: int, count: int, part: int, interleaved: bool = False
) -> SplitFactors:
    """One dim in so many parts, padded to hold them whole."""
    factors = {dim: count if dim == padded else 1 for dim in dims}
    return SplitFactors(factors, interleaved, (padded, count * part))


def place_of_longest(extents: tuple[int, ...]) -> int:
    """The place of the first of the largest extents."""
    return extents.index(max(extents))


@dataclass(frozen=True, slots=True)
class CutDims:
    """A shape whose reduced dims are cut in two.

    Attributes
    ----------
    sizes : list of int
        The extents after the cut.
    first : list of int
        The dims that the first step reduces.
    second : list of int
        The dims of its result that the second step reduces.
    """

    sizes: list[int]
    first: list[int]
    second: list[int]


def cut_dims(sizes: Sequence[int], split: SplitFactors) -> CutDims:
    """Cut each reduced dim into (factor, rest), into (rest, factor) where parts are interleaved.

    ``(8, 5), {0: 4}`` -> sizes ``[4, 2, 5]``; the first step reduces dim 1, the second dim 0.
    Interleaved: sizes ``[2, 4, 5]``, dim 0, and then dim 0 of what is left. A factor of 1, or of
    the whole extent, leaves a dim uncut.
    """
    cut: list[int] = []
    inner: list[int] = []
    outer: list[int] = []
    for dim, size in enumerate(sizes):
        factor = split.factors.get(dim)
        if factor is None:
            cut.append(size)
        elif (once := assume_equal(factor, 1)) or assume_equal(factor, size):
            (inner if once else outer).append(len(cut))
            cut.append(size)
        else:
            outer.append(len(cut) + split.interleaved)
            inner.append(len(cut) + (not split.interleaved))
            cut += [size // factor, factor] if split.interleaved else [factor, size // factor]
    return CutDims(cut, inner, [d - sum(i < d for i in inner) for d in outer])
