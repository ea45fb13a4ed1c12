"""The least memory traffic of a segment, in bytes: each element is moved once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ...device import DeviceProperties
from ...ir import Fusion, Value
from ...symbolic.index_expr import Affine, Axis
from ...symbolic.queries import assume_empty, assume_equal, min_by_hint
from ...symbolic.sizes import hint
from .aliases import BufferView, buffer_strides
from .traffic import Traffic


def moved_bytes(fusion: Fusion, traffic: Iterable[Traffic]) -> int:
    """Bytes of the accessed elements. For a tensor accessed at several indices, at most all of
    it."""
    found: dict[Value, int] = {}
    for item in traffic:
        touched = item.item_bytes * prod(axis.extent for axis in item.axes)
        found[item.value] = found.get(item.value, 0) + touched
    return sum(min_by_hint(count, held_bytes(fusion, value)) for value, count in found.items())


def known_bytes(fusion: Fusion, traffic: Sequence[Traffic], device: DeviceProperties) -> list[int]:
    """For each load and store, the bytes that hit the L1 cache, because an earlier load of the
    kernel fetched them.

    Two loads of a tensor whose offsets differ by a constant touch the same lines shortly after one
    another: as the two halves of rotated rows. So do loads whose offset jumps by a constant where a
    position reaches another slice. Together they fetch at most the whole tensor.
    """
    met: dict[tuple[Value, object], tuple[int, int, int]] = {}
    found: list[int] = []
    for item in traffic:
        steady, jump = _without_jumps(item.offset)
        key = item.value, steady
        start, most, fetched = met.get(key, (item.offset.const, 0, 0))
        most = max(most, jump)
        held = held_bytes(fusion, item.value)
        touched, known = min_by_hint(item.accessed_bytes, held), 0
        if not item.is_store and hint(fetched):
            distance = (abs(hint(item.offset.const - start)) + most) * item.item_bytes
            more = touched + fetched - held
            if distance <= device.shared_bytes_per_sm and hint(more) > 0:
                known = min_by_hint(more, touched)
        found.append(known)
        met[key] = start, most, fetched + touched - known
    return found


def _without_jumps(offset: Affine) -> tuple[object, int]:
    """(terms, jump): the terms of an offset that are linear in axes, and the most elements by which
    all other terms change it. Indices that are read at run time stay among the terms."""
    jumps = [
        (item, by)
        for item, by in offset.terms
        if not isinstance(item.base, Axis) and item.range is not None
    ]
    ends = [(item.range or (0, 0), by) for item, by in jumps]
    most = sum(hint(high - low) * abs(hint(by)) for (low, high), by in ends)
    return tuple(term for term in offset.terms if term not in jumps), most


def library_bytes(fusion: Fusion, operands: Iterable[BufferView]) -> int:
    """Bytes that a library call reads; a buffer passed twice counts once."""
    found: dict[Value, int] = {}
    for operand in operands:
        whole = held_bytes(fusion, operand.root)
        touched = whole
        if operand.memory is not None:
            items = _distinct(operand.memory.sizes, operand.memory.strides)
            touched = items * operand.root.dtype.info.bytes * (2 if operand.pairs else 1)
        found[operand.root] = min_by_hint(found.get(operand.root, 0) + touched, whole)
    return sum(found.values())


def held_bytes(fusion: Fusion, value: Value) -> int:
    """Bytes of memory of a tensor: an expanded dim counts as 1."""
    return value.dtype.info.bytes * _distinct(value.tensor.sizes, buffer_strides(fusion, value))


def _distinct(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The number of distinct elements: dims of stride 0 count as 1."""
    if assume_empty(sizes):
        return 0
    steps = zip(sizes, strides, strict=True)
    return prod(size for size, stride in steps if not assume_equal(stride, 0))
