"""Python's numbers as constants of a definition, converted to a dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ...dtypes import Category, DataType, holds_int, of_python, plain_number
from ...errors import ArgumentError, DefinitionError
from ...ir import Const, Number
from ...ops.arguments import shown

NUMBERS = (bool, int, float, complex)
"""What is a number in a definition."""


def constant(value: Any, dtype: DataType | None) -> Const:
    """A Python number as a constant, converted to ``dtype`` where one is given.

    Raises
    ------
    ArgumentError
        ``value`` is no number.
    DefinitionError
        The dtype has no such number: an integer for nan.
    """
    if isinstance(value, np.generic) or (isinstance(value, torch.Tensor) and not value.dim()):
        value = value.item()
    if not isinstance(value, NUMBERS):
        raise incompatible("define_scalar", f"expected a number, got {shown(value)}")
    value = plain_number(value)
    _check_range(value, value, dtype)
    if dtype is None:
        return Const(value, of_python(value))
    converted = _converted(value, dtype)
    _check_range(converted, value, dtype)
    return Const(converted, dtype)


def _check_range(number: Number, given: Number, dtype: DataType | None) -> None:
    # An int64 is wrapped to fewer bits.
    held = DataType.UInt64 if dtype is DataType.UInt64 else DataType.Int
    if isinstance(number, int) and not holds_int(held, number):
        raise incompatible("define_scalar", f"expected a {held}, got {shown(given)}")


def _whole(value: float, dtype: DataType) -> int:
    if not math.isfinite(value):
        raise DefinitionError(f"define_scalar: expected a finite number for {dtype}, got {value}")
    return int(value)


def _converted(value: Number, dtype: DataType) -> Number:
    category = dtype.info.category
    if category is Category.COMPLEX:
        return complex(value)
    real = value.real if isinstance(value, complex) else value
    if category is Category.BOOL:
        return bool(real)
    if category is Category.INT:
        return _whole(real, dtype)
    if dtype.info.torch is None or dtype is DataType.Double:
        return float(real)
    wide = torch.tensor(float(real), dtype=torch.float64)
    try:
        rounded: float = wide.to(dtype.info.torch).item()
    except NotImplementedError:  # numbers of four bits
        raise DefinitionError(f"define_scalar: torch has no number of {dtype}") from None
    return rounded


def incompatible(name: str, what: str, hint: str = "") -> ArgumentError:
    """The error for arguments that a function of the definition does not take."""
    return ArgumentError(f"{name}(): incompatible function arguments: {what}", hint=hint)
