"""What factories and random ops share: their dtype, their shape, and scalars made to fit it."""

from __future__ import annotations

import math
from typing import Any

from ...dtypes import Category, DataType
from ...ir import Const, Dim, Number, TensorType, Value
from ..shape_rules import fail, sizes_of, tensor
from ..table import Call


def dtype_attr(call: Call) -> DataType:
    """The ``dtype`` of a call."""
    found = call.attrs["dtype"]
    assert isinstance(found, DataType)
    return found


def as_class(builder: Any, call: Call, name: str, operand: Value | Const) -> Value | Const:
    """A scalar as a number of the category of the result: 1 is 1.0 for a Float tensor."""
    dtype = dtype_attr(call)
    if operand.dtype.info.category is dtype.info.category:
        return operand
    if dtype.info.category < operand.dtype.info.category is Category.COMPLEX:
        raise fail(call.op.name, f"a real {name} for {dtype}", operand.dtype)
    if isinstance(operand, Value):
        found = builder.call("cast", operand, dtype)
        assert isinstance(found, Value)
        return found
    return Const.of(number_of(call.op.name, name, operand.value, dtype))


def number_of(op: str, name: str, value: Number, dtype: DataType) -> Number:
    """An argument of an op as a number of a dtype, which has to have such a number."""
    category = dtype.info.category
    if category is Category.COMPLEX:
        return complex(value)
    assert not isinstance(value, complex)
    if category is Category.FLOAT:
        return float(value)
    if category is Category.BOOL:
        return bool(value)
    if not math.isfinite(value):
        raise fail(op, f"a finite {name} for {dtype}", value)
    return int(value)


def infer_shaped(call: Call) -> tuple[TensorType, ...]:
    """The type rule of ops with a ``shape`` and a ``dtype``."""
    return (tensor([Dim(size) for size in sizes_of(call, "shape")], dtype_attr(call)),)
