"""Which factors of the dims of a view run together, read off its index map.

An operand is read at an index that is a function of the result's. Where a dim of that index is a
sum of digits of the result's axes, as the rows of a reshape are, each digit is a factor of the dim
and one of an axis, and both can be cut alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ...ir import Node, Value
from ...ops.table import Call, View
from ...shapes.index_map import Index, Pull, Source
from ...symbolic.index_expr import Affine, Axis, Digit, digit
from ...symbolic.loaded_index import Indexed, LoadedIndex
from .pieces import Dims, Piece, tensors_of, unnamed


@dataclass(frozen=True)
class _Read:
    """A dim of an operand: the digits it is made of, outermost first, and what else it holds."""

    digits: tuple[Digit, ...]
    rest: int
    loose: frozenset[Axis]


def view_links(node: Node, call: Call, form: View) -> tuple[tuple[Dims, ...], tuple[Dims, ...]]:
    """The factors of the operands, and those of the result."""
    axes = [Axis(f"{place}", size) for place, size in enumerate(node.out.tensor.sizes)]
    sources = [*_sources(call, form, tuple(digit(axis) for axis in axes))]
    reads = [(source, _reads(source)) for source in sources]
    tiles = {axis: _tiles(axis, [dims for _, dims in reads]) for axis in axes}
    # Where something depends on the place in an axis, no part of it is like the whole.
    blocked: set[object] = set()
    for source, dims in reads:
        loose = frozenset().union(*(read.loose for read in dims))
        loose |= {a for guard in source.guards if not guard.always for a in guard.expr.axes()}
        blocked |= {piece.label for axis in loose for piece in tiles[axis]}
    found: dict[Value, Dims] = {}
    for source, dims in reads:
        assert isinstance(source.operand, Value)
        own = tuple(_pieces(read, tiles) for read in dims)
        blocked |= _twice(own)
        before = found.setdefault(source.operand, own)
        blocked |= {p.label for a, b in zip(before, own, strict=True) if a != b for p in (*a, *b)}

    def free(dims: Dims) -> Dims:
        return tuple(
            tuple(Piece(None, p.size) if p.label in blocked else p for p in own) for own in dims
        )

    operands = tuple(free(found[v]) if v in found else unnamed(v) for v in tensors_of(node))
    return operands, (free(tuple(tiles[axis] for axis in axes)),)


def _sources(call: Call, form: View, index: Index) -> Iterator[Source]:
    """What is read, and where: elements, and the indices that are read themselves."""
    read: list[Source] = []

    def reader(value: Value, at: Index, dim: Indexed) -> Affine:
        read.append(Source(value, at))
        return digit(LoadedIndex((value, len(read))))

    pulled = form.pull(call, Pull(index, reader))
    yield from (s for s in (*pulled, *read) if isinstance(s.operand, Value) and s.operand.is_tensor)


def _reads(source: Source) -> tuple[_Read, ...]:
    assert isinstance(source.operand, Value)
    pairs = zip(source.index, source.operand.tensor.sizes, strict=True)
    return tuple(_taken_apart(item, size) for item, size in pairs)


def _taken_apart(item: Affine, size: int) -> _Read:
    """``axis * c + rest`` with ``0 <= rest < c`` and ``c * extent == size``, and so on in rest."""
    digits: list[Digit] = []
    while item.terms and size > 1:
        top, step = max(item.terms, key=lambda term: term[1])
        rest = item - Affine(((top, step),))
        bounds = rest.range
        fits = isinstance(top.base, Axis) and _extent(top) * step == size
        if not fits or bounds is None or bounds[0] < 0 or bounds[1] >= step:
            break
        digits.append(top)
        item, size = rest, step
    return _Read(tuple(digits), size, item.axes())


def _extent(item: Digit) -> int:
    """How many values a digit of an axis has."""
    assert isinstance(item.base, Axis)
    span = -(-item.base.extent // item.div)
    return span if item.mod is None else min(item.mod, span)


def _tiles(axis: Axis, reads: list[tuple[_Read, ...]]) -> tuple[Piece, ...]:
    """The factors of an axis, fine enough for all digits that are read."""
    digits = {d for dims in reads for read in dims for d in read.digits if d.base == axis}
    bounds = {1, axis.extent}
    bounds.update(b for d in digits for b in (d.div, d.div * _extent(d)))
    steps = sorted(bounds)
    if (
        not axis.extent
        or any(high % low for low, high in pairwise(steps))
        or steps[-1] > axis.extent
    ):
        return (Piece(None, axis.extent),)
    found = tuple(Piece((axis.name, low), high // low) for low, high in pairwise(steps))
    return found[::-1] or (Piece(None, axis.extent),)


def _pieces(read: _Read, tiles: dict[Axis, tuple[Piece, ...]]) -> tuple[Piece, ...]:
    """The factors of a dim that is read."""
    found: list[Piece] = []
    for item in read.digits:
        assert isinstance(item.base, Axis)
        own = tiles[item.base]
        if own[0].label is None:
            found.append(Piece(None, _extent(item)))
            continue
        top = item.div * _extent(item)
        found += [p for p in own if item.div <= _step(p) < top]
    return (*found, Piece(None, read.rest)) if read.rest > 1 or not found else tuple(found)


def _step(piece: Piece) -> int:
    assert isinstance(piece.label, tuple)
    return int(piece.label[1])


def _twice(dims: Dims) -> set[object]:
    """Labels that an operand is read along more than once."""
    labels = [piece.label for own in dims for piece in own]
    return {label for label in labels if labels.count(label) > 1}
