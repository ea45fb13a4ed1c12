"""Fusion in, an equal Fusion with concatenated slices of one tensor as one view out.

``cat([slice(x, 3, 8), slice(x, 0, 3)])`` -> ``cat_slices(x, starts=(3, 0), lengths=(5, 3))``: a
kernel chooses the index and computes one element. Of a concatenation it would compute the element
of each slice and choose among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....dtypes import DataType
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.table import View
from ....symbolic.index_expr import Axis, digit
from ....symbolic.queries import is_known_equal, is_known_less
from ...access.read_footprint import Read, sources_of
from ..rewriting import is_copy, rewritten


class _Slice(NamedTuple):
    """Elements of a tensor, cast to other dtypes one after another.

    Attributes
    ----------
    base : Value
        The tensor.
    starts, sizes : tuple of int
        The first index in each dim, and the number of elements.
    dtypes : tuple of DataType
        What it is cast to, in the order of the casts.
    """

    base: Value
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    dtypes: tuple[DataType, ...]


def merge_slices(fusion: Fusion) -> Fusion:
    """Neighbours in a concatenation that are slices of one tensor become one operand of it.

    Concatenations whose operands become slices of one tensor by this, as the quadrants of a tensor
    that is rolled along two dims do, are merged after those inside.
    """
    merged = _merge_once(fusion)
    while merged is not fusion:
        fusion, merged = merged, _merge_once(merged)
    return fusion


def has_slices_to_merge(fusion: Fusion, parts: Sequence[Value], dim: int) -> bool:
    """Whether neighbours in a concatenation along ``dim`` are slices of one tensor."""
    return len(_groups_of(fusion, parts, dim)) < len(parts)


def _groups_of(fusion: Fusion, parts: Sequence[Value], dim: int) -> list[tuple[int, int]]:
    return list(_groups([_slice_of(fusion, part) for part in parts], dim))


def _merge_once(fusion: Fusion) -> Fusion:
    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        if node.op != "cat":
            return None
        call = as_call(node)
        operands, dim = call.arg("tensors"), call.attrs["dim"]
        assert isinstance(operands, tuple) and isinstance(dim, int)
        parts = [item for item in operands if isinstance(item, Value)]
        groups = _groups_of(fusion, parts, dim)
        if len(groups) == len(parts):
            return None
        merged: list[Value] = []
        for first, last in groups:
            found = [_slice_of(fusion, part) for part in parts[first:last]]
            slices = [each for each in found if each is not None]
            alone = last - first == 1
            merged.append(parts[first] if alone else _merged(builder, slices, dim))
        made: Value = merged[0] if len(merged) == 1 else builder.call("cat", merged, dim)
        return made

    return rewritten(fusion, rewrite)


def _slice_of(fusion: Fusion, value: Value) -> _Slice | None:
    """What a value is a slice of, behind casts; None where it is not one."""
    dtypes: list[DataType] = []
    node = fusion.producers.get(value)
    while node is not None and is_copy(node) and isinstance(node.args[0], Value):
        dtypes.append(node.out.dtype)
        node = fusion.producers.get(node.args[0])
    if node is None or not isinstance(as_call(node).op.form, View):
        return None
    sizes = node.out.tensor.sizes
    index = tuple(digit(Axis(f"d{place}", size)) for place, size in enumerate(sizes))
    sources = sources_of(node, Read(node.out, index))
    if len(sources) != 1 or sources[0].guards or not isinstance(sources[0].operand, Value):
        return None
    base, read = sources[0].operand, sources[0].index
    starts = tuple(item.const for item in read)
    same = len(read) == len(index) and all(
        item == own + start for item, own, start in zip(read, index, starts, strict=True)
    )
    return _Slice(base, starts, sizes, tuple(reversed(dtypes))) if same else None


def _groups(slices: Sequence[_Slice | None], dim: int) -> Iterator[tuple[int, int]]:
    """Ranges of operands, each of one operand or of slices that differ along ``dim`` alone."""
    first = 0
    for place in range(1, len(slices) + 1):
        if place < len(slices) and _are_alike(slices[first], slices[place], dim):
            continue
        lengths = [each.sizes[dim] for each in slices[first:place] if each is not None]
        if _are_in_order(lengths):
            yield first, place
        else:
            yield from ((each, each + 1) for each in range(first, place))
        first = place


def _are_in_order(lengths: Sequence[int]) -> bool:
    """Whether each slice is known to begin before the end of all, at all sizes."""
    total, begin = sum(lengths), 0
    for length in lengths:
        begin = begin + length
        if not is_known_less(-1, total - begin):
            return False
    return True


def _are_alike(one: _Slice | None, other: _Slice | None, dim: int) -> bool:
    if one is None or other is None or one.base != other.base or one.dtypes != other.dtypes:
        return False
    return all(
        is_known_equal(a, b) and is_known_equal(n, m)
        for place, (a, b, n, m) in enumerate(
            zip(one.starts, other.starts, one.sizes, other.sizes, strict=True)
        )
        if place != dim
    )


def _merged(builder: GraphBuilder, slices: Sequence[_Slice], dim: int) -> Value:
    """The slices as one view of all of the tensor along ``dim``, then cut along the other dims."""
    first = slices[0]
    starts = [each.starts[dim] for each in slices]
    lengths = [each.sizes[dim] for each in slices]
    value: Value = builder.call("cat_slices", first.base, starts, lengths, dim)
    low, high = [0] * len(first.starts), list(value.tensor.sizes)
    for place, (start, size) in enumerate(zip(first.starts, first.sizes, strict=True)):
        if place != dim:
            low[place], high[place] = start, start + size
    whole = all(is_known_equal(n, 0) for n in low)
    if not whole or not all(map(is_known_equal, high, value.tensor.sizes)):
        value = builder.call("slice", value, low, high, [1] * len(low))
    for dtype in first.dtypes:
        value = builder.call("cast", value, dtype)
    return value
