"""Fusion in, the same Fusion with results in the memory orders of the inputs out.

``y = relu(x)`` of channels-last ``x`` -> ``y = stride_order(relu(x), (3, 0, 2, 1))``: kernels read
and write along the same dim, and so does what runs before and behind them.
``max(x)`` over all dims -> ``max(permute(x, (0, 2, 3, 1)))``: it is read as it lies in memory.
"""

from __future__ import annotations

from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.table import Library, Moments, Pointwise, Reduction
from ...symbolic.queries import is_known_equal
from ..access.aliases import requested_order, resolve
from ..access.memory_orders import Order, declared_order, memory_orders, row_major
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
    """
    if not any(map(_is_permuted, fusion.inputs)):
        return fusion
    builder = GraphBuilder(*next_free(fusion))
    for node in fusion.nodes:
        builder.loc = node.loc
        operand = _operand(node)
        order = None if operand is None else _common_order(fusion, operand)
        if operand is not None and order is not None:
            slowest_first = sorted(range(len(order)), key=lambda dim: -order[dim])
            moved = builder.call("permute", operand, slowest_first)
            node = Substitution({operand: moved}).node(node)
        builder.nodes.append(node)
    return rebuilt(fusion, builder.nodes, Substitution())


def _operand(node: Node) -> Value | None:
    """What a reduction of all dims reduces. None for any other node."""
    call = as_call(node)
    if not isinstance(call.op.form, Reduction | Moments):
        return None
    operand = call.value("arg")
    return operand if len(call.dims()) == operand.tensor.rank else None


def _common_order(fusion: Fusion, value: Value) -> Order | None:
    """The memory order of all inputs that a value is computed from element by element.

    None where they differ, where it has elements of anything else, and for the order of its dims.
    """
    found, seen, stack = set[Order](), {value}, [value]
    while stack:
        value = stack.pop()
        maker = fusion.producers.get(value)
        if maker is None:
            found.add(declared_order(value.tensor))
        elif not isinstance(as_call(maker).op.form, Pointwise):
            return None
        else:
            whole = (v for v in maker.operands() if v.is_tensor and v not in seen)
            more = [v for v in whole if is_known_equal(v.tensor.numel, value.tensor.numel)]
            seen.update(more)
            stack += more
    order = found.pop() if len(found) == 1 else ()
    return None if order == row_major(len(order)) else order


def _is_permuted(value: Value) -> bool:
    """Whether an input is declared in another order than that of its dims."""
    return value.is_tensor and declared_order(value.tensor) != row_major(value.tensor.rank)


def _stored(fusion: Fusion) -> frozenset[Value]:
    """The computed values that results lie in. A copy of a view of an input is none of them: beside
    it the view itself may be a result."""
    roots = {place.root for place in resolve(fusion, [o.value for o in fusion.outputs])}
    return frozenset(v for v in roots if resolve(fusion, [v])[0].root is v)
