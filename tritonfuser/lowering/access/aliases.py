"""The buffer and strides of each output: outputs that are views need no copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...ir import Fusion, Node, TensorType, Value
from ...ops.builder import as_call
from ...ops.table import Call, Library, View
from ...shapes.memory import Memory, contiguous_strides, strides_for_order
from ...symbolic.queries import assume_less, assume_sorted
from ...symbolic.sizes import integer


@dataclass(frozen=True, slots=True)
class BufferView:
    """Where a value lies in memory.

    Attributes
    ----------
    root : Value
        The value that the buffer is allocated for: an input or a segment's output.
    memory : Memory, optional
        Sizes, strides and offset in the buffer; None for the whole buffer as it is allocated.
    pairs : bool
        Whether the buffer holds complex numbers as a last dim of two. Then ``memory`` counts
        complex numbers.
    """

    root: Value
    memory: Memory | None = None
    pairs: bool = False


def buffer_strides(fusion: Fusion, value: Value) -> tuple[int, ...]:
    """Strides, in elements, of the buffer of an input or of a materialized value."""
    node = fusion.producers.get(value)
    type_ = value.tensor
    if node is None:
        assert type_.layout is not None and type_.layout.strides is not None
        return type_.layout.strides
    order = requested_order(as_call(node)) or _operand_order(fusion, node, value)
    if order:
        return strides_for_order(type_.sizes, order)
    return contiguous_strides(type_.sizes)


def requested_order(call: Call) -> tuple[int, ...]:
    """The memory order of the result of ``stride_order``; empty for other ops."""
    order = call.attrs.get("stride_order")
    return tuple(int(i) for i in order) if isinstance(order, tuple) else ()


def _operand_order(fusion: Fusion, node: Node, value: Value) -> tuple[int, ...]:
    """The memory order of the operand whose layout a library op's result has; empty for none."""
    call = as_call(node)
    names = call.op.form.like if isinstance(call.op.form, Library) else ()
    name = dict(zip(node.outs, names, strict=False)).get(value)
    if name is None:
        return ()
    (place,) = resolve(fusion, [call.value(name)])
    strides = place.memory.strides if place.memory else buffer_strides(fusion, place.root)
    rank = len(strides)
    steps = assume_sorted((stride, -dim) for dim, stride in enumerate(strides))
    fastest_first = [-dim for _, dim in steps]
    return tuple(fastest_first.index(dim) for dim in range(rank))


@dataclass(frozen=True, slots=True)
class _Chain:
    """The views between an output and the value whose buffer it may share.

    Attributes
    ----------
    root : Value
        The operand of the first view.
    views : tuple of Node
        From the root to the output.
    narrows : bool
        Whether some view drops elements, as a slice does.
    """

    root: Value
    views: tuple[Node, ...]
    narrows: bool


def resolve(fusion: Fusion, values: Sequence[Value]) -> tuple[BufferView, ...]:
    """Choose a buffer for each value that must be in memory.

    A view of an input shares the input's buffer, and ``permute(reshape(t))`` that of ``t``. A slice
    of a computed value gets a buffer of its own, unless the whole value is stored anyway. A view of
    an input that the run writes into is copied: it must have the old elements.
    """
    chains = [_chain(fusion, value) for value in values]
    whole = {c.root for c in chains if not c.narrows}
    results: list[BufferView] = []
    for value, chain in zip(values, chains, strict=True):
        if value in fusion.returned and chain.views and chain.root in fusion.written:
            results.append(BufferView(value))
            continue
        stored = chain.root in fusion.given or chain.root in whole
        found = _compose(fusion, chain) if stored or not chain.narrows else None
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
        narrows = narrows or _narrows(node, operand)
        views.append(node)
        value = operand
    return _Chain(value, tuple(reversed(views)), narrows)


def _narrows(view: Node, operand: Value) -> bool:
    """Whether a view leaves out elements of its operand."""
    return assume_less(_elements(view.out.tensor), _elements(operand.tensor))


def _elements(type_: TensorType) -> int:
    """The number of distinct elements: an expanded dim counts as 1."""
    return prod(1 if d.expanded else integer(d.size) for d in type_.dims)


def _compose(fusion: Fusion, chain: _Chain) -> BufferView | None:
    """The output in the root's buffer; None where strides cannot express a view."""
    if not chain.views:
        return BufferView(chain.root)
    memory: Memory | None = Memory(chain.root.tensor.sizes, buffer_strides(fusion, chain.root), 0)
    for node in chain.views:
        form = as_call(node).op.form
        assert isinstance(form, View) and form.alias is not None and memory is not None
        memory = form.alias(as_call(node), memory)
        if memory is None:
            return None
    return BufferView(chain.root, memory)


def _partial(fusion: Fusion, value: Value, whole: set[Value]) -> BufferView:
    """The output as a view of the first value from which strides express all views."""
    node = fusion.producers[value]
    views: list[Node] = []
    best = BufferView(value)
    while True:
        form = as_call(node).op.form
        operand = node.args[0]
        if not isinstance(form, View) or form.alias is None or not isinstance(operand, Value):
            return best
        if _narrows(node, operand) and operand not in whole:
            return best
        views.insert(0, node)
        inner = fusion.producers.get(operand)
        if inner is None:
            return best
        found = _compose(fusion, _Chain(operand, tuple(views), False))
        if found is None:
            return best
        best, node = found, inner
