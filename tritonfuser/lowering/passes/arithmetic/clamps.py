"""Fusion in, an equal Fusion with clamps, and their gradients, in fewer ops out.

Tracers write a clamp by masks, so that nan stays nan:
``where(x != x, x, where(x > 0, x, 0))`` -> ``maximum(0, x)``. Its gradient goes where the number
was not cut off:
``where(x != x, g, 0) + where(x > 0, where(x != x, 0, g), 0)`` ->
``where((x != x) | (x > 0), g, 0) + 0``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from ....dtypes import DataType, compute_dtype
from ....ir import Const, Fusion, Node, Value
from ....ops.builder import GraphBuilder
from ..rewriting import is_copy, rewritten

_LIMITS = {"gt": "maximum", "ge": "maximum", "lt": "minimum", "le": "minimum"}
"""By the comparison of a number with its limit, the op that is the number or else the limit."""

_COMPARISONS = (*_LIMITS, "eq", "ne")


class _Clamped(NamedTuple):
    """A number that is limited on one side: ``op(limit, value)``."""

    op: str
    limit: float
    value: Value


def join_clamps(fusion: Fusion) -> Fusion:
    """Clamps as ``maximum`` and ``minimum``, which are nan where the number is.

    Those of 16 bits are computed wide: the result is the number or the limit, exactly.
    """
    clamped = {n.out: c for n in fusion.nodes if (c := _clamped(fusion, n)) is not None}

    def wide(value: Value, builder: GraphBuilder) -> Value:
        """A number in the dtype of arithmetic, without being rounded in between."""
        found = clamped.get(value)
        if found is not None:
            return builder.call(found.op, found.limit, wide(found.value, builder))  # type: ignore[no-any-return]
        dtype = compute_dtype(value.dtype)
        return value if value.dtype is dtype else builder.call("cast", value, dtype)

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        if node.op in _COMPARISONS and not clamped.keys().isdisjoint(node.operands()):
            args = [wide(arg, builder) if isinstance(arg, Value) else arg for arg in node.args]
            return builder.call(node.op, *args)  # type: ignore[no-any-return]
        value = node.args[0] if is_copy(node) else node.out
        if not isinstance(value, Value) or value not in clamped:
            return None
        made = wide(value, builder)
        return made if made.dtype is node.out.dtype else builder.call("cast", made, node.out.dtype)

    return rewritten(fusion, rewrite) if clamped else fusion


def _clamped(fusion: Fusion, node: Node) -> _Clamped | None:
    """What a node limits by masks; None of other nodes."""
    outer = _where(node)
    if outer is None or not isinstance(outer.no, Value) or not isinstance(outer.yes, Value):
        return None
    value, inner = outer.yes, _where(fusion.producers.get(outer.no))
    if inner is None or inner.yes != value or not _is_nan_mask(fusion, outer.mask, value):
        return None
    compared, limit = fusion.producers.get(inner.mask), inner.no
    if compared is None or compared.op not in _LIMITS or not isinstance(limit, Const):
        return None
    if not (compared.args[0] == value and _is_number(compared.args[1], limit)):
        return None
    number, dtype = float(limit.value.real), value.dtype
    if not _is_exact(number, dtype) or dtype is not node.out.dtype:
        return None
    if number == 0 and (compared.op != "gt" or math.copysign(1.0, number) < 0):
        return None  # of two zeros the masks take one, and the op the greater or smaller one
    return _Clamped(_LIMITS[compared.op], number, value)


def _is_exact(number: float, dtype: DataType) -> bool:
    """Whether a limit is a number of a dtype, as which it is compared."""
    kind = dtype.info.torch
    if kind is None or not kind.is_floating_point:
        return False
    return float(torch.tensor(number, dtype=torch.float64).to(kind).item()) == number


def join_clamp_gradients(fusion: Fusion) -> Fusion:
    """One choice in the place of two of the same gradient that never meet, and their sum.

    A sum that is rounded to the dtype of its gradient is what it was.
    """
    sums = {n.out: found for n in fusion.nodes if (found := _gradient(fusion, n)) is not None}

    def rounded(value: Value) -> _Gradient | None:
        """The sum that a gradient is, rounded to its dtype."""
        node = fusion.producers.get(value)
        total = node.args[0] if node is not None and is_copy(node) else None
        found = sums.get(total) if isinstance(total, Value) else None
        return found if found is not None and found.value.dtype is value.dtype else None

    def chosen(found: _Gradient, builder: GraphBuilder) -> Value:
        either, before = builder.call("logical_or", *found.masks), rounded(found.value)
        if before is not None:
            # No sum is -0.0, and so neither is what is chosen of it.
            return builder.call("where", either, chosen(before, builder), 0.0)  # type: ignore[no-any-return]
        wide = builder.call("cast", found.value, DataType.Float)
        made: Value = builder.call("add", builder.call("where", either, wide, 0.0), 0.0)
        return made

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = sums.get(node.out) if node.outs else None
        return None if found is None else chosen(found, builder)

    return rewritten(fusion, rewrite) if sums else fusion


class _Gradient(NamedTuple):
    """A gradient that goes on where one of two masks is true."""

    masks: tuple[Value, Value]
    value: Value


def _gradient(fusion: Fusion, node: Node) -> _Gradient | None:
    """The gradient that is left of two choices that a node adds up; None of other nodes."""
    if node.op != "add" or len(node.args) != 2 or node.out.dtype is not DataType.Float:
        return None
    for first, second in (node.args, node.args[::-1]):
        one, other = _chosen(fusion, first), _chosen(fusion, second)
        found = None if one is None or other is None else _joined(fusion, one, other)
        if found is not None:
            return found
    return None


class _Where(NamedTuple):
    """The operands of ``where``."""

    mask: Value
    yes: Any
    no: Any


def _where(node: Node | None) -> _Where | None:
    if node is None or node.op != "where" or not isinstance(node.args[0], Value):
        return None
    return _Where(*node.args[:3])  # type: ignore[arg-type]


def _chosen(fusion: Fusion, operand: object) -> _Where | None:
    """The choice between a tensor and zero that an operand is, or is a wider copy of."""
    node = fusion.producers.get(operand) if isinstance(operand, Value) else None
    if node is not None and is_copy(node) and isinstance(node.args[0], Value):
        node = fusion.producers.get(node.args[0])
    found = _where(node)
    return found if found is not None and _is_zero(found.no) else None


def _joined(fusion: Fusion, one: _Where, other: _Where) -> _Gradient | None:
    """What both choices have in common, where the second leaves out what the first has."""
    rest = _where(fusion.producers.get(other.yes)) if isinstance(other.yes, Value) else None
    if rest is None or not isinstance(one.yes, Value) or rest.mask != one.mask:
        return None
    if not _is_zero(rest.yes) or rest.no != one.yes:
        return None
    return _Gradient((one.mask, other.mask), one.yes)


def _is_zero(operand: object) -> bool:
    """Whether an operand is the constant zero, not below it."""
    if not isinstance(operand, Const) or isinstance(operand.value, complex):
        return False
    return operand.value == 0 and math.copysign(1.0, float(operand.value)) > 0


def _is_number(operand: object, number: Const) -> bool:
    return isinstance(operand, Const) and operand.value == number.value


def _is_nan_mask(fusion: Fusion, mask: Value, value: Value) -> bool:
    """Whether a mask is where a value is nan."""
    node = fusion.producers.get(mask)
    return node is not None and node.op == "ne" and node.args[:2] == (value, value)
