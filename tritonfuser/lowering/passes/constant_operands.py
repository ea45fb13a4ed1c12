"""Fusion in, an equal Fusion whose library ops get one number as one element, expanded, out.

``index_put_accumulate(full([R, C], 0.0), i, x)`` ->
``index_put_accumulate(expand(full([1, 1], 0.0), [R, C]), i, x)``: no kernel writes the zeros.
"""

from __future__ import annotations

from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.shape_rules import with_operands
from ...ops.table import Library
from .rewriting import rewritten


def expand_constants(fusion: Fusion) -> Fusion:
    """Expand what is one number everywhere, where a library op takes it so."""

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        call = as_call(node)
        if not isinstance(call.op.form, Library):
            return None
        names = [n for n in call.op.form.expanded if _is_one_number(fusion, call.value(n))]
        if not names:
            return None
        made = {name: _expanded(fusion, call.value(name), builder) for name in names}
        found = builder.append(with_operands(call, **made))
        assert isinstance(found, Value)
        return found

    return rewritten(fusion, rewrite)


def _is_one_number(fusion: Fusion, value: Value) -> bool:
    node = fusion.producers.get(value)
    return node is not None and node.op == "full" and value.tensor.rank > 0


def _expanded(fusion: Fusion, value: Value, builder: GraphBuilder) -> Value:
    call = as_call(fusion.producers[value])
    element = builder.call("full", [1] * value.tensor.rank, call.arg("fill_value"), value.dtype)
    found = builder.call("expand", element, list(value.tensor.sizes))
    assert isinstance(found, Value)
    return found
