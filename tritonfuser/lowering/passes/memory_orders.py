"""Fusion in, the same Fusion with results in the memory orders of the inputs out.

``y = relu(x)`` of channels-last ``x`` -> ``y = stride_order(relu(x), (3, 0, 2, 1))``: kernels read
and write along the same dim, and so does what runs before and behind them.
"""

from __future__ import annotations

from ...ir import Fusion, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.table import Library
from ..access.aliases import requested_order, resolve
from ..access.memory_orders import memory_orders
from .substitution import Substitution, next_free, rebuilt


def keep_memory_orders(fusion: Fusion) -> Fusion:
    """Give results the memory orders that ``memory_orders`` finds for them.

    What is a view of an input stays one. A result that is a view of a computed value has the order
    of that value. Orders that ``stride_order`` asks for are kept, and layouts of what torch
    computes.
    """
    orders = memory_orders(fusion)
    if not orders:
        return fusion
    stored = _stored(fusion)
    builder = GraphBuilder(*next_free(fusion))
    values = Substitution()
    for node in fusion.nodes:
        builder.nodes.append(values.node(node))
        call = as_call(node)
        if requested_order(call) or isinstance(call.op.form, Library):
            continue
        builder.loc = node.loc
        for out in node.outs:
            if out in stored and out in orders:
                values.set(out, builder.call("stride_order", out, orders[out]))
    return rebuilt(fusion, builder.nodes, values)


def _stored(fusion: Fusion) -> frozenset[Value]:
    """The computed values that results lie in. A copy of a view of an input is none of them: beside
    it the view itself may be a result."""
    roots = {place.root for place in resolve(fusion, [o.value for o in fusion.outputs])}
    return frozenset(v for v in roots if resolve(fusion, [v])[0].root is v)
