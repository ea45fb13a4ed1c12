"""Fusion in, an equal Fusion that computes nothing from tensors of no elements out.

``sum(x, [1])`` of [4, 0] -> ``full([4], 0)``; ``pad(gather(x, i, 0), [2, 1])`` of an empty ``i``
-> ``pad(full([0], 0), [2, 1])``. The axis of such a tensor has no first element: what a kernel
would read there is outside of the tensor, and so is what it would take for an index.
"""

from __future__ import annotations

from dataclasses import replace

from ...dtypes import PACKED
from ...ir import Const, Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.forms import Moments, Pointwise, Reduction, Scan
from ...ops.table import Scatter, View
from ...symbolic.queries import assume_empty
from .constant_folding import neutral
from .redundant_nodes import eliminate_dead_code
from .substitution import next_free


def fill_empty(fusion: Fusion) -> Fusion:
    """Write results of no elements, and those of reductions of no elements, as constants.

    Moments of nothing are 0: the mean, the sum of squares and the count. Random numbers and what
    torch computes stay: they count on in torch's generator.
    """
    chosen = {node for node in fusion.nodes if _is_filled(node)}
    if not chosen:
        return fusion
    builder = GraphBuilder(*next_free(fusion))
    for node in fusion.nodes:
        if node not in chosen:
            builder.nodes.append(node)
            continue
        builder.loc = node.loc
        for out in node.outs:
            builder.call("full", out.tensor.sizes, _filling(node, out), out.dtype)
            builder.nodes[-1] = replace(builder.nodes[-1], outs=(out,))
    return eliminate_dead_code(replace(fusion, nodes=tuple(builder.nodes)))


def has_empty(fusion: Fusion) -> bool:
    """Whether a tensor of a concrete fusion has no elements."""
    results = [out for node in fusion.nodes for out in node.outs]
    return any(v.is_tensor and assume_empty(v.tensor.sizes) for v in (*fusion.inputs, *results))


def _filling(node: Node, out: Value) -> Const:
    form = as_call(node).op.form
    return neutral(form.identity if isinstance(form, Reduction) else "zero", out.dtype)


def _is_filled(node: Node) -> bool:
    form = as_call(node).op.form
    # Packed numbers have no constants: views of them are views, and nothing is computed of none.
    if not all(out.is_tensor and out.dtype not in PACKED for out in node.outs):
        return False
    if isinstance(form, Reduction | Moments) and _reduces_nothing(node):
        return True
    is_kernels = isinstance(form, Pointwise | View | Scatter | Scan | Reduction | Moments)
    return is_kernels and all(assume_empty(out.tensor.sizes) for out in node.outs)


def _reduces_nothing(node: Node) -> bool:
    operand = as_call(node).value("arg").tensor.sizes
    return assume_empty(tuple(operand[dim] for dim in as_call(node).dims()))
