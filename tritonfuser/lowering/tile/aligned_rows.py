"""Where rows begin in memory, and whether tiles of unaligned rows can begin at whole vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from ...device import VECTOR_BYTES
from ...shapes.memory import INT32_LIMIT
from ...symbolic.index_expr import Affine, Axis, digit
from ...symbolic.queries import assume_abs, assume_at_most, is_known_equal
from ...symbolic.substitution import strip_bounds, substitute
from ..access.traffic import Traffic

LEAST_ALIGNED_SHARE = 0.6
"""Tiles are aligned where the rows of at least this share of the bytes begin at the same offset in
a vector. The other tensors are then loaded element by element."""


def row_start(
    traffic: Sequence[Traffic], parallel: tuple[Axis, ...], reduced: tuple[Axis, ...]
) -> Affine | None:
    """The offset of the start of a row, in elements, modulo a vector common to most of the bytes.

    None where too many tensors that run along the rows say otherwise.
    """
    whole = _whole(traffic, parallel, reduced)
    if _in_parts(traffic, reduced):
        return None
    places: dict[Affine, list[tuple[int, Affine]]] = {}
    for item in whole:
        start = _without(item.offset, reduced)
        if start is not None and not start.axes() - set(parallel):
            within = start.split(_vector(whole))[1]
            places.setdefault(within, []).append((item.bytes, start))
    best = max(places.values(), key=_bytes, default=[])
    if not best or _bytes(best) < LEAST_ALIGNED_SHARE * sum(item.bytes for item in whole):
        return None
    return max(best, key=lambda pair: pair[0])[1]


def _in_parts(traffic: Iterable[Traffic], reduced: tuple[Axis, ...]) -> bool:
    """Whether a tensor runs along only some axes of a row, as the weights of a group norm do."""
    axes = frozenset(reduced)
    return any(item.axes & axes not in (axes, frozenset()) for item in traffic)


def _without(offset: Affine, reduced: tuple[Axis, ...]) -> Affine | None:
    """Where a row begins, if its elements lie one behind another; axes are outermost first.

    None of rows that are read at an index from memory: each begins anywhere.
    """
    step, rest = 1, offset
    for axis in reversed(reduced):
        steps = (c for d, c in rest.terms if d.base == axis)
        if not any(is_known_equal(step, c) for c in steps):
            return None
        rest = rest - digit(axis) * step
        step *= axis.extent
    return None if rest.loaded() or rest.axes() & frozenset(reduced) else rest


def _bytes(found: Iterable[tuple[int, Affine]]) -> int:
    return sum(count for count, _ in found)


def vector_of_rows(
    traffic: Sequence[Traffic],
    parallel: tuple[Axis, ...],
    reduced: tuple[Axis, ...],
    batch_axes: tuple[Axis, ...],
    places: Mapping[Axis, Affine] | None = None,
) -> int:
    """Elements of a vector where rows begin inside of one and tiles could begin at one, else 1.

    The rows that a program loops over, along all axes but ``batch_axes``, must begin at the same
    place of a vector.

    Parameters
    ----------
    places : mapping, optional
        Where axes of ``parallel`` are that a program has a share of.
    """
    start = row_start(traffic, parallel, reduced)
    if start is None:
        return 1
    whole = _whole(traffic, parallel, reduced)
    within = strip_bounds(substitute(start, places or {})).split(_vector(whole))[1]
    apart = bool(batch_axes) and not within.axes() <= set(batch_axes)
    if apart or within == Affine():
        return 1
    vector = _vector(whole)
    steps = [item.steps.get(reduced[-1]) for item in traffic]
    return 1 if lead_needs_64_bits(parallel, vector, steps) else vector


def lead_needs_64_bits(parallel: Iterable[Axis], vector: int, steps: Iterable[int | None]) -> bool:
    """Whether the offset of the first vector of a row needs 64 bits in some tensor.

    Where it begins is written as the difference of two numbers that grow from row to row, by less
    than a vector's elements. In a tensor across the rows each element is a step: the numbers may
    then be far larger than any offset.

    Parameters
    ----------
    steps : iterable of int or None
        The stride of each tensor along the innermost axis of the rows, in elements.
    """
    elements = prod(axis.extent for axis in parallel) * (vector - 1)
    across = (step for step in steps if step is not None and not is_known_equal(step, 1))
    return any(assume_at_most(INT32_LIMIT, elements * assume_abs(step)) for step in across)


def _whole(
    traffic: Iterable[Traffic], parallel: tuple[Axis, ...], reduced: tuple[Axis, ...]
) -> list[Traffic]:
    """The tensors that run along the rows and over them."""
    return [t for t in traffic if t.runs_along(parallel) and t.runs_along(reduced)]


def _vector(whole: Iterable[Traffic]) -> int:
    """Elements of a vector of the narrowest tensor: of others they are several vectors."""
    return VECTOR_BYTES // min(item.item_bytes for item in whole)
