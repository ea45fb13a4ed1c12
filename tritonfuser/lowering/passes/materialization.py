"""Materializes values that several kernels would recompute.

A kernel recomputes what it needs from tensors in memory. Between library ops the kernels of a deep
network would so read more tensors with every layer: all terms of a residual stream. Such a value is
stored by the kernel that computes it first:
``x3 = x2 + p3; y = f(x3); ...; x4 = x3 + p4`` -> ``x4 = keep(x3) + p4``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.forms import Factory, Pointwise, Random
from ...ops.table import Library, View
from ...symbolic.sizes import hint
from ..access.node_kinds import ends_kernel
from .redundant_nodes import eliminate_dead_code
from .substitution import Substitution, next_free, rebuilt

MIN_RATIO = 4
"""Bytes read to recompute a value, per byte of it, from which on it is materialized."""

MAX_ROOTS = 64
"""More tensors than these under a value are not listed: it counts as expensive."""

Roots = frozenset[Value] | None
"""The tensors in memory that a value is computed from; None for more than ``MAX_ROOTS``."""


@dataclass(frozen=True, slots=True)
class Reread:
    """How kernels behind a later library op read values again that earlier kernels compute.

    Attributes
    ----------
    materialized : tuple of str
        Names of the values that are stored for them.
    recomputed : tuple of str
        Names of the values that they compute from those.
    """

    materialized: tuple[str, ...] = ()
    recomputed: tuple[str, ...] = ()


def materialize_shared(fusion: Fusion, given: Reread | None = None) -> tuple[Fusion, Reread]:
    """Materialize expensive values that kernels behind a later library op use again.

    Parameters
    ----------
    given : Reread, optional
        The choice. By default what costs many bytes to recompute is materialized.

    Returns
    -------
    Fusion, Reread
        The fusion with the chosen values materialized, and the choice.
    """
    if not any(isinstance(as_call(node).op.form, Library) for node in fusion.nodes):
        return fusion, Reread()
    rewriter = _Materializer(fusion, given)
    for node in fusion.nodes:
        rewriter.add(node)
    if not rewriter.materialized:
        return fusion, Reread()
    values = Substitution(rewriter.materialized)
    names = (v.name for v in rewriter.materialized)
    chosen = Reread(tuple(names), tuple(rewriter.recomputed))
    return eliminate_dead_code(rebuilt(fusion, rewriter.builder.nodes, values)), chosen


class _Materializer:
    """Rebuilds the nodes in order.

    Attributes
    ----------
    builder : GraphBuilder
        The nodes so far.
    materialized : dict
        Value -> the result of its ``keep``.
    recomputed : list of str
        Names of the values that are computed once more from those.

    The level of a value is the longest chain of library ops, scatters and ``keep`` before it.
    """

    def __init__(self, fusion: Fusion, given: Reread | None) -> None:
        self.builder = GraphBuilder(*next_free(fusion))
        self.materialized: dict[Value, Value] = {}
        self.recomputed: list[str] = []
        self._given = given
        self._stored = frozenset(() if given is None else given.materialized)
        self._again = frozenset(() if given is None else given.recomputed)
        self._makers: dict[Value, Node] = {}
        self._levels = dict.fromkeys(fusion.inputs, 0)
        self._roots: dict[Value, Roots] = {v: frozenset({v}) for v in fusion.inputs if v.is_tensor}
        self._reread: dict[Value, Value] = {}

    def add(self, node: Node) -> None:
        """Append a node; it reads operands of earlier levels in the cheapest way."""
        level = max((self._levels[v] for v in node.operands()), default=0)
        if not ends_kernel(node):
            early = [v for v in node.operands() if v.is_tensor and self._levels[v] < level]
            node = Substitution({v: self._as_reread(v) for v in early}).node(node)
        self._append(node, level + ends_kernel(node))

    def _append(self, node: Node, level: int) -> None:
        self.builder.nodes.append(node)
        for out in node.outs:
            self._makers[out] = node
            self._levels[out] = level
            if out.is_tensor:
                fused = _is_recomputed(node)
                self._roots[out] = self._roots_of(node.operands()) if fused else frozenset({out})

    def _roots_of(self, operands: Iterable[Value]) -> Roots:
        found: set[Value] = set()
        for value in operands:
            roots = self._roots[value] if value.is_tensor else frozenset()
            if roots is None or len(found) > MAX_ROOTS:
                return None
            found |= roots
        return frozenset(found)

    def _as_reread(self, wanted: Value) -> Value:
        """What kernels of later levels use in place of a value: itself, or one equal to it."""
        stack = [wanted]
        while stack:
            value = stack[-1]
            node = self._makers.get(value)
            if node is None or not self._is_expensive(node, value):
                self._reread[value] = value
            tensors = [] if node is None else [v for v in node.operands() if v.is_tensor]
            missing = [v for v in tensors if v not in self._reread]
            if value in self._reread:
                stack.pop()
            elif missing:
                stack.extend(missing)
            else:
                assert node is not None
                self._reread[value] = self._cheaper_equal(value, node)
        return self._reread[wanted]

    def _cheaper_equal(self, value: Value, node: Node) -> Value:
        """An expensive value recomputed from what is materialized, or else materialized itself."""
        operands = {v: self._reread[v] for v in node.operands() if v.is_tensor}
        if self._is_materialized(value, operands.values()):
            (kept,) = self._appended(Node("materialize", (value,), (), (value,), node.loc), value)
            self.materialized[value] = kept
            return kept
        self.recomputed.append(value.name)
        copies = self._appended(Substitution(operands).node(node), value)
        return dict(zip(node.outs, copies, strict=True))[value]

    def _appended(self, node: Node, like: Value) -> tuple[Value, ...]:
        """Append a node with new results, at the level of ``like``."""
        outs = tuple(self.builder.new_value(out.type) for out in node.outs)
        self._append(Node(node.op, node.args, node.attrs, outs, node.loc), self._levels[like])
        return outs

    def _is_expensive(self, node: Node, value: Value) -> bool:
        if self._given is not None:
            return _is_recomputed(node) and value.name in self._stored | self._again
        return _is_recomputed(node) and self._exceeds_ratio(value, self._roots[value])

    def _is_materialized(self, value: Value, operands: Iterable[Value]) -> bool:
        """Whether an expensive value is stored, rather than computed from operands once more."""
        if self._given is not None:
            return value.name in self._stored
        return self._exceeds_ratio(value, self._roots_of(operands))

    def _exceeds_ratio(self, value: Value, roots: Roots) -> bool:
        """Whether computing a value reads ``MIN_RATIO`` times its own bytes."""
        if roots is None:
            return True
        elements = hint(value.tensor.numel)
        read = sum(min(hint(r.tensor.numel), elements) * r.dtype.info.bytes for r in roots)
        return read >= MIN_RATIO * elements * value.dtype.info.bytes


def _is_recomputed(node: Node) -> bool:
    """Whether every kernel that needs the node computes it."""
    return isinstance(as_call(node).op.form, Pointwise | View | Factory | Random)
