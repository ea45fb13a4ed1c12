"""Fusion in, an equal Fusion with one choice for the gradient of a clamp by masks out.

The gradient goes on where the number was not cut off, and where it is nan:
``where(x != x, g, 0) + where(x > 0, where(x != x, 0, g), 0)`` ->
``where((x != x) | (x > 0), g, 0) + 0``.
"""

from __future__ import annotations

from typing import NamedTuple

from ....dtypes import DataType
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder
from ..rewriting import is_copy, is_positive_zero, rewritten
from .masks import Where, where_of


class _Gradient(NamedTuple):
    """A gradient that goes on where one of two masks is true."""

    masks: tuple[Value, Value]
    value: Value


def join_clamp_gradients(fusion: Fusion) -> Fusion:
    """One choice in the place of two of the same gradient that never meet, and their sum.

    A sum that was rounded to the dtype of its gradient is what it was.
    """
    sums = {n.out: found for n in fusion.nodes if (found := _gradient(fusion, n)) is not None}

    def rounded(value: Value) -> Value | None:
        """The sum that a gradient is, rounded to its dtype."""
        node = fusion.producers.get(value)
        total = node.args[0] if node is not None and is_copy(node) else None
        if not isinstance(total, Value) or total not in sums:
            return None
        return total if sums[total].value.dtype is value.dtype else None

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        if not node.outs or node.out not in sums:
            return None
        (one, other), value = sums[node.out]
        either, total = builder.call("logical_or", one, other), rounded(value)
        # No sum is -0.0, and so neither is what is chosen of it.
        wide = builder.call("cast", value, DataType.Float) if total is None else total
        made: Value = builder.call("where", either, wide, 0.0)
        return builder.call("add", made, 0.0) if total is None else made

    return rewritten(fusion, rewrite) if sums else fusion


def _gradient(fusion: Fusion, node: Node) -> _Gradient | None:
    """The gradient that is left of two choices that a node adds up; None of other nodes."""
    if node.op != "add" or len(node.args) != 2 or node.out.dtype is not DataType.Float:
        return None
    for first, second in (node.args, node.args[::-1]):
        one, other = _kept(fusion, first), _kept(fusion, second)
        found = None if one is None or other is None else _joined(fusion, one, other)
        if found is not None:
            return found
    return None


def _kept(fusion: Fusion, operand: object) -> Where | None:
    """The choice between a tensor and zero that an operand is, or is a wider copy of."""
    node = fusion.producers.get(operand) if isinstance(operand, Value) else None
    if node is not None and is_copy(node) and isinstance(node.args[0], Value):
        node = fusion.producers.get(node.args[0])
    found = where_of(node)
    return found if found is not None and is_positive_zero(found.no) else None


def _joined(fusion: Fusion, one: Where, other: Where) -> _Gradient | None:
    """What both choices have in common, where the second leaves out what the first has."""
    rest = where_of(fusion.producers.get(other.yes)) if isinstance(other.yes, Value) else None
    if rest is None or not isinstance(one.yes, Value) or rest.mask != one.mask:
        return None
    if not is_positive_zero(rest.yes) or rest.no != one.yes:
        return None
    return _Gradient((one.mask, other.mask), one.yes)
