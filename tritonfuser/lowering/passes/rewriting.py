"""What passes share that write some nodes anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...dtypes import DataType
from ...ir import Const, Fusion, Node, Value
from ...ops.builder import GraphBuilder
from .simplify import drop_dead, merge_equal, next_free

Rewrite = Callable[[Node, GraphBuilder], Value | None]


def rewritten(fusion: Fusion, rewrite: Rewrite) -> Fusion:
    """Each node as ``rewrite`` records it anew, under its own number, where it does.

    What ``rewrite`` returns is the last node that it recorded; of another type than the old one
    it does not count.
    """
    builder = GraphBuilder(*next_free(fusion))
    changed = False
    for node in fusion.nodes:
        builder.loc = node.loc
        mark = builder.mark()
        made = rewrite(node, builder)
        if made is not None and made.type == node.out.type:
            builder.nodes[-1] = replace(builder.nodes[-1], outs=node.outs)
            changed = True
        else:
            builder.rollback(mark)
            builder.nodes.append(node)
    if not changed:
        return fusion
    return drop_dead(merge_equal(replace(fusion, nodes=tuple(builder.nodes))))


def with_number(node: Node, ops: tuple[str, ...]) -> tuple[Value, float, bool] | None:
    """The tensor and the number that one of ``ops`` joins, and whether the number is first."""
    if node.op not in ops:
        return None
    for place in (0, 1):
        value, number = node.args[place], _real(node.args[1 - place])
        if isinstance(value, Value) and value.is_tensor and number is not None:
            return value, number, place == 1
    return None


def _real(arg: object) -> float | None:
    """A real number; no size that varies."""
    if not isinstance(arg, Const) or type(arg.value) not in (int, float):
        return None
    return float(arg.value)  # type: ignore[arg-type]


def is_float(node: Node) -> bool:
    """Whether the result is a Float tensor."""
    return node.out.is_tensor and node.out.dtype is DataType.Float
