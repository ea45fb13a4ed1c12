"""Common subexpressions merged, dead nodes dropped."""

from __future__ import annotations

from ...ir import Fusion, Node
from ...ir_graph import depth_first
from ...ops.builder import as_call
from .substitution import Substitution, rebuilt


def eliminate_common_subexpressions(fusion: Fusion) -> Fusion:
    """Common subexpression elimination: nodes of equal op, operands and attributes become one."""
    substitution = Substitution()
    seen: dict[tuple[object, ...], Node] = {}
    nodes: list[Node] = []
    for node in fusion.nodes:
        node = substitution.node(node)
        key = (node.op, node.args, node.attrs)
        first = seen.setdefault(key, node)
        if first is node or _draws_anew(node):
            nodes.append(node)
            continue
        for old, new in zip(node.outs, first.outs, strict=True):
            substitution.set(old, new)
    return rebuilt(fusion, nodes, substitution)


def _draws_anew(node: Node) -> bool:
    """Whether this is a random op without a given seed: two of them draw different numbers."""
    call = as_call(node)
    return "rng_seed" in call.op.operands and call.arg("rng_seed") is None


def eliminate_dead_code(fusion: Fusion) -> Fusion:
    """Dead code elimination: the nodes that outputs need, in the order of the printed definition.

    By that order a definition and its printed form are segmented alike, round alike and draw the
    same random numbers.
    """
    return Fusion(fusion.inputs, tuple(depth_first(fusion)), fusion.outputs)
