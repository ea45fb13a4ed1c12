"""Outputs that are views: find the buffer each output lies in, so that no view moves data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...ir import Fusion, Node, TensorType, Value
from ...ops.builder import as_call
from ...ops.table import Call, Library, View
from ...shapes import Memory, contiguous_strides, strides_for_order
from ...symbolic.sizes import integer


@dataclass(frozen=True, slots=True)
class Buffered:
    """A value in memory: the buffer it lies in (an input or a segment's output), and how.

    ``memory`` None means the whole buffer as it is allocated. ``pairs`` says that the buffer is
    taken as complex numbers, by a last dim of two; then ``memory`` counts those.
    """

    root: Value
    memory: Memory | None = None
    pairs: bool = False


def buffer_strides(fusion: Fusion, value: Value) -> tuple[int, ...]:
    """Strides of the buffer of an input or of a materialised value."""
    node = fusion.producers.get(value)
    type_ = value.tensor
    if node is None:
        assert type_.layout is not None and type_.layout.strides is not None
        return type_.layout.strides
    order = asked_order(as_call(node)) or _followed_order(fusion, node, value)
    if order:
        return strides_for_order(type_.sizes, order)
    return contiguous_strides(type_.sizes)


def asked_order(call: Call) -> tuple[int, ...]:
    """The memory order an op's result must have, if the op is there to ask for one."""
    order = call.attrs.get("stride_order")
    return tuple(int(i) for i in order) if isinstance(order, tuple) else ()


def _followed_order(fusion: Fusion, node: Node, value: Value) -> tuple[int, ...]:
    """The memory order of the operand that a library op lays out its result like."""
    call = as_call(node)
    names = call.op.form.like if isinstance(call.op.form, Library) else ()
    name = dict(zip(node.outs, names, strict=False)).get(value)
    if name is None:
        return ()
    (place,) = resolve(fusion, [call.value(name)])
    strides = place.memory.strides if place.memory else buffer_strides(fusion, place.root)
    rank = len(strides)
    inside_out = sorted(range(rank), key=lambda dim: (strides[dim], -dim))
    return tuple(inside_out.index(dim) for dim in range(rank))


@dataclass(frozen=True, slots=True)
class _Chain:
    """The views between an output and the value whose buffer it can lie in."""

    root: Value
    views: tuple[Node, ...]
    narrows: bool


def resolve(fusion: Fusion, values: Sequence[Value]) -> tuple[Buffered, ...]:
    """For each value that must be in memory, what to materialise and how it lies in that buffer.

    A view of an input is a view of that buffer; ``permute(reshape(t))`` of a computed ``t`` is a
    view of where ``t`` is stored. A slice of a computed value is computed on its own, unless the
    whole is stored anyway. An output that is a view of an input which is written at the end is
    copied before: all reads see the old value.
    """
    chains = [_chain(fusion, value) for value in values]
    whole = {c.root for c in chains if not c.narrows}
    results: list[Buffered] = []
    for value, chain in zip(values, chains, strict=True):
        if value in fusion.returned and chain.views and chain.root in fusion.written:
            results.append(Buffered(value))
            continue
        stored = chain.root in fusion.given or chain.root in whole
        found = _through(fusion, chain) if stored or not chain.narrows else None
        results.append(found or _partial(fusion, value, whole))
    return tuple(results)


def _chain(fusion: Fusion, value: Value) -> _Chain:
    views: list[Node] = []
    narrows = False
    while (node := fusion.producers.get(value)) is not None:
        form = as_call(node).op.form
        operand = node.args[0]
        if not isinstance(form, View) or form.alias is None or not isinstance(operand, Value):
            break
        narrows = narrows or _elements(operand.tensor) > _elements(node.out.tensor)
        views.append(node)
        value = operand
    return _Chain(value, tuple(reversed(views)), narrows)


def _elements(type_: TensorType) -> int:
    """Distinct elements: an expanded dim counts once."""
    return prod(1 if d.expanded else integer(d.size) for d in type_.dims)


def _through(fusion: Fusion, chain: _Chain) -> Buffered | None:
    """The output in the root's buffer, or None where a view cannot be expressed by strides."""
    if not chain.views:
        return Buffered(chain.root)
    memory: Memory | None = Memory(chain.root.tensor.sizes, buffer_strides(fusion, chain.root), 0)
    for node in chain.views:
        form = as_call(node).op.form
        assert isinstance(form, View) and form.alias is not None and memory is not None
        memory = form.alias(as_call(node), memory)
        if memory is None:
            return None
    return Buffered(chain.root, memory)


def _partial(fusion: Fusion, value: Value, whole: set[Value]) -> Buffered:
    """The output through as many of its last views as can be, its own buffer at worst."""
    node = fusion.producers[value]
    views: list[Node] = []
    best = Buffered(value)
    while True:
        form = as_call(node).op.form
        operand = node.args[0]
        if not isinstance(form, View) or form.alias is None or not isinstance(operand, Value):
            return best
        if _elements(operand.tensor) > _elements(node.out.tensor) and operand not in whole:
            return best
        views.insert(0, node)
        inner = fusion.producers.get(operand)
        if inner is None:
            return best
        found = _through(fusion, _Chain(operand, tuple(views), False))
        if found is None:
            return best
        best, node = found, inner
