"""Fusion in, the same Fusion with the ops of each softmax marked out.

``exp(x - max(x))`` is at most 1 and its sum at least 1, so a faster exponential and a faster
division do. Kernels can also compute a marked sum online, in the same loop as the maximum.
"""

from __future__ import annotations

from dataclasses import replace

from ...dtypes import DataType
from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from .rewriting import new_dims

_FLOATS = (DataType.Float, DataType.Double)


def mark_softmax(fusion: Fusion) -> Fusion:
    """Rename the exponential of a row less its maximum, and the division by the sum of these.

    ``exp(sub(x, broadcast(max(x))))`` -> ``exp_nonpositive``; ``div(e, broadcast(sum(e)))`` of
    such an ``e`` over the same dims -> ``div_by_sum``.
    """
    shifted: dict[Value, tuple[int, ...]] = {}
    nodes: list[Node] = []
    for node in fusion.nodes:
        op = node.op
        if op == "exp" and (dims := _dims_of_maximum(fusion, node)) is not None:
            shifted[node.out] = dims
            op = "exp_nonpositive"
        elif op in ("div", "truediv") and _is_normalization(fusion, node, shifted):
            op = "div_by_sum"
        nodes.append(node if op == node.op else replace(node, op=op))
    return replace(fusion, nodes=tuple(nodes)) if shifted else fusion


def _dims_of_maximum(fusion: Fusion, node: Node) -> tuple[int, ...] | None:
    """The dims of the maximum, if the operand is ``x - max(x)``."""
    difference = _made_by(fusion, node.args[0], "sub")
    if difference is None or difference.out.dtype not in _FLOATS:
        return None
    x, top = difference.args
    reduction = _broadcast_reduction(fusion, top, "max")
    if reduction is None or reduction.args[0] != x:
        return None
    return as_call(reduction).dims()


def _is_normalization(fusion: Fusion, node: Node, shifted: dict[Value, tuple[int, ...]]) -> bool:
    """Whether a division divides exponentials by their own sum over the maximum's dims."""
    part, total = node.args
    dims = shifted.get(part) if isinstance(part, Value) else None
    reduction = _broadcast_reduction(fusion, total, "sum")
    return (
        dims is not None
        and reduction is not None
        and reduction.args[0] == part
        and reduction.out.dtype is node.out.dtype
        and as_call(reduction).dims() == dims
    )


def _broadcast_reduction(fusion: Fusion, value: object, op: str) -> Node | None:
    """The reduction ``op`` that a value is, broadcast back to the shape of its operand."""
    if (node := _made_by(fusion, value, "expand")) is not None:
        value = node.args[0]
    broadcast = _made_by(fusion, value, "broadcast")
    found = None if broadcast is None else _made_by(fusion, broadcast.args[0], op)
    if broadcast is None or found is None:
        return None
    return found if new_dims(broadcast) == as_call(found).dims() else None


def _made_by(fusion: Fusion, value: object, op: str) -> Node | None:
    """The node that computes a value, if it is of this op."""
    node = fusion.producers.get(value) if isinstance(value, Value) else None
    return node if node is not None and node.op == op else None
