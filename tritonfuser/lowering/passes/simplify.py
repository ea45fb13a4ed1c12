"""Concrete Fusion in, an equal Fusion with less to compute out.

Composite ops become the ops they are written in, copies and cast pairs go, equal nodes merge,
constant nodes are evaluated, dead ones dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dtypes import DataType
from ...ir import Arg, Const, Fusion, Node, Operand, Output, Value, depth_first
from ...ops.builder import GraphBuilder, OpNamespace, as_call
from ...ops.table import Composite, Pointwise, View
from .constant_folding import fold

Pass = Callable[[Fusion], Fusion]


def simplify(fusion: Fusion) -> Fusion:
    """All rewrites of this file, in order.

    ``cast(cast(x: BFloat16, Float), BFloat16)`` -> ``x``;
    ``mul(x, y); mul(x, y)`` -> one ``mul``; ``silu(x)`` -> ``mul(x, sigmoid(x))``.
    """
    for rewrite in (decompose, drop_copies, merge_equal, drop_dead):
        fusion = rewrite(fusion)
    return fusion


def next_free(fusion: Fusion) -> tuple[int, int]:
    """The first unused number of tensors and of scalars."""
    values = [*fusion.inputs, *(out for node in fusion.nodes for out in node.outs)]
    tensors = max((v.index for v in values if v.is_tensor), default=-1) + 1
    scalars = max((v.index for v in values if not v.is_tensor), default=-1) + 1
    return tensors, scalars


class Substitution:
    """Operands that stand for values, followed through args and outputs."""

    def __init__(self) -> None:
        self._for: dict[Value, Operand] = {}

    def set(self, value: Value, operand: Operand) -> None:
        self._for[value] = operand

    def __call__(self, operand: Operand) -> Operand:
        return self._for.get(operand, operand) if isinstance(operand, Value) else operand

    def arg(self, arg: Arg) -> Arg:
        if isinstance(arg, tuple):
            return tuple(self(item) for item in arg)
        return None if arg is None else self(arg)

    def node(self, node: Node) -> Node:
        args = tuple(self.arg(arg) for arg in node.args)
        return node if args == node.args else Node(node.op, args, node.attrs, node.outs, node.loc)

    def output(self, output: Output) -> Output:
        value = self(output.value)
        assert isinstance(value, Value)
        return Output(value, output.alias_of, output.hidden)


def rebuilt(fusion: Fusion, nodes: list[Node], swap: Substitution) -> Fusion:
    return Fusion(fusion.inputs, tuple(nodes), tuple(swap.output(o) for o in fusion.outputs))


def decompose(fusion: Fusion) -> Fusion:
    """Replace composite nodes, innermost results keeping the composite's numbers."""
    builder = GraphBuilder(*next_free(fusion))
    swap = Substitution()
    for node in fusion.nodes:
        _decompose_node(swap.node(node), builder, swap)
    return rebuilt(fusion, builder.nodes, swap)


def _decompose_node(node: Node, builder: GraphBuilder, swap: Substitution) -> None:
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
            swap.set(old, Value(old.index, new.type))
        else:
            swap.set(old, new)
    for inner in fresh:
        inner = names.node(inner)
        outs = tuple(v if isinstance(v := names(o), Value) else o for o in inner.outs)
        _decompose_node(Node(inner.op, inner.args, inner.attrs, outs, node.loc), builder, swap)


def drop_copies(fusion: Fusion) -> Fusion:
    """Remove ``set`` and casts that change nothing, cast pairs that cancel, constant nodes.

    A copy of an input that is handed out, as it is or through views, stays: the result must not
    share the input's memory.
    """
    kept = _copies_to_keep(fusion)
    swap = Substitution()
    nodes: list[Node] = []
    made: dict[Value, Node] = {}
    for node in fusion.nodes:
        node = swap.node(node)
        replacement = _copied(node, made)
        if replacement is not None and node.out not in kept:
            swap.set(node.out, swap(replacement))
            continue
        constant = _constant(node)
        if constant is not None:
            swap.set(node.out, constant)
            continue
        nodes.append(node)
        made.update(dict.fromkeys(node.outs, node))
    return rebuilt(fusion, nodes, swap)


def _constant(node: Node) -> Const | None:
    return None if node.out.is_tensor else fold(as_call(node), node.out.dtype)


def _copies(node: Node) -> bool:
    """Whether a node only hands a value on, as it is or in another dtype."""
    form = as_call(node).op.form
    return isinstance(form, Pointwise) and form.copies


def _copied(node: Node, made: dict[Value, Node]) -> Value | None:
    """The value a copy equals, if the node is a copy."""
    if not _copies(node) or not isinstance(node.args[0], Value):
        return None
    source = node.args[0]
    if source.type == node.out.type or (
        source.is_tensor and node.out.is_tensor and source.dtype is node.out.dtype
    ):
        return source
    inner = made.get(source)
    if inner is None or not _copies(inner) or not isinstance(inner.args[0], Value):
        return None
    origin = inner.args[0]
    exact = _holds(source.dtype, origin.dtype)
    return origin if exact and origin.dtype is node.out.dtype else None


_WIDER: dict[DataType, frozenset[DataType]] = {
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


def _holds(wide: DataType, narrow: DataType) -> bool:
    """Whether every number of ``narrow`` is one of ``wide``."""
    return narrow in _WIDER.get(wide, frozenset())


def _copies_to_keep(fusion: Fusion) -> frozenset[Value]:
    """Results of copies that lie between an input and an output with only views around."""
    kept: set[Value] = set()
    for output in fusion.outputs:
        value, copy = output.value, None
        while (node := fusion.producers.get(value)) is not None:
            if _copies(node):
                copy = copy or value
            elif not isinstance(as_call(node).op.form, View):
                break
            value = next(node.operands())
        if copy is not None and value in fusion.given:
            kept.add(copy)
    return frozenset(kept)


def merge_equal(fusion: Fusion) -> Fusion:
    """Common subexpressions: nodes with equal op, operands and attributes become one."""
    swap = Substitution()
    seen: dict[tuple[object, ...], Node] = {}
    nodes: list[Node] = []
    for node in fusion.nodes:
        node = swap.node(node)
        key = (node.op, node.args, node.attrs)
        first = seen.setdefault(key, node)
        if first is node or _is_random(node):
            nodes.append(node)
            continue
        for old, new in zip(node.outs, first.outs, strict=True):
            swap.set(old, new)
    return rebuilt(fusion, nodes, swap)


def _is_random(node: Node) -> bool:
    """Random ops without a given seed draw anew each time."""
    call = as_call(node)
    names = [p.name for p in call.op.params if p.kind.is_operand]
    return "rng_seed" in names and call.arg("rng_seed") is None


def drop_dead(fusion: Fusion) -> Fusion:
    """What the outputs need, in the order of the printed definition.

    So a definition and its printed form are cut alike, round alike and draw the same numbers.
    """
    return Fusion(fusion.inputs, tuple(depth_first(fusion)), fusion.outputs)
