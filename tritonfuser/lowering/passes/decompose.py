"""Fusion in, an equal Fusion without composite ops out."""

from __future__ import annotations

from collections.abc import Callable

from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, OpNamespace, as_call
from ...ops.forms import Composite
from ...ops.table import Call
from .substitution import Substitution, next_free, rebuilt

Expansion = Callable[[OpNamespace, Call], Value | tuple[Value, ...]]
"""Records what an op is made of; gives what stands for its results."""


def decompose(fusion: Fusion) -> Fusion:
    """Replace composite nodes by the ops that they are defined in.

    ``silu(x)`` -> ``mul(x, sigmoid(x))``. The last op of each defines the composite's result
    under its own number.
    """
    return expand(fusion, _composite)


def _composite(node: Node) -> Expansion | None:
    form = as_call(node).op.form
    if not isinstance(form, Composite):
        return None
    return lambda ops, call: form.expand(ops, *call.args, **call.attrs)


def expand(fusion: Fusion, expansion_of: Callable[[Node], Expansion | None]) -> Fusion:
    """Replace nodes by their expansions, recursively."""
    builder = GraphBuilder(*next_free(fusion))
    substitution = Substitution()
    for node in fusion.nodes:
        _expand_node(substitution.node(node), expansion_of, builder, substitution)
    return rebuilt(fusion, builder.nodes, substitution)


def _expand_node(
    node: Node,
    expansion_of: Callable[[Node], Expansion | None],
    builder: GraphBuilder,
    substitution: Substitution,
) -> None:
    expansion = expansion_of(node)
    if expansion is None:
        builder.nodes.append(node)
        return
    builder.loc = node.loc
    mark = len(builder.nodes)
    made = expansion(OpNamespace(builder), as_call(node))
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
        _expand_node(renamed, expansion_of, builder, substitution)
