"""The row of what torch adds up at indices: index_put_accumulate."""

from __future__ import annotations

from typing import Any

import torch

from ...dtypes import EIGHT_BIT_FLOATS, PACKED, DataType, compute_dtype
from ...ir import Dim, TensorType
from ...symbolic.queries import assume_equal
from ...symbolic.sizes import is_integer
from ..parameters import Kind, Param
from ..shape_rules import check_index, check_indexed, fail, with_integer_index
from ..table import Axes, Call, Library, Op
from ..views.index_range import in_range

_NAME = "index_put_accumulate"
_NOT_ADDED = frozenset({DataType.Bool, DataType.UInt64}) | EIGHT_BIT_FLOATS | PACKED
"""What torch does not add at indices."""


def _record(builder: Any, call: Call) -> Any:
    return builder.append(with_integer_index(builder, call))


def _infer(call: Call) -> tuple[TensorType, ...]:
    acc, index = call.value("acc").tensor, check_index(call, "index")
    value = call.value("value").tensor
    if acc.dtype in _NOT_ADDED:
        raise fail(_NAME, "numbers that torch adds", acc.dtype, "Cast the operands first.")
    if value.dtype is not acc.dtype:
        raise fail(_NAME, f"a value of {acc.dtype}, as acc", value.dtype, "Cast one first.")
    if acc.rank < 1 or index.rank != 1:
        raise fail(_NAME, "an acc with dims and an index of one", f"{acc.rank} and {index.rank}")
    if value.rank != acc.rank:
        raise fail(_NAME, f"a value of rank {acc.rank} as acc's", value.rank)
    wanted = (index.dims[0].size, *(dim.size for dim in acc.dims[1:]))
    for place, (dim, size) in enumerate(zip(value.dims, wanted, strict=True)):
        if is_integer(dim.size) and is_integer(size) and not assume_equal(dim.size, size):
            raise fail(_NAME, f"a value of {size} in dim {place}", dim.size)
    check_indexed(call, acc, 0, index.dims)
    return (TensorType(tuple(Dim(dim.size) for dim in acc.dims), acc.dtype),)


def _added(acc: torch.Tensor, index: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    index = in_range(_NAME, index, acc, 0)
    # The sums of many small numbers are rounded once.
    wide = compute_dtype(_DTYPES[acc.dtype]).info.torch if acc.dtype in _DTYPES else acc.dtype
    found = acc.to(wide).index_put((index.long(),), value.to(wide), accumulate=True)
    return found.to(acc.dtype).contiguous()


_DTYPES = {torch.float16: DataType.Half, torch.bfloat16: DataType.BFloat16}


def _axes(call: Call) -> Axes:
    """Every column by itself."""
    columns = tuple(f"d{place}" for place in range(1, call.value("acc").tensor.rank))
    rows = ("", *columns)
    return Axes((rows, ("",), rows), (rows,))


ROWS: tuple[Op, ...] = (
    Op(
        _NAME,
        (
            Param("acc", Kind.TENSOR, doc="[rows, ...]."),
            Param("index", Kind.TENSOR, doc="A row of acc for each row of value."),
            Param("value", Kind.TENSOR, doc="[indices, ...]."),
        ),
        "A copy of acc with the rows of value added at the rows that index names.",
        "library",
        Library(
            indices=("index",),
            positions=lambda call: call.value("acc").tensor.sizes[0],
            expanded=("acc",),
        ),
        _infer,
        _added,
        _record,
        axes=_axes,
    ),
)
