"""Fusion in, an equal Fusion without composite ops out."""

from __future__ import annotations

from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, OpNamespace, as_call
from ...ops.table import Composite
from .substitution import Substitution, next_free, rebuilt


def decompose(fusion: Fusion) -> Fusion:
    """Replace composite nodes by the ops that they are defined in.

    ``silu(x)`` -> ``mul(x, sigmoid(x))``. The last op of each defines the composite's result
    under its own number.
    """
    builder = GraphBuilder(*next_free(fusion))
    substitution = Substitution()
    for node in fusion.nodes:
        _decompose_node(substitution.node(node), builder, substitution)
    return rebuilt(fusion, builder.nodes, substitution)


def _decompose_node(node: Node, builder: GraphBuilder, substitution: Substitution) -> None:
    call = as_call(node)
    if not isinstance(call.op.form, Composite):
        builder.nodes.append(node)
        return
    builder.loc = node.loc
    mark = len(builder.nodes)
    made = call.op.form.expand(OpNamespace(builder), *call.args, **call.attrs)
    made = made if isinstance(made, tuple) else (made,)
    fresh, builder.nodes[mark:] = builder.nodes[mark:], []
    names = Substitution()
    for old, new in zip(node.outs, made, strict=True):
        if any(new in n.outs for n in fresh):
            names.set(new, Value(old.index, new.type))
            substitution.set(old, Value(old.index, new.type))
        else:
            substitution.set(old, new)
    for inner in fresh:
        inner = names.node(inner)
        outs = tuple(v if isinstance(v := names(o), Value) else o for o in inner.outs)
        renamed = Node(inner.op, inner.args, inner.attrs, outs, node.loc)
        _decompose_node(renamed, builder, substitution)
