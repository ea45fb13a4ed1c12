"""Fusion in, the same Fusion with sums that differ by factors of their results as one sum.

The backward of a batch norm adds up ``g``, ``w * g``, ``(x - mean) * w * g`` and
``(x - mean) * rstd * g`` over a channel, where ``w`` and ``rstd`` have one number a channel: two
sums, and products of their results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeGuard

from ....dtypes import DataType
from ....ir import Arg, Const, Extent, Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.table import Pointwise
from ....symbolic.sizes import is_size
from ..rewriting import rewritten

_FLOATS = (DataType.Float, DataType.Double)


@dataclass(frozen=True)
class _Product:
    """What a sum adds up: ``terms`` vary along the reduced dims, ``factors`` do not."""

    terms: tuple[Value, ...]
    factors: tuple[Value | Const, ...]
    negative: bool
    dims: tuple[int, ...]

    @property
    def sum_of_terms(self) -> tuple[object, ...]:
        """What the sum without the factors is told apart by."""
        return self.terms, self.dims


def join_common_sums(fusion: Fusion) -> Fusion:
    """``sum(w * x); sum(x)`` -> ``w * sum(x); sum(x)``, where ``w`` is the same in all terms.

    Sums of which no other one has the same terms stay: factors before them round and overflow as
    the user wrote it. By an infinite ``w`` sums are infinite or nan, whatever some terms are.
    """
    products = {node.out: _product(fusion, node) for node in fusion.nodes if _may_join(node)}
    counts = Counter(found.sum_of_terms for found in products.values() if found is not None)

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = products.get(node.outs[0]) if node.outs else None
        if found is None or counts[found.sum_of_terms] < 2:
            return None
        terms = reduce(lambda a, b: builder.call("mul", a, b), found.terms)
        made: Value = builder.call("sum", terms, dims=list(found.dims), dtype=node.out.dtype)
        for factor in found.factors:
            made = builder.call("mul", made, _at_result(fusion, factor, found.dims, builder))
        return builder.call("neg", made) if found.negative else made

    return rewritten(fusion, rewrite) if any(n > 1 for n in counts.values()) else fusion


def _may_join(node: Node) -> bool:
    """Whether this is a sum of floats over dims with elements."""
    if node.op != "sum" or node.out.dtype not in _FLOATS:
        return False
    call = as_call(node)
    operand = call.value("arg")
    extents = (operand.tensor.sizes[dim] for dim in call.dims())
    return operand.dtype is node.out.dtype and all(is_size(n) or n > 1 for n in extents)


def _product(fusion: Fusion, node: Node) -> _Product | None:
    """The operand of a sum as a product. None where its terms do not have the operand's shape."""
    call = as_call(node)
    operand, dims = call.value("arg"), call.dims()
    parts = list(_parts(fusion, operand))
    factors = [part for part in parts if _is_same(fusion, part, dims)]
    terms = [p for p in parts if isinstance(p, Value) and not _is_same(fusion, p, dims)]
    if not terms or _broadcast_shape(terms) != operand.tensor.shape:
        return None
    kept = [part for part in factors if not (isinstance(part, Const) and part.value == -1.0)]
    negative = (len(factors) - len(kept)) % 2 == 1
    return _Product(tuple(sorted(terms, key=_index)), tuple(kept), negative, dims)


def _index(value: Value) -> int:
    return value.index


def _parts(fusion: Fusion, part: Value | Const) -> Iterator[Value | Const]:
    """What a value is the product of, minus signs as -1."""
    node = fusion.producers.get(part) if isinstance(part, Value) and part.is_tensor else None
    if node is None or node.op not in ("mul", "neg") or _widens(node) or not _is_aligned(node):
        yield part
        return
    if node.op == "neg":
        yield Const.of(-1.0)
    for arg in node.args:
        assert isinstance(arg, Value | Const)
        yield from _parts(fusion, arg)


def _widens(node: Node) -> bool:
    """Whether a node casts an operand."""
    return any(v.is_tensor and v.dtype is not node.out.dtype for v in node.operands())


def _is_aligned(node: Node) -> bool:
    """Whether the operands have as many dims as the result, or none."""
    ranks = {len(v.tensor.shape) for v in node.operands() if v.is_tensor}
    return ranks <= {0, len(node.out.tensor.shape)}


def _broadcast_shape(values: list[Value]) -> tuple[Extent, ...]:
    shapes = zip(*(value.tensor.shape for value in values), strict=True)
    return tuple(next((n for n in extents if is_size(n) or n != 1), 1) for extents in shapes)


# --- factors -------------------------------------------------------------------------------------


def _is_same(fusion: Fusion, part: Arg, dims: tuple[int, ...]) -> bool:
    """Whether a part has one number along these dims, which ``_at_result`` finds."""
    if not _has_dims(part) or _has_size_1(part, dims):
        return True
    node = fusion.producers.get(part)
    passes_on = node is not None and (node.op == "expand" or _is_pointwise(node))
    return (
        node is not None
        and passes_on
        and _is_aligned(node)
        and all(_is_same(fusion, arg, dims) for arg in _operands(node))
    )


def _at_result(fusion: Fusion, part: Arg, dims: tuple[int, ...], builder: GraphBuilder) -> Any:
    """A part that is the same along these dims, without them."""
    if not _has_dims(part):
        return part
    if _has_size_1(part, dims):
        return builder.call("squeeze", part, list(dims))
    node = fusion.producers[part]
    args = [_at_result(fusion, arg, dims, builder) for arg in _operands(node)]
    return args[0] if node.op == "expand" else builder.call(node.op, *args, **dict(node.attrs))


def _operands(node: Node) -> tuple[Arg, ...]:
    """The operands that decide along which dims a result varies."""
    return node.args[:1] if node.op == "expand" else node.args


def _has_dims(part: Arg) -> TypeGuard[Value]:
    """Whether a part is a tensor of the operand's rank. Scalars and 0-dim tensors spread to it."""
    return isinstance(part, Value) and part.is_tensor and bool(part.tensor.shape)


def _is_pointwise(node: Node) -> bool:
    return isinstance(as_call(node).op.form, Pointwise)


def _has_size_1(value: Value, dims: tuple[int, ...]) -> bool:
    extents = [value.tensor.shape[dim] for dim in dims]
    return not any(is_size(extent) or extent != 1 for extent in extents)
