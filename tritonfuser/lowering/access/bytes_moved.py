"""Loads and stores in, bytes out: what a segment moves if it touches each element just once."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ...ir import Fusion, Value
from ...symbolic.index_expr import Affine, Axis
from ...symbolic.sizes import lesser
from .aliases import BufferView, buffer_strides
from .read_footprint import Read
from .traffic import Traffic


def moved_bytes(fusion: Fusion, traffic: Iterable[Traffic]) -> int:
    """Bytes of the elements touched: of a tensor met at several indices at most the whole."""
    found: dict[Value, int] = {}
    for item in traffic:
        touched = item.item_bytes * prod(axis.extent for axis in _axes(item.offset))
        found[item.value] = found.get(item.value, 0) + touched
    return sum(lesser(count, held_bytes(fusion, value)) for value, count in found.items())


def library_bytes(fusion: Fusion, operands: Iterable[BufferView]) -> int:
    """Bytes of the operands of a library call, a buffer given twice counted once."""
    found: dict[Value, int] = {}
    for operand in operands:
        whole = held_bytes(fusion, operand.root)
        touched = whole
        if operand.memory is not None:
            items = _distinct(operand.memory.sizes, operand.memory.strides)
            touched = items * operand.root.dtype.info.bytes * (2 if operand.pairs else 1)
        found[operand.root] = lesser(found.get(operand.root, 0) + touched, whole)
    return sum(found.values())


def held_bytes(fusion: Fusion, value: Value) -> int:
    """Bytes of memory behind a tensor: a dim stretched by expand counts once."""
    return value.dtype.info.bytes * _distinct(value.tensor.sizes, buffer_strides(fusion, value))


def _distinct(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    if 0 in sizes:
        return 0
    return prod(size for size, stride in zip(sizes, strides, strict=True) if stride)


def _axes(offset: Affine) -> frozenset[Axis]:
    """The axes an offset depends on, those of the indices that are read at run time too."""
    found = offset.axes()
    for loaded in offset.loaded():
        assert isinstance(loaded.key, Read)
        for item in loaded.key.index:
            found |= _axes(item)
    return found
