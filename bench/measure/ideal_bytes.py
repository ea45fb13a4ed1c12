"""Minimum memory traffic: each tensor is read or written once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tritonfuser.ir import Fusion, Node, Value
from tritonfuser.ops.builder import as_call
from tritonfuser.ops.table import View


def tensor_bytes(value: Value) -> int:
    """Bytes of a value in memory; an expanded dim counts once."""
    if not value.is_tensor:
        return 0
    elements = 1
    for dim in value.tensor.dims:
        if not isinstance(dim.size, int):
            raise TypeError(f"{value.name} has an extent that is not known yet")
        elements *= 1 if dim.expanded else dim.size
    return elements * value.dtype.info.bytes


def minimum_bytes(fusion: Fusion) -> int:
    """Bytes of every input and every output of a fusion, once each."""
    return moved_bytes(fusion.nodes, fusion.inputs, {out.value for out in fusion.outputs})


def moved_bytes(nodes: Sequence[Node], reads: Iterable[Value], writes: Iterable[Value]) -> int:
    """Bytes that one kernel of ``nodes`` moves; of an indexed table only the selected rows."""
    return sum(_read_bytes(v, nodes) for v in reads) + sum(map(tensor_bytes, writes))


def _read_bytes(value: Value, nodes: Sequence[Node]) -> int:
    readers = [node for node in nodes if value in node.operands()]
    if readers and all(_is_picked_from(value, node) for node in readers):
        return min(tensor_bytes(value), sum(tensor_bytes(n.out) for n in readers))
    return tensor_bytes(value)


def _is_picked_from(value: Value, node: Node) -> bool:
    """Whether a node reads elements of a value at indices that it gets."""
    call = as_call(node)
    if not isinstance(call.op.form, View) or not call.op.form.indices:
        return False
    return value not in [call.operand(name) for name in call.op.form.indices]
