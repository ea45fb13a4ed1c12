"""Tools of passes that rewrite a fusion: free value numbers, replaced operands and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir import Arg, Fusion, Node, Operand, Output, Value
from ...ops.builder import GraphBuilder


def next_free(fusion: Fusion) -> tuple[int, int]:
    """The first unused number of tensors and of scalars."""
    tensors = scalars = 0
    for values in (fusion.inputs, *[node.outs for node in fusion.nodes]):
        for value in values:
            if value.is_tensor:
                tensors = max(tensors, value.index + 1)
            else:
                scalars = max(scalars, value.index + 1)
    return tensors, scalars


class Substitution:
    """Replaces values by operands, in the arguments of nodes and in outputs."""

    def __init__(self, operands: Mapping[Value, Operand] | None = None) -> None:
        self._operands = dict(operands or {})

    def set(self, value: Value, operand: Operand) -> None:
        """Replace a value by an operand from now on."""
        self._operands[value] = operand

    def __call__(self, operand: Operand) -> Operand:
        return self._operands.get(operand, operand) if isinstance(operand, Value) else operand

    def arg(self, arg: Arg) -> Arg:
        """An argument of a node with its values replaced."""
        if isinstance(arg, tuple):
            return tuple(self(item) for item in arg)
        return None if arg is None else self(arg)

    def node(self, node: Node) -> Node:
        """A node with the values among its arguments replaced."""
        if self._operands.keys().isdisjoint(node.operands()):
            return node
        args = tuple(self.arg(arg) for arg in node.args)
        return node if args == node.args else Node(node.op, args, node.attrs, node.outs, node.loc)

    def output(self, output: Output) -> Output:
        """An output with its value replaced, by a value."""
        value = self(output.value)
        assert isinstance(value, Value)
        return Output(value, output.alias_of, output.hidden)


def rebuilt(fusion: Fusion, nodes: Sequence[Node], substitution: Substitution) -> Fusion:
    """The fusion with other nodes, and outputs substituted."""
    outputs = tuple(substitution.output(output) for output in fusion.outputs)
    return Fusion(fusion.inputs, tuple(nodes), outputs)


def renumber(builder: GraphBuilder, names: Mapping[Value, Value]) -> None:
    """Replace values that the last nodes of a builder define, in definitions and uses."""
    substitution = Substitution(names)
    pending = set(names)
    for place in reversed(range(len(builder.nodes))):
        node = builder.nodes[place]
        pending.difference_update(node.outs)
        outs = tuple(names.get(out, out) for out in node.outs)
        node = substitution.node(node)
        builder.nodes[place] = Node(node.op, node.args, node.attrs, outs, node.loc)
        if not pending:
            return
