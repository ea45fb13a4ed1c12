"""Rows that make tensors from scalars: iota, full, triu; and, joined in, random numbers."""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from typing import Any

import torch

from ...dtypes import EIGHT_BIT_FLOATS, Category, DataType, compute_dtype, holding
from ...ir import Const, Dim, Number, TensorType, Value
from ...symbolic.queries import assume_at_most, assume_less, assume_max, assume_min
from ...symbolic.sizes import integer, is_integer
from ..complex import pairs
from ..forms import Composite, Factory
from ..parameters import Kind, Param
from ..shape_rules import ARG, extent, fail, tensor, with_attrs, with_operands
from ..table import Call, Op
from . import random_ops
from .fills import as_class, dtype_attr, infer_shaped, number_of

_INT32_MAX = 2**31 - 1


# --- iota, full --------------------------------------------------------------------------------


def _infer_iota(call: Call) -> tuple[TensorType, ...]:
    length = extent("iota", call.arg("length"))
    if is_integer(length) and assume_less(length, 0):
        raise fail("iota", "a length of 0 and more", length)
    return (tensor([Dim(length)], dtype_attr(call)),)


def _record_iota(builder: Any, call: Call) -> Any:
    """Append the node, defaults written out; narrow floats are counted in Float."""
    dtype = dtype_attr(call)
    if compute_dtype(dtype) is not dtype:
        wide = _record_iota(builder, with_attrs(call, dtype=compute_dtype(dtype)))
        return builder.call("cast", wide, dtype)
    if dtype.info.category not in (Category.INT, Category.FLOAT):
        raise fail("iota", "an integer or floating-point dtype", dtype)
    _check_counting(call, dtype)
    first, step = call.arg("start"), call.arg("step")
    start = Const.of(0) if first is None else first
    stride = Const.of(1) if step is None else step
    assert isinstance(start, Value | Const) and isinstance(stride, Value | Const)
    return builder.append(
        with_operands(
            call,
            start=as_class(builder, call, "start", start),
            step=as_class(builder, call, "step", stride),
        )
    )


def _check_counting(call: Call, dtype: DataType) -> None:
    """Refuse what cannot be counted with, in nvFuser's words."""
    length = call.operand("length")
    if length.dtype.info.category is not Category.INT:
        raise fail("iota: length must be integer", "an integer length", length.dtype)
    for name in ("start", "step"):
        given = call.arg(name)
        if given is None:
            continue
        operand = call.operand(name)
        if operand.dtype.info.category is not dtype.info.category:
            raise fail(
                f"iota: {name} dtype does not match specified dtype argument",
                f"a {name} that is {_OF_CATEGORY[dtype.info.category]}, for {dtype}",
                operand.dtype,
            )
        if isinstance(operand, Const) and not cmath.isfinite(operand.value):
            raise fail(
                "iota: length, start, step must be finite numbers", f"a finite {name}", operand
            )


_OF_CATEGORY = {Category.INT: "an integer", Category.FLOAT: "a floating-point number"}


def _iota(
    length: int,
    start: float | None = None,
    step: float | None = None,
    dtype: DataType = DataType.Int,
) -> torch.Tensor:
    narrow = dtype in EIGHT_BIT_FLOATS
    index = torch.arange(int(length), dtype=torch.float32 if narrow else dtype.info.torch)
    found = (0 if start is None else start) + (1 if step is None else step) * index
    return found.to(dtype.info.torch) if narrow else found


def _record_full(builder: Any, call: Call) -> Any:
    if dtype_attr(call).info.torch is None:
        raise fail("full", "a dtype that tensors can have", dtype_attr(call))
    fill = as_class(builder, call, "fill_value", call.operand("fill_value"))
    return builder.append(with_operands(call, fill_value=fill))


def _full(shape: Sequence[int], fill_value: Number, dtype: DataType) -> torch.Tensor:
    # torch.full refuses numbers that the dtype does not hold; a cast rounds and wraps them.
    number = torch.tensor(fill_value, dtype=holding(fill_value).info.torch).to(dtype.info.torch)
    return number.expand(tuple(shape)).contiguous()


# --- triu ----------------------------------------------------------------------------------------


def _infer_triu(call: Call) -> tuple[TensorType, ...]:
    arg = call.value("arg").tensor
    if arg.rank < 2:
        raise fail("triu", "a tensor of rank 2 and more", f"rank {arg.rank}")
    diagonal = call.operand("diagonal")
    if diagonal.dtype.info.category not in (Category.BOOL, Category.INT):
        raise fail("triu", "an integer diagonal", diagonal.dtype)
    matrix = (Dim(dim.size) for dim in arg.dims[-2:])
    return (tensor((*arg.dims[:-2], *matrix), arg.dtype),)


def _expand_triu(ops: Any, arg: Value, diagonal: Value | Const) -> Any:
    """``triu(x, k)`` -> ``where(column >= row + k, x, 0)`` over two iotas."""
    rows, columns = arg.tensor.sizes[-2:]
    kind = DataType.Int
    if isinstance(diagonal, Const) and assume_at_most(rows + columns, _INT32_MAX):
        assert not isinstance(diagonal.value, complex)
        # Beyond the corners nothing changes, and the sum stays in 32 bits.
        least = assume_min(integer(diagonal.value), columns)
        diagonal = Const.of(assume_max(-rows, least))
        kind = DataType.Int32
    row = ops.broadcast(ops.iota(rows, dtype=kind), [False, True])
    column = ops.iota(columns, dtype=kind)
    zero = Const(number_of("triu", "fill", 0, arg.dtype), arg.dtype)
    return ops.where(ops.ge(column, ops.add(row, diagonal)), arg, zero)


ROWS: tuple[Op, ...] = (
    Op(
        "iota",
        (
            Param("length", Kind.EXTENT),
            Param("start", Kind.SCALAR, None),
            Param("step", Kind.SCALAR, None),
            Param("dtype", Kind.DTYPE, DataType.Int),
        ),
        "start, start + step, ..., length numbers; start is 0 and step 1 where not given.",
        "factory",
        Factory("{start} + {step} * {i0}"),
        _infer_iota,
        _iota,
        _record_iota,
    ),
    Op(
        "full",
        (
            Param("shape", Kind.EXTENTS),
            Param("fill_value", Kind.SCALAR),
            Param("dtype", Kind.DTYPE),
        ),
        "A tensor filled with fill_value.",
        "factory",
        Factory("{fill_value}"),
        infer_shaped,
        _full,
        _record_full,
        complex=pairs.each("full"),
    ),
    Op(
        "triu",
        (ARG, Param("diagonal", Kind.SCALAR, 0)),
        "The upper triangle of the last two dims; 0 below the diagonal.",
        "composite",
        Composite(_expand_triu),
        _infer_triu,
        lambda arg, diagonal=0: torch.triu(arg, int(diagonal)),
    ),
    *random_ops.ROWS,
)
