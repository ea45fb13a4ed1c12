"""Boxes of values, computed of boxes of what they are computed from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...ir import Arg, Const, Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.forms import Pointwise
from .needed_boxes import Box, is_reduction, of_operand, repeated, whole
from .substitution import Substitution


class Parts:
    """Records parts of values into a builder, each once.

    Elementwise ops, reductions, broadcasts, permutes and slices are computed of parts of their
    operands; of all other values a slice is recorded.
    """

    def __init__(self, fusion: Fusion, builder: GraphBuilder, substitution: Substitution) -> None:
        self._producers, self._builder = fusion.producers, builder
        self._substitution = substitution
        self._places = {out: n for n, node in enumerate(fusion.nodes) for out in node.outs}
        self._known: dict[tuple[Value, Box], Value] = {}

    def behind(self, value: Value) -> Iterator[Node]:
        """The nodes of which parts are computed for a part of a value."""
        open_values, seen = [value], set[Node]()
        while open_values:
            node = self._node(open_values.pop())
            if node is not None and node not in seen:
                seen.add(node)
                yield node
                open_values += (v for v in node.operands() if v.is_tensor)

    def of(self, value: Value, box: Box) -> Value:
        """A box of a value."""
        wanted, open_pairs = {(value, box)}, [(value, box)]
        while open_pairs:
            node, part = self._node(open_pairs[-1][0]), open_pairs.pop()
            if node is not None and part[1] != whole(part[0]) and part not in self._known:
                more = _operand_boxes(node, part[1]).items() - wanted
                wanted |= more
                open_pairs += more
        for pair in sorted(wanted, key=lambda pair: self._places.get(pair[0], -1)):
            if pair not in self._known:
                self._make(*pair)
        return self._known[value, box]

    def _node(self, value: Value) -> Node | None:
        """What computes a value, if it computes parts of it of parts of its operands."""
        node = self._producers.get(value)
        return node if node is not None and _has_parts(node) else None

    def _make(self, value: Value, box: Box) -> None:
        """Record a box of a value; those of what it is computed from are known."""
        node, given = self._node(value), self._substitution(value)
        if box == whole(value):
            assert isinstance(given, Value)
            self._known[value, box] = given
        elif node is None:
            starts, stops = zip(*box, strict=True)
            steps = [1] * len(starts)
            made = self._builder.call("slice", given, list(starts), list(stops), steps)
            self._known[value, box] = made
        else:
            parts = {v: self._known[v, part] for v, part in _operand_boxes(node, box).items()}
            for out, made in zip(node.outs, self._results(node, box, parts), strict=True):
                self._known[out, box] = made

    def _results(self, node: Node, box: Box, parts: Mapping[Value, Value]) -> tuple[Value, ...]:
        """The box of a node's results, from boxes of its operands."""
        if node.op == "slice":
            return tuple(parts.values())
        args: list[Arg] = [
            parts.get(arg) or self._substitution(arg) if isinstance(arg, Value) else arg
            for arg in node.args
        ]
        if node.op == "expand":
            args[1:] = [tuple(Const.of(stop - start) for start, stop in box)]
        loc, self._builder.loc = self._builder.loc, node.loc
        found = self._builder.call(node.op, *args, **dict(node.attrs))
        self._builder.loc = loc
        return found if isinstance(found, tuple) else (found,)


def slice_box(node: Node) -> Box | None:
    """The box of its operand that a slice is. None for other ops, for steps above 1, and for bounds
    that a run computes."""
    if node.op != "slice":
        return None
    starts, stops, steps = (_numbers(arg) for arg in node.args[1:4])
    found = tuple(zip(starts, stops, strict=True))
    sizes = tuple(stop - start for start, stop in found)
    is_box = all(start >= 0 for start in starts) and all(step == 1 for step in steps)
    return found if is_box and sizes == node.out.tensor.sizes else None


def _numbers(arg: Arg) -> tuple[int, ...]:
    """Constant numbers; -1 for others, which no bound of a box is."""
    given = arg if isinstance(arg, tuple) else ()
    return tuple(
        item.value if isinstance(item, Const) and isinstance(item.value, int) else -1
        for item in given
    )


def _has_parts(node: Node) -> bool:
    form = as_call(node).op.form
    if isinstance(form, Pointwise):
        rank = node.out.tensor.rank if node.out.is_tensor else None
        return all(v.tensor.rank == rank for v in node.operands() if v.is_tensor)
    views = ("broadcast", "expand", "permute")
    return node.op in views or is_reduction(node) or slice_box(node) is not None


def _operand_boxes(node: Node, box: Box) -> dict[Value, Box]:
    """The box of each tensor that a node reads, for one of its results."""
    return {v: _operand_box(node, v, box) for v in node.operands() if v.is_tensor}


def _operand_box(node: Node, operand: Value, box: Box) -> Box:
    if is_reduction(node):
        return of_operand(node, box)
    moved = slice_box(node)
    if moved is not None:
        pairs = zip(box, moved, strict=True)
        return tuple((start + first, stop + first) for (start, stop), (first, _) in pairs)
    if node.op == "permute":
        dims = node.attr("dims")
        assert isinstance(dims, tuple)
        places = {dim: place for place, dim in enumerate(dims)}
        return tuple(box[places[dim]] for dim in range(len(box)))
    if node.op == "broadcast":
        flags = node.attr("is_broadcast_dim")
        assert isinstance(flags, tuple)
        return tuple(part for part, new in zip(box, flags, strict=True) if not new)
    return repeated(operand, node.out, box)
