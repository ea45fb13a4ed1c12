"""Fusion in, the same Fusion with sums that differ by factors of their results as one sum.

The backward of a batch norm adds up ``g``, ``w * g``, ``(x - mean) * w * g`` and
``(x - mean) * rstd * g`` over a channel, where ``w`` and ``rstd`` have one number a channel: two
sums, and products of their results.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TypeGuard

from ....dtypes import DataType
from ....ir import Arg, Const, Extent, Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.forms import Pointwise
from ....symbolic.sizes import is_size
from ..rewriting import rewritten

_FLOATS = (DataType.Float, DataType.Double)
_MOST_PARTS = 8
"""Parts of a product at most. A product of a value with itself has twice as many as the value."""


@dataclass(frozen=True)
class _Product:
    """What a sum adds up: ``terms`` vary along the reduced dims, ``factors`` do not.

    One or two terms. The product of more would depend on which are multiplied first.
    """

    terms: tuple[Value, ...]
    factors: tuple[Value, ...]
    is_negative: bool
    dims: tuple[int, ...]

    @property
    def sum_of_terms(self) -> tuple[object, ...]:
        """The key of the sum without its factors: equal keys are one sum."""
        return self.terms, self.dims


def join_common_sums(fusion: Fusion) -> Fusion:
    """``sum(w * x); sum(x)`` -> ``w * sum(x); sum(x)``, where ``w`` is the same in all terms.

    Sums of which no other one has the same terms stay, and numbers stay where they are: a factor
    before a sum may be there so that it does not overflow. A tensor is taken for a factor without
    that in mind. By an infinite one sums are nan: so they are wherever terms are zero, or of both
    signs.
    """
    products = _products(fusion)
    counts = Counter(found.sum_of_terms for found in products.values())

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = products.get(node.outs[0]) if node.outs else None
        if found is None or counts[found.sum_of_terms] < 2:
            return None
        terms = reduce(lambda a, b: builder.call("mul", a, b), found.terms)
        made: Value = builder.call("sum", terms, dims=list(found.dims), dtype=node.out.dtype)
        for factor in found.factors:
            own = _at_result(fusion, factor, found.dims, builder)
            scaled = builder.call("mul", made, own)
            made = builder.call("where", builder.call("isfinite", own), scaled, math.nan)
        return builder.call("neg", made) if found.is_negative else made

    return rewritten(fusion, rewrite) if any(n > 1 for n in counts.values()) else fusion


def _products(fusion: Fusion) -> dict[Value, _Product]:
    """By the results of sums, what these add up."""
    alike: dict[tuple[tuple[int, ...], int], list[Node]] = defaultdict(list)
    for node in fusion.nodes:
        if _may_join(node):
            call = as_call(node)
            alike[call.dims(), call.value("arg").tensor.rank].append(node)
    found: dict[Value, _Product] = {}
    for (dims, rank), nodes in alike.items():
        if len(nodes) > 1:
            same = _same_along(fusion, dims, rank)
            made = ((node.out, _product(fusion, node, same)) for node in nodes)
            found.update((out, product) for out, product in made if product is not None)
    return found


def _may_join(node: Node) -> bool:
    """Whether this is a sum of floats over dims with elements."""
    if node.op != "sum" or node.out.dtype not in _FLOATS:
        return False
    call = as_call(node)
    operand = call.value("arg")
    extents = (operand.tensor.sizes[dim] for dim in call.dims())
    return operand.dtype is node.out.dtype and all(is_size(n) or n > 1 for n in extents)


def _product(fusion: Fusion, node: Node, same: Collection[Value]) -> _Product | None:
    """The operand of a sum as a product. None where its terms do not have the operand's shape."""
    call = as_call(node)
    operand = call.value("arg")
    parts, is_negative = _parts(fusion, operand, same)
    factors = tuple(part for part in parts if part in same)
    terms = [part for part in parts if part not in same]
    if not 1 <= len(terms) <= 2 or _broadcast_shape(terms) != operand.tensor.shape:
        return None
    return _Product(tuple(sorted(terms, key=_index)), factors, is_negative, call.dims())


def _index(value: Value) -> int:
    return value.index


def _parts(fusion: Fusion, value: Value, same: Collection[Value]) -> tuple[tuple[Value, ...], bool]:
    """What a value is the product of, and whether with a minus sign.

    What is the same along the reduced dims is one part, as the user multiplied it.
    """
    parts, is_negative, place = [value], False, 0
    while place < len(parts):
        node = fusion.producers.get(parts[place])
        if parts[place] in same or node is None or not _is_product(node):
            place += 1
            continue
        is_negative ^= node.op == "neg"
        parts[place : place + 1] = node.operands()
        if len(parts) > _MOST_PARTS:
            return (value,), False
    return tuple(parts), is_negative


def _is_product(node: Node) -> bool:
    """Whether a node multiplies tensors of its dtype and rank, or negates one."""
    return node.op in ("mul", "neg") and all(
        _has_dims(arg) and arg.dtype is node.out.dtype and arg.tensor.rank == node.out.tensor.rank
        for arg in node.args
    )


def _broadcast_shape(values: list[Value]) -> tuple[Extent, ...]:
    shapes = zip(*(value.tensor.shape for value in values), strict=True)
    return tuple(next((n for n in extents if is_size(n) or n != 1), 1) for extents in shapes)


# --- factors -------------------------------------------------------------------------------------


def _same_along(fusion: Fusion, dims: tuple[int, ...], rank: int) -> set[Value]:
    """The tensors of a rank with one number along these dims, which ``_at_result`` finds."""
    found: set[Value] = set()
    for value in fusion.inputs:
        if value.is_tensor and value.tensor.rank == rank and _has_size_1(value, dims):
            found.add(value)
    for node in fusion.nodes:
        for out in node.outs:
            if not out.is_tensor or out.tensor.rank != rank:
                continue
            if _has_size_1(out, dims) or _passes_on(node, found):
                found.add(out)
    return found


def _passes_on(node: Node, same: Collection[Value]) -> bool:
    """Whether a node gives one number along dims, if these tensors have one there."""
    if node.op != "expand" and not isinstance(as_call(node).op.form, Pointwise):
        return False
    return all(arg in same for arg in _operands(node) if _has_dims(arg))


def _at_result(fusion: Fusion, factor: Value, dims: tuple[int, ...], builder: GraphBuilder) -> Arg:
    """A factor in the shape of the result: without the reduced dims, along which it is constant."""
    found: dict[Arg, Arg] = {}
    pending = [factor]
    while pending:
        value = pending[-1]
        if value not in found and _has_size_1(value, dims):
            found[value] = builder.call("squeeze", value, list(dims))
        node = None if value in found else fusion.producers[value]
        waiting = [] if node is None else [v for v in _tensors(node) if v not in found]
        if node is not None and not waiting:
            args = [found.get(arg, arg) for arg in _operands(node)]
            is_spread, attrs = node.op == "expand", dict(node.attrs)
            found[value] = args[0] if is_spread else builder.call(node.op, *args, **attrs)
        pending = pending + waiting if waiting else pending[:-1]
    return found[factor]


def _operands(node: Node) -> tuple[Arg, ...]:
    """The operands that decide along which dims a result varies."""
    return node.args[:1] if node.op == "expand" else node.args


def _tensors(node: Node) -> Iterable[Value]:
    return (arg for arg in _operands(node) if _has_dims(arg))


def _has_dims(part: Arg | Const) -> TypeGuard[Value]:
    """Whether an operand is a tensor with dims. What has none is the same everywhere."""
    return isinstance(part, Value) and part.is_tensor and bool(part.tensor.shape)


def _has_size_1(value: Value, dims: tuple[int, ...]) -> bool:
    extents = [value.tensor.shape[dim] for dim in dims]
    return not any(is_size(extent) or extent != 1 for extent in extents)
