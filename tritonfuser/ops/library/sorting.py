"""Rows of what torch sorts: topk, argsort."""

from __future__ import annotations

import torch

from ...dtypes import EIGHT_BIT_FLOATS, PACKED, Category, DataType
from ...ir import Dim, TensorType
from ...symbolic.queries import assume_less
from ...symbolic.sizes import is_integer
from ..parameters import Kind, Param
from ..shape_rules import ARG, extent, fail, int_attr, record_along_dim
from ..table import Call, Library, Op
from . import linked_dims

_UNSORTED = frozenset({DataType.Bool, DataType.UInt64}) | EIGHT_BIT_FLOATS | PACKED
"""What torch does not sort."""


def _infer_topk(call: Call) -> tuple[TensorType, ...]:
    arg, place = call.value("arg").tensor, int_attr(call, "dim")
    if arg.dtype in _UNSORTED:
        raise fail("topk", "numbers that torch sorts", arg.dtype, "Cast the operand first.")
    k = call.operand("k")
    if k.dtype.info.category is not Category.INT:
        raise fail(call.op.name, "an integer k", k.dtype)
    count = extent(call.op.name, k)
    size = arg.dims[place].size if arg.rank else 1
    if is_integer(count) and (
        assume_less(count, 0) or (is_integer(size) and assume_less(size, count))
    ):
        raise fail(call.op.name, f"a k from 0 to {size}, the size of dim {place}", count)
    dims = tuple(Dim(count if d == place else dim.size) for d, dim in enumerate(arg.dims))
    return TensorType(dims, arg.dtype), TensorType(dims, DataType.Int)


def _topk(
    arg: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    values, places = torch.topk(arg, k, dim, largest, sorted)
    return values, places


def _infer_argsort(call: Call) -> tuple[TensorType, ...]:
    dims = tuple(Dim(dim.size) for dim in call.value("arg").tensor.dims)
    return (TensorType(dims, DataType.Int),)


def _argsort(
    arg: torch.Tensor, dim: int, descending: bool = False, stable: bool = False
) -> torch.Tensor:
    return torch.argsort(arg, dim=dim, descending=descending, stable=stable)


ROWS: tuple[Op, ...] = (
    Op(
        "topk",
        (
            ARG,
            Param("k", Kind.EXTENT),
            Param("dim", Kind.INT, -1),
            Param("largest", Kind.BOOL, True),
            Param("sorted", Kind.BOOL, False),
        ),
        "The k largest elements along a dim, or smallest if not largest, and their indices.",
        "library",
        Library(moves=("arg",)),
        _infer_topk,
        _topk,
        record_along_dim,
        results=("values", "indices"),
        axes=linked_dims.along,
    ),
    Op(
        "argsort",
        (
            ARG,
            Param("dim", Kind.INT),
            Param("descending", Kind.BOOL, False),
            Param("stable", Kind.BOOL, False),
        ),
        "The indices that sort a tensor along a dim.",
        "library",
        Library(moves=("arg",)),
        _infer_argsort,
        _argsort,
        record_along_dim,
        axes=linked_dims.along,
    ),
)
