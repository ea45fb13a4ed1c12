"""Fusion in, the same Fusion with guards of maxima behind sums of exponentials, not before them.

``logsumexp`` subtracts the maximum of a row where it is finite, and 0 elsewhere. Behind a guard the
difference is not that of a softmax: its sum would need a walk over the row of its own.
"""

from __future__ import annotations

import math

from ....ir import Const, Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ..rewriting import new_dims, rewritten, with_number

_PASSED_ON = ("expand", "cast")


def sum_before_guards(fusion: Fusion) -> Fusion:
    """``sum(exp(x - where(isinf(m), 0, m)))`` -> ``where(isfinite(m), sum(exp(x - m)), exp(m))``.

    ``m`` is ``max(x)`` over the dims of the sum. Where it is infinite, so is the sum, or all of its
    terms are 0; that of a nan is nan.
    """

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = _guarded(fusion, node) if node.op == "sum" else None
        if found is None:
            return None
        x, top = found
        dims = as_call(top).dims()
        flags = [place in dims for place in range(len(x.tensor.shape))]
        least = builder.call("broadcast", top.out, is_broadcast_dim=flags)
        parts = builder.call("exp", builder.call("sub", x, least))
        total = builder.call("sum", parts, dims=list(dims), dtype=node.out.dtype)
        finite = builder.call("isfinite", top.out)
        made: Value = builder.call("where", finite, total, builder.call("exp", top.out))
        return made

    return rewritten(fusion, rewrite)


def _guarded(fusion: Fusion, total: Node) -> tuple[Value, Node] | None:
    """x and its maximum over the same dims, if this adds up ``exp(x - guard(max(x)))``."""
    power = _only_use(fusion, total.args[0], "exp", total)
    difference = None if power is None else _only_use(fusion, power.args[0], "sub", power)
    if difference is None:
        return None
    x, shift = difference.args
    top = _maximum(fusion, shift)
    if top is None or not isinstance(x, Value) or top.args[0] != x:
        return None
    return (x, top) if as_call(top).dims() == as_call(total).dims() else None


def _only_use(fusion: Fusion, value: object, op: str, user: Node) -> Node | None:
    """The node of this op that computes a value which nothing but ``user`` needs."""
    node = _made_by(fusion, value)
    if node is None or node.op != op or node.out in fusion.returned:
        return None
    return node if fusion.consumers[node.out] == (user,) else None


def _maximum(fusion: Fusion, value: object) -> Node | None:
    """The maximum that a value is, with one guard against infinity on the way from it."""
    node, guards, places = _made_by(fusion, value), 0, list[tuple[int, ...]]()
    while node is not None and node.op != "max":
        if node.op == "broadcast":
            value = node.args[0]
            places.append(new_dims(node))
        elif node.op in _PASSED_ON:
            value = next(v if v.dtype is node.out.dtype else None for v in node.operands())
        else:
            value = _unguarded(fusion, node)
            guards += 1
        node = _made_by(fusion, value)
    is_found = node is not None and guards == 1 and places == [as_call(node).dims()]
    return node if is_found else None


def _unguarded(fusion: Fusion, node: Node) -> Value | None:
    """m of ``where(isinf(m), 0, m)`` and ``where(isfinite(m), m, 0)``, however it is tested."""
    if node.op != "where":
        return None
    test, yes, no = node.args
    kept = no if _is_zero(yes) else yes
    if not isinstance(kept, Value) or not _is_zero(yes if kept is no else no):
        return None
    tested = _tested(fusion, test)
    return kept if tested == (kept, kept is yes) else None


def _tested(fusion: Fusion, test: object) -> tuple[Value, bool] | None:
    """The value that is tested, and whether for being finite rather than infinite."""
    node = _made_by(fusion, test)
    if node is None:
        return None
    if node.op in ("isfinite", "isinf"):
        return next(node.operands()), node.op == "isfinite"
    found = with_number(node, ("eq", "ne"))
    size = None if found is None else _made_by(fusion, found[0])
    if found is None or size is None or size.op != "abs" or found[1] != math.inf:
        return None
    return next(size.operands()), node.op == "ne"


def _is_zero(arg: object) -> bool:
    return isinstance(arg, Const) and type(arg.value) in (int, float) and arg.value == 0


def _made_by(fusion: Fusion, value: object) -> Node | None:
    return fusion.producers.get(value) if isinstance(value, Value) else None
