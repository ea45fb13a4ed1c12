"""Fusion in, an equal Fusion out that slices what a reduction reads, not what is computed of it.

``norm(x)[:, -1]`` -> ``norm(x[:, -1])``: the sums of all other rows are not needed, and kept the
norm in two kernels, one of all rows and one of those that are stored.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import partial

from ....device import SECTOR_BYTES
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ..redundant_nodes import eliminate_common_subexpressions, eliminate_dead_code
from ..substitution import Substitution, next_free, rebuilt
from .boxes import (
    Box,
    has_open_sizes,
    is_reduction,
    needed_boxes,
    of_operand,
    operand_boxes,
    union,
    volume,
    whole,
)
from .parts import Parts


def narrow_reductions(fusion: Fusion) -> Fusion:
    """Reduce only those rows whose results are needed.

    A reduction stays whole where others need more rows of what it reads, over the same dims or
    elementwise: they are computed in one kernel. So it does where slices of it overlap, which would
    be reduced twice, and where the rows that are needed lie apart from vectors in memory.
    """
    if not any(map(is_reduction, fusion.nodes)) or has_open_sizes(fusion):
        return fusion
    results = {value: whole(value) for value in fusion.returned if value.is_tensor}
    chosen = set(_that_may_be_narrowed(fusion, results))
    chosen -= _that_overlap(fusion, chosen)
    return _narrowed(fusion, chosen) if chosen else fusion


def _that_may_be_narrowed(fusion: Fusion, results: Mapping[Value, Box]) -> Iterator[Node]:
    """The reductions of which a part is needed, that share their loop nest with no other results
    that need more."""
    needed = needed_boxes(fusion, results)
    by_nest: dict[object, dict[Value, Box]] = {}
    for node in filter(is_reduction, fusion.nodes):
        boxes = [needed[out] for out in node.outs if out in needed]
        if not boxes or union(boxes) == whole(node.out):
            continue
        nest, part = _nest_of(node), of_operand(node, union(boxes))
        if nest not in by_nest:
            by_nest[nest] = needed_boxes(fusion, results, partial(_is_of_nest, nest))
        if _keeps_vectors(node, part) and _is_alone(fusion, node, part, by_nest[nest]):
            yield node


def _nest_of(node: Node) -> object:
    """What two reductions have in common that one loop nest can compute."""
    return as_call(node).dims(), as_call(node).value("arg").tensor.sizes


def _is_of_nest(nest: object, node: Node) -> bool:
    return _nest_of(node) == nest


def _keeps_vectors(node: Node, part: Box) -> bool:
    """Whether a part of an operand has whole sectors of memory, if the last dim is contiguous."""
    operand = as_call(node).value("arg")
    granule, size = SECTOR_BYTES // operand.dtype.info.bytes, operand.tensor.sizes[-1]
    return all(edge % granule == 0 or edge == size for edge in part[-1])


def _is_alone(fusion: Fusion, node: Node, part: Box, by_nest: Mapping[Value, Box]) -> bool:
    """Whether no results of the same loop nest need more of what a reduction reads.

    Parameters
    ----------
    part : Box
        What it needs of its operand.
    by_nest : mapping of Value to Box
        What the results need, and the reductions of the same loop nest.
    """
    operand = as_call(node).value("arg")
    mine = needed_boxes(fusion, {operand: part}, lambda other: False)
    large = (v for v in mine if v.tensor.numel >= operand.tensor.numel)
    return all(union([mine[v], by_nest.get(v, mine[v])]) == mine[v] for v in large)


def _that_overlap(fusion: Fusion, chosen: Container[Node]) -> set[Node]:
    """The reductions that would have more elements in the parts of slices than all of them span."""
    parts = Parts(fusion, chosen)
    wanted = {pair for node in fusion.nodes for pair in parts.wanted_by(node)}
    boxes: dict[Node, set[Box]] = {}
    for value, box in wanted:
        node = fusion.producers.get(value)
        if node is not None and node in chosen:
            boxes.setdefault(node, set()).add(box)
    spans = {node: volume(union([*each])) for node, each in boxes.items()}
    return {node for node, span in spans.items() if sum(map(volume, boxes[node])) > span}


def _narrowed(fusion: Fusion, chosen: Container[Node]) -> Fusion:
    """The fusion with the slices computed of sliced operands that some reductions are behind."""
    builder = GraphBuilder(*next_free(fusion))
    substitution = Substitution()
    parts = Parts(fusion, chosen)
    for node in fusion.nodes:
        builder.loc = node.loc
        wanted = parts.wanted_by(node)
        if not wanted:
            builder.nodes.append(substitution.node(node))
            continue
        parts.record(wanted, builder, substitution)
        ((operand, box),) = operand_boxes(node, whole(node.out))
        substitution.set(node.out, parts.known[operand, box])
    found = rebuilt(fusion, builder.nodes, substitution)
    return eliminate_dead_code(eliminate_common_subexpressions(found))
