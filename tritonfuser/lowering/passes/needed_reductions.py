"""Fusion in, an equal Fusion out that slices what a reduction reads, not what is computed of it.

``norm(x)[:, -1]`` -> ``norm(x[:, -1])``: the sums of all other rows are not needed, and kept the
norm in two kernels, one of all rows and one of those that are stored.
"""

from __future__ import annotations

from collections.abc import Container

from ...ir import Fusion, Node
from ...ops.builder import GraphBuilder, as_call
from .needed_boxes import (
    Box,
    has_open_sizes,
    is_reduction,
    needed_boxes,
    of_operand,
    union,
    whole,
)
from .parts_of_values import Parts, slice_box
from .redundant_nodes import eliminate_common_subexpressions, eliminate_dead_code
from .substitution import Substitution, next_free, rebuilt


def narrow_reductions(fusion: Fusion) -> Fusion:
    """Reduce the rows alone whose results are needed.

    A reduction stays whole where others need more rows of what it reads, over the same dims or
    elementwise: they are computed in one kernel.
    """
    if not any(map(is_reduction, fusion.nodes)) or has_open_sizes(fusion):
        return fusion
    results = {value: whole(value) for value in fusion.returned if value.is_tensor}
    needed = needed_boxes(fusion, results)
    chosen: set[Node] = set()
    for node in filter(is_reduction, fusion.nodes):
        boxes = [needed[out] for out in node.outs if out in needed]
        if boxes and union(boxes) != whole(node.out) and _is_alone(fusion, node, union(boxes)):
            chosen.add(node)
    return _narrowed(fusion, chosen) if chosen else fusion


def _is_alone(fusion: Fusion, node: Node, box: Box) -> bool:
    """Whether no other results of the same loop nest need more of what a reduction reads."""
    operand, dims = as_call(node).value("arg"), as_call(node).dims()

    def shares_loops(other: Node) -> bool:
        call = as_call(other)
        return call.dims() == dims and call.value("arg").tensor.sizes == operand.tensor.sizes

    results = {value: whole(value) for value in fusion.returned if value.is_tensor}
    by_all = needed_boxes(fusion, results, shares_loops)
    mine = needed_boxes(fusion, {operand: of_operand(node, box)})
    large = (v for v in mine if v.tensor.numel >= operand.tensor.numel)
    return all(union([mine[v], by_all.get(v, mine[v])]) == mine[v] for v in large)


def _narrowed(fusion: Fusion, chosen: Container[Node]) -> Fusion:
    """The fusion with the slices computed of sliced operands that some reductions are behind."""
    builder = GraphBuilder(*next_free(fusion))
    substitution = Substitution()
    parts = Parts(fusion, builder, substitution)
    for node in fusion.nodes:
        builder.loc = node.loc
        box = slice_box(node)
        if box is None or not any(n in chosen for n in parts.behind(as_call(node).value("arg"))):
            builder.nodes.append(substitution.node(node))
        else:
            substitution.set(node.out, parts.of(as_call(node).value("arg"), box))
    found = rebuilt(fusion, builder.nodes, substitution)
    return eliminate_dead_code(eliminate_common_subexpressions(found))
