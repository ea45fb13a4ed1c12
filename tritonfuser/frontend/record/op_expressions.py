"""``OpExpr``: the handle of an op of a definition, of the class that nvFuser has for it."""

from __future__ import annotations

from ...ir import Node
from ...ops import registry
from .statements import Container, Expr, Text
from .val import Val


class OpExpr(Expr):
    """An op of a definition, as recorded."""

    __slots__ = ("_node",)

    def __init__(self, container: Container, node: Node) -> None:
        super().__init__(container)
        self._node = node

    @property
    def op(self) -> Text:
        """The op's name under ``fd.ops``."""
        return self._node.op

    @property
    def node(self) -> Node:
        """The node in the IR."""
        return self._node

    def inputs(self) -> list[Val]:
        """The values it takes, constants left out."""
        return [self._container.handle_of(value) for value in self._node.operands()]

    def outputs(self) -> list[Val]:
        """The values it makes."""
        return [self._container.handle_of(value) for value in self._node.outs]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OpExpr)
            and self._node == other._node
            and self._container is other._container
        )

    def __hash__(self) -> int:
        return hash((self._node.op, self._node.outs))

    def __repr__(self) -> Text:
        operands = ", ".join(repr(arg) for arg in self._node.args)
        return f"{', '.join(out.name for out in self._node.outs)} = {self._node.op}({operands})"


class BroadcastOp(OpExpr):
    """New dims of size 1."""

    __slots__ = ()


class SqueezeOp(OpExpr):
    """Dims of size 1 taken away."""

    __slots__ = ()


class ReshapeOp(OpExpr):
    """The elements in another shape."""

    __slots__ = ()


_EXPRESSIONS = {cls.__name__: cls for cls in (BroadcastOp, SqueezeOp, ReshapeOp)}


def expression(container: Container, node: Node) -> OpExpr:
    """A node as a handle, of the class that nvFuser has for the op."""
    return _EXPRESSIONS.get(registry.get(node.op).expression, OpExpr)(container, node)
