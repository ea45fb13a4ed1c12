"""Fusion in, an equal Fusion without needless copies, cast pairs and constant nodes out."""

from __future__ import annotations

from ...dtypes import DataType
from ...ir import Const, Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.table import View
from .constant_folding import fold
from .rewriting import is_copy
from .substitution import Substitution, rebuilt


def eliminate_copies(fusion: Fusion) -> Fusion:
    """Remove ``set``, casts that change nothing, cast pairs that cancel, and constant nodes.

    A copy between an input and an output stays where only views are around it: the output must
    not share the input's memory.
    """
    required = _required_copies(fusion)
    substitution = Substitution()
    nodes: list[Node] = []
    producers: dict[Value, Node] = {}
    for node in fusion.nodes:
        node = substitution.node(node)
        source = _copied_value(node, producers)
        if source is not None and node.out not in required:
            substitution.set(node.out, substitution(source))
            continue
        constant = _constant(node)
        if constant is not None:
            substitution.set(node.out, constant)
            continue
        nodes.append(node)
        producers.update(dict.fromkeys(node.outs, node))
    return rebuilt(fusion, nodes, substitution)


def _constant(node: Node) -> Const | None:
    return None if node.out.is_tensor else fold(as_call(node), node.out.dtype)


def _copied_value(node: Node, producers: dict[Value, Node]) -> Value | None:
    """The value that a node's result equals, if the node is a copy."""
    if not is_copy(node) or not isinstance(node.args[0], Value):
        return None
    source = node.args[0]
    if source.is_tensor is node.out.is_tensor and source.dtype is node.out.dtype:
        return source
    inner = producers.get(source)
    if inner is None or not is_copy(inner) or not isinstance(inner.args[0], Value):
        return None
    origin = inner.args[0]
    lossless = is_lossless(origin.dtype, source.dtype)
    return origin if lossless and origin.dtype is node.out.dtype else None


_LOSSLESS_FROM: dict[DataType, frozenset[DataType]] = {
    DataType.Float: frozenset(
        {
            DataType.Half,
            DataType.BFloat16,
            DataType.Float8_e4m3fn,
            DataType.Float8_e5m2,
            DataType.Bool,
        }
    ),
    DataType.Double: frozenset(
        {DataType.Float, DataType.Half, DataType.BFloat16, DataType.Int32, DataType.Bool}
    ),
    DataType.Int: frozenset({DataType.Int32, DataType.Bool}),
    DataType.Int32: frozenset({DataType.Bool}),
}
"""For a dtype, those all of whose numbers it represents exactly."""


def is_lossless(narrow: DataType, wide: DataType) -> bool:
    """Whether a cast from ``narrow`` to ``wide`` keeps every number exactly."""
    return narrow in _LOSSLESS_FROM.get(wide, frozenset())


def _required_copies(fusion: Fusion) -> frozenset[Value]:
    """Results of copies between an input and an output with nothing but views around them."""
    required: set[Value] = set()
    for output in fusion.outputs:
        value, copy = output.value, None
        while (node := fusion.producers.get(value)) is not None:
            if is_copy(node):
                copy = copy or value
            elif not isinstance(as_call(node).op.form, View):
                break
            value = next(node.operands())
        if copy is not None and value in fusion.given:
            required.add(copy)
    return frozenset(required)
