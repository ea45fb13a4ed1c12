"""Values that kernels compute more often than once for each of their elements."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir import Fusion, Node, Value
from ....ops.builder import as_call
from ....ops.forms import Pointwise
from ....ops.table import View
from ....shapes.memory import Memory, contiguous_strides
from ....symbolic.queries import is_known_equal
from ....symbolic.sizes import hint
from ...access.backward_slice import BackwardSlice
from ...access.node_kinds import is_reducer
from ...access.rough_instructions import is_fused, load_instructions, rough_instructions

MOST_NODES = 64
"""The instructions of a value are counted until so many values of its slice are reached."""


def candidates(fusion: Fusion) -> dict[Value, int]:
    """The values that could be materialized, with the instructions of an element.

    Computing one takes more instructions than loading it, and no reduction: a reduction would need
    a kernel of its own.
    """
    found: dict[Value, int] = {}
    reduces = any(map(is_reducer, fusion.nodes))
    for value, result in expanded(fusion):
        if reduces and is_per_row(value, result):
            continue  # kernels with rows compute it once for each row
        value = narrowest(fusion, value)
        if value not in found:
            count = computing_instructions(fusion, value)
            if count is not None and count > load_instructions(value.dtype.info.bytes):
                found[value] = count
    return found


def expanded(fusion: Fusion) -> Iterator[tuple[Value, Value]]:
    """Computed values whose user has more elements, as pairs (value, result of the user)."""
    for node in fusion.nodes:
        if not isinstance(as_call(node).op.form, Pointwise | View) or not node.out.is_tensor:
            continue
        for value in node.operands():
            maker = fusion.producers.get(value)
            if maker is None or not value.is_tensor or not is_fused(maker):
                continue
            if hint(value.tensor.numel) < hint(node.out.tensor.numel):
                yield value, node.out


def is_per_row(value: Value, result: Value) -> bool:
    """Whether a value does not run along the last axis of a result."""
    sizes, wider = value.tensor.sizes, result.tensor.sizes
    if not sizes or not wider:
        return True
    return is_known_equal(sizes[-1], 1) and not is_known_equal(wider[-1], 1)


def narrowest(fusion: Fusion, value: Value) -> Value:
    """The cheapest value to load among ``value`` and its sole ancestors of the same elements:
    computing ``value`` from it is part of the cost."""
    best, least, behind = value, load_instructions(value.dtype.info.bytes), 0
    while (node := fusion.producers.get(value)) is not None:
        operand = _only_operand(node)
        if operand is None or fusion.producers.get(operand) is None:
            break
        behind += rough_instructions(node)
        value = operand
        cost = behind + load_instructions(value.dtype.info.bytes)
        if cost <= least:
            best, least = value, cost
    return best


def _only_operand(node: Node) -> Value | None:
    """The only tensor operand of a node, if its elements correspond one to one, in the same
    order."""
    form = as_call(node).op.form
    tensors = [v for v in node.operands() if v.is_tensor and not is_known_equal(v.tensor.numel, 1)]
    if len(tensors) != 1 or not isinstance(form, Pointwise | View):
        return None
    (operand,) = tensors
    if isinstance(form, View):
        return operand if _keeps_order(node, form, operand) else None
    same = zip(node.out.tensor.sizes, operand.tensor.sizes, strict=False)
    return operand if all(is_known_equal(*pair) for pair in same) else None


def _keeps_order(node: Node, form: View, operand: Value) -> bool:
    """Whether a view has the elements of its operand in the same order, as one that adds dims."""
    sizes = node.out.tensor.sizes
    if form.alias is None or not is_known_equal(node.out.tensor.numel, operand.tensor.numel):
        return False
    whole = Memory(operand.tensor.sizes, contiguous_strides(operand.tensor.sizes))
    found = form.alias(as_call(node), whole)
    if found is None:
        return False
    steps = zip(sizes, found.strides, contiguous_strides(sizes), strict=True)
    return all(is_known_equal(n, 1) or is_known_equal(a, b) for n, a, b in steps)


def computing_instructions(fusion: Fusion, value: Value) -> int | None:
    """Instructions to compute an element from tensors in memory. None if that takes a reduction."""
    count, walk = 0, BackwardSlice(fusion, value, lambda _, node: not is_fused(node))
    for reached, node in walk:
        if len(walk.reached) > MOST_NODES:
            break
        if node is not None:
            count += rough_instructions(node)
        elif reached in fusion.producers and is_reducer(fusion.producers[reached]):
            return None
    return count
