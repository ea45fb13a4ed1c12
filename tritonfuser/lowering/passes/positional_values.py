"""Fusion in, an equal Fusion that computes values of positions alone before they are expanded out.

``reciprocal(expand(iota(8), [B, T, 8]))`` -> ``expand(reciprocal(iota(8)), [B, T, 8])``: tracers
expand all operands of an op. What is known of the smaller value, that it lies along one dim, is
known of all that is computed from it.
"""

from __future__ import annotations

from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.forms import Factory, Pointwise
from ...ops.table import View
from ...symbolic.queries import is_known_equal
from .rewriting import rewritten, viewed_results


def shrink_positional(fusion: Fusion) -> Fusion:
    """Compute elementwise what no tensor in memory enters, in the smallest shape."""
    positional = _positional(fusion)
    if not positional:
        return fusion
    kept = viewed_results(fusion)  # they have an element in memory for each position
    small: dict[Value, Value] = {}

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        form = as_call(node).op.form
        if node.out not in positional or node.out in kept or not isinstance(form, Pointwise):
            return None
        sources = {v: small.get(v) or _expanded(fusion, v) for v in node.operands() if v.is_tensor}
        if not sources or any(source is None for source in sources.values()):
            return None
        args = [sources.get(arg, arg) if isinstance(arg, Value) else arg for arg in node.args]
        found: Value = builder.call(node.op, *args, **dict(node.attrs))
        same = all(map(is_known_equal, found.tensor.sizes, node.out.tensor.sizes))
        if same or found.dtype is not node.out.dtype:
            return None
        small[node.out] = found
        made: Value = builder.call("expand", found, list(node.out.tensor.sizes))
        return made

    return rewritten(fusion, rewrite)


def _positional(fusion: Fusion) -> frozenset[Value]:
    """The tensors that are computed from positions, scalars and constants."""
    found = set[Value]()
    for node in fusion.nodes:
        form = as_call(node).op.form
        tensors = [v for v in node.operands() if v.is_tensor]
        is_made = isinstance(form, Factory) or (tensors and isinstance(form, Pointwise | View))
        if is_made and node.out.is_tensor and found.issuperset(tensors):
            found.add(node.out)
    return frozenset(found)


def _expanded(fusion: Fusion, value: Value) -> Value | None:
    """What a value is an expansion of."""
    node = fusion.producers.get(value)
    source = node.args[0] if node is not None and node.op == "expand" else None
    return source if isinstance(source, Value) else None
