"""The row of the matrix product that generated kernels compute: ``mma``, written by a pass."""

from __future__ import annotations

import torch

from ..dtypes import DataType
from ..errors import DefinitionError
from ..ir import Dim, TensorType, Value
from ..shapes.equal_extents import assume_extents_fit
from .forms import Contraction
from .parameters import Kind, Param
from .shape_rules import tensor
from .table import Call, Op


def _infer(call: Call) -> tuple[TensorType, ...]:
    """``[*batch, M, K] x [*batch, K, N] -> [*batch, M, N]``; a bias has N elements."""
    left, right = call.value("arg1").tensor.dims, call.value("arg2").tensor.dims
    pairs = [*zip(left[:-2], right[:-2], strict=True), (left[-1], right[-2])]
    if not all(assume_extents_fit(a.size, b.size) for a, b in pairs):
        raise DefinitionError(f"{call.op.name}: the operands' extents differ: {left} and {right}")
    dtype = call.attrs["dtype"]
    assert isinstance(dtype, DataType)
    return (tensor([Dim(d.size) for d in (*left[:-1], right[-1])], dtype),)


def _mma(
    arg1: torch.Tensor, arg2: torch.Tensor, bias: torch.Tensor | None = None, *, dtype: DataType
) -> torch.Tensor:
    product = torch.matmul(arg1.float(), arg2.float())
    return (product if bias is None else product + bias).to(dtype.info.torch)


def product_sizes(call: Call) -> tuple[int, int, int, int]:
    """(batch, M, N, K) of a concrete product."""
    left, right = call.value("arg1").tensor.sizes, call.value("arg2").tensor.sizes
    batch = 1
    for size in left[:-2]:
        batch *= size
    return batch, left[-2], right[-1], left[-1]


def product_bias(call: Call) -> Value | None:
    """The row that is added to every row of the product."""
    found = call.arg("bias")
    return found if isinstance(found, Value) else None


INTERNAL: tuple[Op, ...] = (
    Op(
        "mma",
        (
            Param("arg1", Kind.TENSOR),
            Param("arg2", Kind.TENSOR),
            Param("bias", Kind.TENSOR, None),
            Param("dtype", Kind.DTYPE, DataType.Float),
        ),
        "Matrix product accumulated in Float, plus a bias, rounded to ``dtype``.",
        "contraction",
        Contraction(),
        _infer,
        _mma,
    ),
)
"""Rows that passes write and users do not: they are no members of ``fd.ops``."""
