"""Slices of one tensor, behind casts, and such slices side by side as one view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....dtypes import DataType
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.table import View
from ....symbolic.index_expr import Axis, digit
from ....symbolic.queries import is_known_equal, is_known_less
from ...access.reads import Read, sources_of
from ..rewriting import is_copy


class Slice(NamedTuple):
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


def concatenated(node: Node) -> tuple[list[Value], int]:
    """The tensors that a ``cat`` has side by side, and the dim."""
    call = as_call(node)
    operands, dim = call.arg("tensors"), call.attrs["dim"]
    assert isinstance(operands, tuple) and isinstance(dim, int)
    return [item for item in operands if isinstance(item, Value)], dim


def slice_of(fusion: Fusion, value: Value) -> Slice | None:
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
    return Slice(base, starts, sizes, tuple(reversed(dtypes))) if same else None


def are_in_order(lengths: Sequence[int]) -> bool:
    """Whether each slice is known to begin before the end of all, at all sizes."""
    total, begin = sum(lengths), 0
    for length in lengths:
        begin = begin + length
        if not is_known_less(-1, total - begin):
            return False
    return True


def are_alike(one: Slice | None, other: Slice | None, dim: int) -> bool:
    """Whether both are slices of one tensor, cast alike, that differ along ``dim`` alone."""
    if one is None or other is None or one.base != other.base or one.dtypes != other.dtypes:
        return False
    return all(
        is_known_equal(a, b) and is_known_equal(n, m)
        for place, (a, b, n, m) in enumerate(
            zip(one.starts, other.starts, one.sizes, other.sizes, strict=True)
        )
        if place != dim
    )


def side_by_side(builder: GraphBuilder, slices: Sequence[Slice], dim: int) -> Value:
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
