"""The bottlenecks of a graph: values that hold what is computed before them in the fewest bytes.

They are where a chain of pointwise ops of one operand has the narrowest dtype: before a reduction
or a view, at a value that several ops use, and behind random numbers, of which a dropout needs one
bit each.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.forms import Pointwise, Random
from ...ops.table import View
from ...symbolic.sizes import hint
from ..access.node_kinds import is_reducer
from ..access.rough_instructions import is_fused


def bottlenecks(fusion: Fusion) -> Iterator[Value]:
    """The bottlenecks of a graph, some of them more than once."""
    for node in fusion.nodes:
        form = as_call(node).op.form
        if isinstance(form, Random):
            yield _narrowest_behind(fusion, node.out)
        is_view = isinstance(form, View)
        if is_view or is_reducer(node):
            yield from (narrowest_before(fusion, v) for v in node.operands() if v.is_tensor)
        branches = len(fusion.consumers.get(node.out, ())) > 1
        if is_fused(node) and node.out.is_tensor and (is_view or branches):
            yield narrowest_before(fusion, node.out)


def narrowest_before(fusion: Fusion, value: Value) -> Value:
    """The value of least bytes on the chain of single operands in the shape of ``value``."""
    best = value
    while (operand := _only_operand(fusion.producers.get(value), value)) is not None:
        value = operand
        if held_bytes(value) < held_bytes(best):
            best = value
    return best


def _narrowest_behind(fusion: Fusion, value: Value) -> Value:
    """The value of least bytes on the chain of single uses in the shape of ``value``."""
    best = value
    while len(users := fusion.consumers.get(value, ())) == 1:
        if _only_operand(users[0], value) != value:
            break
        value = users[0].out
        if held_bytes(value) < held_bytes(best):
            best = value
    return best


def held_bytes(value: Value) -> int:
    """Bytes of all elements of a tensor."""
    return hint(value.tensor.numel) * value.dtype.info.bytes


def _only_operand(node: Node | None, value: Value) -> Value | None:
    """The only large tensor among the operands of a pointwise node, in the shape of ``value``.

    None for several.
    """
    if node is None or not isinstance(as_call(node).op.form, Pointwise):
        return None
    tensors = [v for v in node.operands() if v.is_tensor and hint(v.tensor.numel) > 1]
    if len(tensors) != 1 or tensors[0].tensor.sizes != value.tensor.sizes:
        return None
    return tensors[0]
