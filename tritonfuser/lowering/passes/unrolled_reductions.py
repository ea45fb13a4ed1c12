"""Fusion in, an equal Fusion with reductions of a few elements unrolled out.

``sum(x, [1])`` of [B, 2, T] -> ``add(x[:, 0], x[:, 1])``. What is left are pointwise ops, which
share a kernel with others over the result whatever their layout is: the gradients of heads that
share keys are such sums.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from enum import Enum, auto
from itertools import product
from math import prod

from ...dtypes import compute_dtype
from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.forms import Factory, Pointwise, Reduction
from ...ops.table import View
from ...symbolic.sizes import hint, is_size
from .rewriting import rewritten
from .splits.parts import reduced_extents

MOST_UNROLLED = 8
"""Elements of the longest reduction that is unrolled. A thread has them in registers as it has the
elements of a vector; a longer one is a tile of its own."""


MOST_OF_ANY = 16
"""Elements of the longest reduction that is unrolled at all. Each has its own lines in a kernel."""


class Unrolled(Enum):
    """Which reductions are unrolled.

    Attributes
    ----------
    CHEAP
        Those of a few elements that have their operand for themselves. Where other values as large
        are computed from the operand, or from the result, a kernel with the reduction has all of
        them in registers.
    SHORT
        All of a few elements, along memory too. What is computed of positions along them becomes
        numbers, and kernels that reduce over different extents become one.
    """

    CHEAP = auto()
    SHORT = auto()


def unroll_reductions(
    fusion: Fusion, which: Unrolled = Unrolled.CHEAP, kept: Container[str] = ()
) -> Fusion:
    """Unroll reductions of a few elements.

    Parameters
    ----------
    fusion : Fusion
        Simplified and concrete.
    kept : container of str
        Reductions that stay what they are: a given schedule has kernels for them, as one of kernels
        with open sizes has.
    """
    chosen = {
        node.out
        for node in fusion.nodes
        if is_short(node)
        and node.out.name not in kept
        and (which is Unrolled.SHORT or _is_cheap(fusion, node))
    }

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        return _unrolled(node, builder) if node.outs and node.outs[0] in chosen else None

    return rewritten(fusion, rewrite) if chosen else fusion


def _unrolled(node: Node, builder: GraphBuilder) -> Value:
    call = as_call(node)
    form, operand, dims = call.op.form, call.value("arg"), sorted(call.dims())
    assert isinstance(form, Reduction)
    wide = compute_dtype(operand.dtype)
    made: Value | None = None
    for place in product(*(range(operand.tensor.sizes[dim]) for dim in dims)):
        part = _element(operand, dict(zip(dims, place, strict=True)), builder)
        part = part if part.dtype is wide else builder.call("cast", part, wide)
        made = part if made is None else builder.call(form.pairwise, made, part)
    assert made is not None
    return made if made.dtype is node.out.dtype else builder.call("cast", made, node.out.dtype)


def _element(operand: Value, places: dict[int, int], builder: GraphBuilder) -> Value:
    """The operand at one position of some dims."""
    sizes = operand.tensor.sizes
    starts = [places.get(dim, 0) for dim in range(len(sizes))]
    stops = [places[dim] + 1 if dim in places else size for dim, size in enumerate(sizes)]
    part = builder.call("slice", operand, starts, stops, [1] * len(sizes))
    made: Value = builder.call("squeeze", part, list(places))
    return made


def is_short(node: Node) -> bool:
    """Whether a node is a reduction that can be unrolled."""
    if not isinstance(as_call(node).op.form, Reduction):
        return False
    extents = reduced_extents(node)
    return not any(is_size(extent) for extent in extents) and 2 <= prod(extents) <= MOST_OF_ANY


def _is_cheap(fusion: Fusion, node: Node) -> bool:
    if prod(reduced_extents(node)) > MOST_UNROLLED:
        return False
    operand = as_call(node).value("arg")
    # Along memory neighbours are one load of a thread.
    wide = [dim for dim, size in enumerate(operand.tensor.sizes) if is_size(size) or size != 1]
    if wide[-1] in as_call(node).dims():
        return False
    return _has_operand_alone(fusion, node) and not _is_computed_again(fusion, node)


def _has_operand_alone(fusion: Fusion, node: Node) -> bool:
    """Whether nothing else uses what is computed, or loaded, for the operand."""
    mine = {node, *_computed_for(fusion, as_call(node).value("arg"))}
    count = hint(node.out.tensor.numel)
    large = {v for n in mine for v in n.operands() if v.is_tensor and hint(v.tensor.numel) > count}
    users = {user for value in large for user in fusion.consumers.get(value, ())}
    return users <= mine and large.isdisjoint(fusion.returned)


def _computed_for(fusion: Fusion, value: Value) -> Iterator[Node]:
    """The nodes between a value and tensors in memory, or results of reductions."""
    open_values, seen = [value], set[Node]()
    while open_values:
        node = fusion.producers.get(open_values.pop())
        if node is None or node in seen:
            continue
        if isinstance(as_call(node).op.form, Pointwise | View | Factory):
            seen.add(node)
            yield node
            open_values += node.operands()


def _is_computed_again(fusion: Fusion, node: Node) -> bool:
    """Whether kernels would compute elements of the result more than once.

    For a value of more elements that is computed from it, or at two indices, as of ``s + s.T``.
    """
    count = hint(node.out.tensor.numel)
    found = [*node.outs, *_computed_from(fusion, node.outs)]
    return any(hint(v.tensor.numel) > count or _is_rearranged(fusion, v) for v in found)


def _is_rearranged(fusion: Fusion, value: Value) -> bool:
    """Whether a view of a value is used beside the value."""
    users = fusion.consumers.get(value, ())
    return len(users) > 1 and any(isinstance(as_call(u).op.form, View) for u in users)


def _computed_from(fusion: Fusion, values: Iterable[Value]) -> Iterator[Value]:
    open_values, seen = list(values), set[Value]()
    while open_values:
        for user in fusion.consumers.get(open_values.pop(), ()):
            fresh = [out for out in user.outs if out.is_tensor and out not in seen]
            seen.update(fresh)
            yield from fresh
            open_values += fresh
