"""Boxes of values, computed of boxes of what they are computed from."""

from __future__ import annotations

from collections.abc import Container, Mapping, Set

from ....ir import Arg, Const, Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.forms import Pointwise
from ..substitution import Substitution
from .boxes import Box, is_reduction, operand_boxes, volume, whole


class Parts:
    """Parts of values, each recorded once.

    Elementwise ops, broadcasts, permutes, slices and some reductions are computed of parts of their
    operands; of all other values a slice is recorded.

    Parameters
    ----------
    narrowed : container of Node
        The reductions of which parts are computed.

    Attributes
    ----------
    known : dict
        (value, box) -> the value of the part.
    """

    def __init__(self, fusion: Fusion, narrowed: Container[Node]) -> None:
        self._producers, self._narrowed = fusion.producers, narrowed
        self._places = {out: n for n, node in enumerate(fusion.nodes) for out in node.outs}
        self.known: dict[tuple[Value, Box], Value] = {}

    def wanted_by(self, node: Node) -> set[tuple[Value, Box]]:
        """The parts that a slice is computed of, down to values that are sliced; none for other
        nodes, and where no reduction is among what is computed."""
        if not _is_slice(node):
            return set()
        first = set(operand_boxes(node, whole(node.out)))
        wanted, open_pairs = set(first), list(first)
        is_narrowed = False
        while open_pairs:
            value, box = open_pairs.pop()
            behind = self._node(value)
            if behind is None or box == whole(value):
                continue
            is_narrowed |= behind in self._narrowed
            more = set(operand_boxes(behind, box)) - wanted
            wanted |= more
            open_pairs += more
        return wanted if is_narrowed else set()

    def record(
        self, wanted: Set[tuple[Value, Box]], builder: GraphBuilder, substitution: Substitution
    ) -> None:
        """Record parts, and what they are computed of, in the order of the fusion."""
        for value, box in sorted(wanted, key=self._order):
            if (value, box) not in self.known:
                self._record(value, box, builder, substitution)

    def _order(self, part: tuple[Value, Box]) -> tuple[int, int, Box]:
        """Sort key of parts, the same in every process: those of inputs come first."""
        value, box = part
        return self._places.get(value, -1), value.index, box

    def _node(self, value: Value) -> Node | None:
        """What computes a value, if it computes parts of it of parts of its operands."""
        node = self._producers.get(value)
        if node is None or (is_reduction(node) and node not in self._narrowed):
            return None
        return node if _has_parts(node) else None

    def _record(
        self, value: Value, box: Box, builder: GraphBuilder, substitution: Substitution
    ) -> None:
        """Record one part; those of what it is computed of are known."""
        node, given = self._node(value), substitution(value)
        if box == whole(value):
            assert isinstance(given, Value)
            self.known[value, box] = given
        elif node is None:
            starts, stops = zip(*box, strict=True)
            steps = [1] * len(starts)
            self.known[value, box] = builder.call("slice", given, list(starts), list(stops), steps)
        else:
            parts = {v: self.known[v, part] for v, part in operand_boxes(node, box)}
            for out, made in zip(
                node.outs, _results(node, box, parts, builder, substitution), strict=True
            ):
                self.known[out, box] = made


def _results(
    node: Node,
    box: Box,
    parts: Mapping[Value, Value],
    builder: GraphBuilder,
    substitution: Substitution,
) -> tuple[Value, ...]:
    """The box of a node's results, from boxes of its operands."""
    if node.op == "slice":
        return tuple(parts.values())
    args: list[Arg] = [
        parts.get(arg) or substitution(arg) if isinstance(arg, Value) else arg for arg in node.args
    ]
    if node.op == "expand":
        args[1:] = [tuple(Const.of(stop - start) for start, stop in box)]
    loc, builder.loc = builder.loc, node.loc
    found = builder.call(node.op, *args, **dict(node.attrs))
    builder.loc = loc
    return found if isinstance(found, tuple) else (found,)


def _is_slice(node: Node) -> bool:
    """Whether a node is a slice without steps, of some elements and by known bounds."""
    if node.op != "slice":
        return False
    all_of = whole(node.out)
    ((_, box),) = operand_boxes(node, all_of)
    return volume(box) == volume(all_of) > 0


def _has_parts(node: Node) -> bool:
    form = as_call(node).op.form
    if isinstance(form, Pointwise):
        rank = node.out.tensor.rank if node.out.is_tensor else None
        return all(v.tensor.rank == rank for v in node.operands() if v.is_tensor)
    views = ("broadcast", "expand", "permute")
    return node.op in views or is_reduction(node) or _is_slice(node)
