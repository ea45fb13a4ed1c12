"""The kinds of parts that a reduction is split into."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from ....ir import Node, Value
from ....ops.builder import as_call
from ....symbolic.queries import assume_same_shape, is_known_equal
from .factors import contiguous_factors, factors_of_any, interleaved_factors


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
    """Equal parts of all reduced dims, merged into one; the second step reduces the remainder too.

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


def without_unit_dims(extents: tuple[int, ...]) -> tuple[int, ...]:
    """The extents without those of one position."""
    return tuple(extents[place] for place in _non_unit_places(extents))


def parts_along(parts: Parts, first: Node, node: Node) -> Parts:
    """The parts of ``first`` for ``node``, which reduces the same but for dims of one position.

    ``(4, 8)`` of extents ``[16, 32]`` are ``(4, 1, 8)`` of ``[16, 1, 32]``.
    """
    if not isinstance(parts, tuple | Padded):
        return parts  # these do not refer to dims
    extents, others = reduced_extents(first), reduced_extents(node)
    if repr(extents) == repr(others):
        return parts
    places = _non_unit_places(extents)
    same = dict(zip(places, _non_unit_places(others), strict=True))
    if isinstance(parts, Padded):
        second = tuple(same[at] for at in parts.second if at in same)
        return replace(parts, place=same[parts.place], second=second)
    factors = {same[at]: parts[at] for at in places}
    return tuple(factors.get(place, 1) for place in range(len(others)))


def _non_unit_places(extents: tuple[int, ...]) -> list[int]:
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
    return parts_of_factors(extents, factors_of_any(extents, parts, known), known)


def parts_of_factors(
    extents: tuple[int, ...], factors: tuple[int, ...], known: tuple[int, ...] | None = None
) -> int | tuple[int, ...]:
    """The parts with these factors, as a number if so many contiguous parts have the same ones."""
    count = prod(factors)
    return count if contiguous_factors(extents, count, known) == factors else factors


def part_count(parts: int | tuple[int, ...] | Interleaved) -> int:
    """How many parts there are."""
    if isinstance(parts, Interleaved):
        return parts.count
    return prod(parts) if isinstance(parts, tuple) else parts
