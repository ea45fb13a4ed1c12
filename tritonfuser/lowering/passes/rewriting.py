"""Node by node rewriting, and the patterns that such passes look for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ...dtypes import DataType
from ...ir import Const, Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.forms import Pointwise
from ...ops.table import View
from ...shapes.equal_extents import assume_types_equal
from .redundant_nodes import eliminate_common_subexpressions, eliminate_dead_code
from .substitution import next_free

Rewrite = Callable[[Node, GraphBuilder], Value | None]

SWAPPED_COMPARISONS = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
"""For each comparison the one that holds for swapped operands."""


def rewritten(fusion: Fusion, rewrite: Rewrite) -> Fusion:
    """The fusion with nodes replaced by what ``rewrite`` records in their place.

    Parameters
    ----------
    rewrite : callable
        ``(node, builder) -> Value | None``. It records nodes and returns the result of the last
        of them, which replaces the node's result. None, or a result of another type, leaves the
        node as it is.
    """
    builder = GraphBuilder(*next_free(fusion))
    changed = False
    for node in fusion.nodes:
        builder.loc = node.loc
        mark = builder.mark()
        made = rewrite(node, builder)
        if made is not None and assume_types_equal(made.type, node.out.type):
            builder.nodes[-1] = replace(builder.nodes[-1], outs=node.outs)
            changed = True
        else:
            builder.rollback(mark)
            builder.nodes.append(node)
    if not changed:
        return fusion
    return eliminate_dead_code(
        eliminate_common_subexpressions(replace(fusion, nodes=tuple(builder.nodes)))
    )


def viewed_results(fusion: Fusion) -> frozenset[Value]:
    """The results, and what they are views of, back to what is computed."""
    found = set(fusion.returned)
    for node in reversed(fusion.nodes):
        if isinstance(as_call(node).op.form, View) and node.out in found:
            found.update(node.operands())
    return frozenset(found)


def is_float(node: Node) -> bool:
    """Whether the result is a Float tensor."""
    return node.out.is_tensor and node.out.dtype is DataType.Float


def is_copy(node: Node) -> bool:
    """Whether a node passes its operand on, as it is or in another dtype."""
    form = as_call(node).op.form
    return isinstance(form, Pointwise) and form.copies


def adds_one(node: Node) -> bool:
    """Whether a node adds the number 1 to a tensor."""
    found = with_number(node, ("add",))
    return found is not None and found[1] == 1.0


def with_number(node: Node, ops: tuple[str, ...]) -> tuple[Value, float, bool] | None:
    """The tensor and the number that one of ``ops`` combines.

    Returns
    -------
    (tensor, number, whether the number is the first operand), or None
        None for other ops, for two tensors, and for numbers that are not constant.
    """
    if node.op not in ops:
        return None
    for place in (0, 1):
        value, number = node.args[place], _real(node.args[1 - place])
        if isinstance(value, Value) and value.is_tensor and number is not None:
            return value, number, place == 1
    return None


def _real(arg: object) -> float | None:
    """A constant real number; None for sizes that vary."""
    if not isinstance(arg, Const) or type(arg.value) not in (int, float):
        return None
    return float(arg.value)  # type: ignore[arg-type]


def new_dims(broadcast: Node) -> tuple[int, ...]:
    """The dims that a ``broadcast`` adds, in the result's order."""
    flags = broadcast.attr("is_broadcast_dim")
    assert isinstance(flags, tuple)
    return tuple(place for place, new in enumerate(flags) if new)


def is_positive_zero(operand: object) -> bool:
    """Whether an operand is the constant 0.0, and not -0.0."""
    if not isinstance(operand, Const) or isinstance(operand.value, complex):
        return False
    return operand.value == 0 and math.copysign(1.0, float(operand.value)) > 0
