"""Fusion in, an equal Fusion with clamps by masks as ``maximum`` and ``minimum`` out.

Tracers write a clamp by masks, so that nan stays nan:
``where(x != x, x, where(x > 0, x, 0))`` -> ``maximum(0, x)``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from ....dtypes import DataType, compute_dtype
from ....ir import Const, Fusion, Node, Value
from ....ops.builder import GraphBuilder
from ..rewriting import is_copy, rewritten
from .masks import where_of

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

    Those of 16 bits are computed wide, and what compares or widens them reads that: the result is
    the number or the limit, exactly.
    """
    clamped = {n.out: c for n in fusion.nodes if n.outs and (c := _clamped(fusion, n)) is not None}
    wide: dict[Value, Value] = {}

    def widened(value: Value, builder: GraphBuilder) -> Value:
        """A number in the dtype of arithmetic, without having been rounded."""
        dtype = compute_dtype(value.dtype)
        known = wide.get(value, value)
        return known if known.dtype is dtype else builder.call("cast", known, dtype)

    def limited(value: Value, builder: GraphBuilder) -> Value:
        op, limit, under = clamped[value]
        made: Value = builder.call(op, limit, widened(under, builder))
        # Of 0.0 and -0.0 the op may take any, as torch's does.
        return made if limit else builder.call("add", made, 0.0)

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        if node.op in _COMPARISONS and not clamped.keys().isdisjoint(node.operands()):
            args = [widened(arg, builder) if isinstance(arg, Value) else arg for arg in node.args]
            made: Value = builder.call(node.op, *args)
            return made
        copied = node.args[0] if is_copy(node) else None
        if isinstance(copied, Value) and copied in clamped:
            made = limited(copied, builder)  # equal nodes become one
        elif node.outs and node.out in clamped:
            made = limited(node.out, builder)
            # The last node that is recorded here has the name of the one that it replaces.
            wide[node.out] = node.out if made.dtype is node.out.dtype else made
        else:
            return None
        return made if made.dtype is node.out.dtype else builder.call("cast", made, node.out.dtype)

    return rewritten(fusion, rewrite) if clamped else fusion


def _clamped(fusion: Fusion, node: Node) -> _Clamped | None:
    """What a node limits by masks; None of other nodes."""
    outer = where_of(node)
    if outer is None or not isinstance(outer.no, Value) or not isinstance(outer.yes, Value):
        return None
    value, inner = outer.yes, where_of(fusion.producers.get(outer.no))
    if inner is None or inner.yes != value or not _is_nan_mask(fusion, outer.mask, value):
        return None
    compared, limit = fusion.producers.get(inner.mask), inner.no
    if compared is None or compared.op not in _LIMITS or not isinstance(limit, Const):
        return None
    first, second = compared.args[:2]
    if first != value or not isinstance(second, Const) or second.value != limit.value:
        return None
    number, dtype = float(limit.value.real), value.dtype
    if not _is_of(dtype, number) or dtype is not node.out.dtype:
        return None
    if number == 0 and (compared.op != "gt" or math.copysign(1.0, number) < 0):
        return None  # the masks may take -0.0 then
    return _Clamped(_LIMITS[compared.op], number, value)


def _is_of(dtype: DataType, number: float) -> bool:
    """Whether a float dtype has a number: as what it rounds to it would be another limit."""
    kind = dtype.info.torch
    if kind is None or not kind.is_floating_point:
        return False
    return float(torch.tensor(number, dtype=torch.float64).to(kind).item()) == number


def _is_nan_mask(fusion: Fusion, mask: Value, value: Value) -> bool:
    """Whether a mask is where a value is nan."""
    node = fusion.producers.get(mask)
    return node is not None and node.op == "ne" and node.args[:2] == (value, value)
