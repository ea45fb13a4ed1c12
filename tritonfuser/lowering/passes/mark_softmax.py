"""Fusion in, the same Fusion with the parts of each softmax marked out.

``exp(x - max(x))`` is never above 1 and its sum never below, which a cheaper exponential and a
cheaper division can rely on; and a kernel may sum while it still looks for the maximum.
"""

from __future__ import annotations

from dataclasses import replace

from ...dtypes import DataType
from ...ir import Fusion, Node, Value
from ...ops.builder import as_call

_FLOATS = (DataType.Float, DataType.Double)


def mark_softmax(fusion: Fusion) -> Fusion:
    """``exp`` of what a row's maximum was taken from, and the division by its sum, renamed.

    ``exp(sub(x, broadcast(max(x))))`` -> ``exp_below``; ``div(e, broadcast(sum(e)))`` of such an
    ``e`` over the same dims -> ``share``.
    """
    shifted: dict[Value, tuple[int, ...]] = {}
    nodes: list[Node] = []
    for node in fusion.nodes:
        op = node.op
        if op == "exp" and (dims := _shifted_by_max(fusion, node)) is not None:
            shifted[node.out] = dims
            op = "exp_below"
        elif op in ("div", "truediv") and _by_own_sum(fusion, node, shifted):
            op = "share"
        nodes.append(node if op == node.op else replace(node, op=op))
    return replace(fusion, nodes=tuple(nodes)) if shifted else fusion


def _shifted_by_max(fusion: Fusion, node: Node) -> tuple[int, ...] | None:
    """The dims of the maximum, if the operand is ``x - max(x)``."""
    difference = _made_by(fusion, node.args[0], "sub")
    if difference is None or difference.out.dtype not in _FLOATS:
        return None
    x, top = difference.args
    reduction = _of_rows(fusion, top, "max")
    if reduction is None or reduction.args[0] != x:
        return None
    return as_call(reduction).dims()


def _by_own_sum(fusion: Fusion, node: Node, shifted: dict[Value, tuple[int, ...]]) -> bool:
    part, total = node.args
    dims = shifted.get(part) if isinstance(part, Value) else None
    reduction = _of_rows(fusion, total, "sum")
    return (
        dims is not None
        and reduction is not None
        and reduction.args[0] == part
        and reduction.out.dtype is node.out.dtype
        and as_call(reduction).dims() == dims
    )


def _of_rows(fusion: Fusion, value: object, op: str) -> Node | None:
    """The reduction that a value is, with its dims put back where they were."""
    if (node := _made_by(fusion, value, "expand")) is not None:
        value = node.args[0]
    back = _made_by(fusion, value, "broadcast")
    found = None if back is None else _made_by(fusion, back.args[0], op)
    if back is None or found is None:
        return None
    flags = back.attr("is_broadcast_dim")
    assert isinstance(flags, tuple)
    places = tuple(place for place, new in enumerate(flags) if new)
    return found if places == as_call(found).dims() else None


def _made_by(fusion: Fusion, value: object, op: str) -> Node | None:
    node = fusion.producers.get(value) if isinstance(value, Value) else None
    return node if node is not None and node.op == op else None
