"""The kinds of splits of a reduction, and how each cuts the dims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ....ir import Node, Value
from ....ops.builder import as_call
from ....ops.forms import Moments, Reduction
from ....symbolic.queries import assume_equal, assume_same_shape, is_known_equal
from ....symbolic.sizes import hint, is_size
from .factors import (
    contiguous_factors,
    factors_of_any,
    interleaved_factors,
    is_near,
    splits_well,
)


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Partial results over strided elements: part ``i`` of ``n`` has elements ``i, i + n, ...``.

    Attributes
    ----------
    count : int
        Parts wanted, at most.
    multiple_of : int
        The number of parts should be a multiple of this.
    """

    count: int
    multiple_of: int

    def __str__(self) -> str:
        return f"{self.count} interleaved"


@dataclass(frozen=True, slots=True)
class AlongMaximum:
    """Split a sum of exponentials below a maximum as that maximum is split.

    Attributes
    ----------
    maximum : Value
        The result of the max reduction.
    """

    maximum: Value


@dataclass(frozen=True, slots=True)
class Padded:
    """Parts of one reduced dim, which is padded to a multiple of their number.

    Attributes
    ----------
    place : int
        Which of the reduced dims.
    count : int
        The parts. They may vary with the sizes of a run.
    interleaved : bool
        Whether part ``i`` of ``n`` has elements ``i, i + n, ...``; else neighbouring ones.
    second : tuple of int
        The other reduced dims, by their places, that the second step reduces, each as a whole:
        every position of those has parts of its own. The first step reduces the rest.
    """

    place: int
    count: int
    interleaved: bool = False
    second: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.second:
            others = ", ".join(map(str, self.second))
            return f"{self.count} parts of dim {self.place} for each position of {others}"
        return f"as many as fill the device, of dim {self.place}"


@dataclass(frozen=True, slots=True)
class Remainder:
    """Equal parts of all reduced dims as one; the second step reduces the elements behind them too.

    Attributes
    ----------
    count : int
        The parts. They may vary with the sizes of a run.
    multiple_of : int
        What the parts of a kernel with open sizes are a multiple of at all sizes: part ``i`` of
        ``n`` has elements ``i, i + n, ...``. 0 where parts have neighbouring elements.
    """

    count: int
    multiple_of: int = 0

    def __str__(self) -> str:
        of = f", a multiple of {self.multiple_of}" if self.multiple_of else ""
        return f"as many as fill the device{of}, and a remainder"


MOST_PADDING = 0.125
"""Share of a dim that padding adds at most where another dim could be padded: it costs the
instructions of as many elements, and no bytes."""

Parts = int | tuple[int, ...] | Interleaved | AlongMaximum | Padded | Remainder
"""How to split a reduction: into about so many contiguous parts; by the factor of each reduced dim
that the second step reduces; into interleaved parts; as another reduction is split; with one dim
padded; or into equal parts and a remainder."""


def same_parts(a: Parts, b: Parts) -> bool:
    """Whether two splits are the same, from here on for all sizes."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return assume_same_shape(a, b)
    return a == b


def reduced_extents(node: Node) -> tuple[int, ...]:
    """The extents that a reduction reduces, in the order of the dims."""
    sizes = as_call(node).value("arg").tensor.sizes
    return tuple(sizes[d] for d in as_call(node).dims())


def several(extents: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of more than one position."""
    return tuple(extents[place] for place in _places_of_several(extents))


def parts_along(parts: Parts, first: Node, node: Node) -> Parts:
    """Parts of a reduction's dims as those of another, which may have more dims of one position.

    ``(4, 8)`` of extents ``[16, 32]`` are ``(4, 1, 8)`` of ``[16, 1, 32]``.
    """
    if not isinstance(parts, tuple | Padded):
        return parts  # they are not said of dims, which scans and products have none of
    extents, others = reduced_extents(first), reduced_extents(node)
    if repr(extents) == repr(others):
        return parts
    places = _places_of_several(extents)
    same = dict(zip(places, _places_of_several(others), strict=True))
    if isinstance(parts, Padded):
        second = tuple(same[at] for at in parts.second if at in same)
        return replace(parts, place=same[parts.place], second=second)
    factors = {same[at]: parts[at] for at in places}
    return tuple(factors.get(place, 1) for place in range(len(others)))


def _places_of_several(extents: tuple[int, ...]) -> list[int]:
    return [place for place, size in enumerate(extents) if not is_known_equal(size, 1)]


def exact_parts(
    extents: tuple[int, ...], parts: int, multiple_of: int, known: tuple[int, ...] | None = None
) -> int | tuple[int, ...] | Interleaved:
    """The parts without padding: interleaved ones where ``multiple_of`` is not 0.

    ``(97, 4096), 64, 0 -> (1, 64)``: dims behind one that no divisor cuts give factors too.
    """
    found = interleaved_factors(extents, parts, multiple_of, known) if multiple_of else (1,)
    if prod(found) > 1:
        return Interleaved(prod(found), multiple_of)
    return by_factors(extents, factors_of_any(extents, parts, known), known)


def by_factors(
    extents: tuple[int, ...], factors: tuple[int, ...], known: tuple[int, ...] | None = None
) -> int | tuple[int, ...]:
    """These factors: as their number, where that many contiguous parts have the same."""
    count = prod(factors)
    return count if contiguous_factors(extents, count, known) == factors else factors


def number_of(parts: int | tuple[int, ...] | Interleaved) -> int:
    """How many parts there are."""
    if isinstance(parts, Interleaved):
        return parts.count
    return prod(parts) if isinstance(parts, tuple) else parts


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
    return longest_extent(extents)


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


def longest_extent(extents: tuple[int, ...]) -> int:
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
