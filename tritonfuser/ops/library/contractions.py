"""Rows of the matrix products: matmul, linear; by torch, or as ``mma`` in a generated kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
import torch.nn.functional as F

from ...dtypes import EIGHT_BIT_FLOATS
from ...errors import DefinitionError
from ...ir import Dim, TensorType, Value
from ...shapes.broadcasting import broadcast_dims
from ...symbolic.queries import assume_same_shape
from ...symbolic.sizes import integer
from ..complex import products
from ..parameters import Kind, Param
from ..shape_rules import check_inner, tensor
from ..table import Call, Library, Op
from . import linked_dims


def _same_dtype(call: Call, values: Sequence[Value]) -> None:
    dtypes = {value.dtype for value in values}
    if len(dtypes) > 1:
        found = ", ".join(str(value.dtype) for value in values)
        raise DefinitionError(
            f"{call.op.name}: expected operands of one dtype, got {found}",
            hint="Cast one operand to the dtype of the other.",
        )
    if not dtypes.isdisjoint(EIGHT_BIT_FLOATS):
        raise DefinitionError(
            f"{call.op.name}: expected operands of 16 bits and more, got {values[0].dtype}",
            hint="Use fd.ops.scaled_mm, or cast the operands.",
        )


def _infer_matmul(call: Call) -> tuple[TensorType, ...]:
    """torch.matmul's ranks: a 1-D operand is a row on the left, a column on the right."""
    left, right = call.value("arg1"), call.value("arg2")
    _same_dtype(call, (left, right))
    a, b = left.tensor.dims, right.tensor.dims
    if not a or not b:
        raise DefinitionError(f"{call.op.name}: expected operands of rank 1 or more, got a scalar")
    check_inner(call, a[-1], b[-2] if len(b) > 1 else b[-1])
    batch = _batch(call, a[:-2], b[:-2])
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    return (tensor([Dim(d.size) for d in (*batch, *rows, *columns)], left.dtype),)


def _batch(call: Call, a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    found = broadcast_dims([a, b])
    if found and isinstance(found[0], int):
        raise DefinitionError(
            f"{call.op.name}: the batch dims do not broadcast: "
            f"{[d.size for d in a]} and {[d.size for d in b]}"
        )
    return tuple(dim for dim in found if isinstance(dim, Dim))


def _infer_linear(call: Call) -> tuple[TensorType, ...]:
    """``arg1 @ arg2.T + bias``; arg2 is (out, in), or (in,) as torch takes it."""
    left, weight, bias = call.value("arg1"), call.value("arg2"), call.arg("bias")
    given = [left, weight] + ([bias] if isinstance(bias, Value) else [])
    _same_dtype(call, given)
    a, w = left.tensor.dims, weight.tensor.dims
    if not a or len(w) < 2:
        raise DefinitionError(
            f"{call.op.name}: expected an input of rank 1 or more and a weight of rank 2 or more, "
            f"got ranks {len(a)} and {len(w)}"
        )
    if isinstance(bias, Value) and not bias.tensor.dims:
        raise DefinitionError(f"{call.op.name}: expected a bias of rank 1 or more, got rank 0")
    check_inner(call, a[-1], w[-1])
    batch = w[:-2]
    dims = (*batch, *a[:-1], w[-2])
    return (tensor([Dim(d.size) for d in dims], left.dtype),)


def _linear(
    arg1: torch.Tensor, arg2: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    if arg2.dim() == 2:
        return F.linear(arg1, arg2, bias)
    # Each weight of the stack with all rows: a product's batch dims would be aligned with them.
    *rows, _ = arg1.shape
    product = torch.matmul(arg1.flatten(0, -2) if rows else arg1[None], arg2.mT)
    if bias is not None:
        product = product + bias.unsqueeze(-2)
    return product.reshape(*arg2.shape[:-2], *rows, arg2.shape[-2])


def _matmul_product(ops: Any, arg1: Value, arg2: Value) -> Value | None:
    """``mma`` over the common batch dims; rows of a batch that the right has not are one."""
    if min(arg1.tensor.rank, arg2.tensor.rank) < 2:
        return None
    if arg2.tensor.rank == 2:
        return _flattened(ops, arg1, arg2, None)
    found = broadcast_dims([arg1.tensor.dims[:-2], arg2.tensor.dims[:-2]])
    batch = tuple(integer(dim.size) for dim in found if isinstance(dim, Dim))
    left, right = _over(ops, arg1, batch), _over(ops, arg2, batch)
    product = ops.mma(left, right, None, arg1.dtype)
    assert isinstance(product, Value)
    return product


def _linear_product(ops: Any, arg1: Value, arg2: Value, bias: Value | None) -> Value | None:
    if arg2.tensor.rank != 2 or arg1.tensor.rank < 2:
        return None
    if bias is not None and not assume_same_shape(bias.tensor.sizes, arg2.tensor.sizes[:1]):
        return None
    return _flattened(ops, arg1, ops.permute(arg2, [1, 0]), bias)


def _flattened(ops: Any, left: Value, right: Value, bias: Value | None) -> Value:
    """``[*rows, K] x [K, N]`` as a product of two matrices."""
    *rows, inner = left.tensor.sizes
    flat = left if len(rows) == 1 else ops.reshape(left, [prod(rows), inner])
    product = ops.mma(flat, right, bias, left.dtype)
    if len(rows) > 1:
        product = ops.reshape(product, [*rows, right.tensor.sizes[1]])
    assert isinstance(product, Value)
    return product


def _over(ops: Any, value: Value, batch: tuple[int, ...]) -> Value:
    """An operand over all batch dims."""
    sizes = (*batch, *value.tensor.sizes[-2:])
    whole = assume_same_shape(value.tensor.sizes, sizes)
    found = value if whole else ops.expand(value, list(sizes))
    assert isinstance(found, Value)
    return found


ROWS: tuple[Op, ...] = (
    Op(
        "matmul",
        (Param("arg1", Kind.TENSOR), Param("arg2", Kind.TENSOR)),
        "Matrix product, with the ranks and the broadcasting of batch dims of torch.matmul.",
        "contraction",
        Library(product=_matmul_product),
        _infer_matmul,
        torch.matmul,
        axes=linked_dims.matmul,
        complex=products.matmul,
        operator="matmul",
    ),
    Op(
        "linear",
        (
            Param("arg1", Kind.TENSOR, doc="The input, [..., K]."),
            Param("arg2", Kind.TENSOR, doc="The weight, [N, K] or [K]."),
            Param("bias", Kind.TENSOR, None),
        ),
        "``arg1 @ transpose(arg2) + bias``.",
        "contraction",
        Library(product=_linear_product),
        _infer_linear,
        _linear,
        axes=linked_dims.linear,
        complex=products.linear,
    ),
)
