"""Fusion in, an equal Fusion that keeps in memory what is dear to compute once more out.

A kernel computes what it needs from what is in memory. Where torch runs something in between, it
may so come to add up the same tensors as the kernels before it, one more each time: a sum over all
layers of a network. Such a value is stored by the kernel that computes it first:
``x3 = x2 + p3; y = f(x3); ...; x4 = x3 + p4`` -> ``x4 = keep(x3) + p4``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import Fusion, Node, Output, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.table import Factory, Library, Pointwise, Random, View
from ...symbolic.sizes import hint
from ..access.read_footprint import ends_kernel
from .simplify import drop_dead, next_free

DEAR = 4
"""Bytes read to compute a value, for each byte of it, from which on it is kept."""

MANY = 64
"""Tensors that a value is computed from, from which on they are counted no more."""

Roots = frozenset[Value] | None
"""The tensors in memory that a value is computed from; None for too many."""


def materialize_shared(fusion: Fusion) -> Fusion:
    """Keep what is dear and used again behind an op that torch runs."""
    if not any(isinstance(as_call(node).op.form, Library) for node in fusion.nodes):
        return fusion
    keeper = _Materializer(fusion)
    for node in fusion.nodes:
        keeper.add(node)
    if not keeper.kept:
        return fusion
    outputs = tuple(
        Output(keeper.kept.get(o.value, o.value), o.alias_of, o.hidden) for o in fusion.outputs
    )
    return drop_dead(Fusion(fusion.inputs, tuple(keeper.builder.nodes), outputs))


class _Materializer:
    """Writes nodes once more; ``levels`` counts the ops that torch runs before a value is there."""

    def __init__(self, fusion: Fusion) -> None:
        self.builder = GraphBuilder(*next_free(fusion))
        self.kept: dict[Value, Value] = {}
        self._makers: dict[Value, Node] = {}
        self._levels = dict.fromkeys(fusion.inputs, 0)
        self._roots: dict[Value, Roots] = {v: frozenset({v}) for v in fusion.inputs if v.is_tensor}
        self._later: dict[Value, Value] = {}

    def add(self, node: Node) -> None:
        """Append a node; operands of earlier levels as kernels of its level best get them."""
        level = max((self._levels[v] for v in node.operands()), default=0)
        if not ends_kernel(node):
            early = [v for v in node.operands() if v.is_tensor and self._levels[v] < level]
            node = _replaced(node, {v: self._from_later(v) for v in early})
        self._append(node, level + ends_kernel(node))

    def _append(self, node: Node, level: int) -> None:
        self.builder.nodes.append(node)
        for out in node.outs:
            self._makers[out] = node
            self._levels[out] = level
            if out.is_tensor:
                free = _is_free(node)
                self._roots[out] = self._joined(node.operands()) if free else frozenset({out})

    def _joined(self, operands: Iterable[Value]) -> Roots:
        found: set[Value] = set()
        for value in operands:
            roots = self._roots[value] if value.is_tensor else frozenset()
            if roots is None or len(found) > MANY:
                return None
            found |= roots
        return frozenset(found)

    def _from_later(self, wanted: Value) -> Value:
        """What kernels of later levels read in the place of a value: it, or one equal to it."""
        stack = [wanted]
        while stack:
            value = stack[-1]
            node = self._makers.get(value)
            if node is None or not _is_free(node) or not self._is_dear(value, self._roots[value]):
                self._later[value] = value
            tensors = [] if node is None else [v for v in node.operands() if v.is_tensor]
            missing = [v for v in tensors if v not in self._later]
            if value in self._later:
                stack.pop()
            elif missing:
                stack.extend(missing)
            else:
                assert node is not None
                self._later[value] = self._cheaper(value, node)
        return self._later[wanted]

    def _cheaper(self, value: Value, node: Node) -> Value:
        """A dear value computed from what is kept before it, or else kept itself."""
        swap = {v: self._later[v] for v in node.operands() if v.is_tensor}
        if self._is_dear(value, self._joined(swap.values())):
            (kept,) = self._written(Node("keep", (value,), (), (value,), node.loc), value)
            self.kept[value] = kept
            return kept
        return dict(zip(node.outs, self._written(_replaced(node, swap), value), strict=True))[value]

    def _written(self, node: Node, like: Value) -> tuple[Value, ...]:
        """A node appended with results of its own, at the level of a value."""
        outs = tuple(self.builder.new_value(out.type) for out in node.outs)
        self._append(Node(node.op, node.args, node.attrs, outs, node.loc), self._levels[like])
        return outs

    def _is_dear(self, value: Value, roots: Roots) -> bool:
        if roots is None:
            return True
        elements = hint(value.tensor.numel)
        read = sum(min(hint(r.tensor.numel), elements) * r.dtype.info.bytes for r in roots)
        return read >= DEAR * elements * value.dtype.info.bytes


def _is_free(node: Node) -> bool:
    """Whether any kernel may compute the node where it needs it."""
    return isinstance(as_call(node).op.form, Pointwise | View | Factory | Random)


def _replaced(node: Node, values: dict[Value, Value]) -> Node:
    """The node with other operands."""
    args = tuple(
        tuple(values.get(v, v) if isinstance(v, Value) else v for v in arg)
        if isinstance(arg, tuple)
        else (values.get(arg, arg) if isinstance(arg, Value) else arg)
        for arg in node.args
    )
    return Node(node.op, args, node.attrs, node.outs, node.loc)
