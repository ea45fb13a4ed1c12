"""Fusion in, the same Fusion with results in the memory orders of the inputs out.

``y = relu(x)`` of channels-last ``x`` -> ``y = stride_order(relu(x), (3, 0, 2, 1))``: kernels read
and write along the same dim, and so does what runs before and behind them.
``max(x)`` over all dims -> ``max(permute(x, (0, 2, 3, 1)))``: it is read as it lies in memory. So
is ``max(permute(x, (3, 2, 0, 1)))`` of row-major ``x``, by a permute that undoes this one.
"""

from __future__ import annotations

from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.forms import Moments, Reduction
from ...ops.table import Library
from ...shapes.memory import row_major
from ..access.aliases import requested_order, resolve
from ..access.memory_orders import Order, common_orders, memory_orders
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


def reduce_in_memory_order(fusion: Fusion) -> Fusion:
    """Have reductions of all dims run over these in their memory order.

    Where such a reduction takes two steps, the first one reduces equal parts of all elements. Parts
    in the order of the dims would have each element of a channels-last tensor in another line.
    Reductions of tensors of one shape are moved together or not at all, to share their kernels.
    """
    moved = _moved(fusion)
    if not moved:
        return fusion
    builder = GraphBuilder(*next_free(fusion))
    for node in fusion.nodes:
        builder.loc = node.loc
        if node in moved:
            operand, order = moved[node]
            slowest_first = sorted(range(len(order)), key=lambda dim: -order[dim])
            found = builder.call("permute", operand, slowest_first)
            node = Substitution({operand: found}).node(node)
        builder.nodes.append(node)
    return rebuilt(fusion, builder.nodes, Substitution())


def _moved(fusion: Fusion) -> dict[Node, tuple[Value, Order]]:
    """The reductions to move, with what they reduce and its memory order."""
    reduced = {node: operand for node in fusion.nodes if (operand := _operand(node)) is not None}
    if not reduced:
        return {}
    orders = common_orders(fusion)
    of_shapes: dict[tuple[int, ...], set[Order | None]] = {}
    for operand in reduced.values():
        of_shapes.setdefault(operand.tensor.sizes, set()).add(orders.get(operand))
    return {
        node: (operand, orders[operand])
        for node, operand in reduced.items()
        if len(of_shapes[operand.tensor.sizes]) == 1
        and orders.get(operand, row_major(operand.tensor.rank)) != row_major(operand.tensor.rank)
    }


def _operand(node: Node) -> Value | None:
    """What a reduction of all of several dims reduces. None for any other node.

    Of a reduction of some dims the order says too which other results have their axes in common: of
    random definitions with such sums two take 1.14 and 1.33 times as long in memory order.
    """
    call = as_call(node)
    if not isinstance(call.op.form, Reduction | Moments):
        return None
    operand = call.value("arg")
    return operand if len(call.dims()) == operand.tensor.rank > 1 else None


def _stored(fusion: Fusion) -> frozenset[Value]:
    """The computed values that results lie in. A copy of a view of an input is none of them: beside
    it the view itself may be a result."""
    roots = {place.root for place in resolve(fusion, [o.value for o in fusion.outputs])}
    return frozenset(v for v in roots if resolve(fusion, [v])[0].root is v)
