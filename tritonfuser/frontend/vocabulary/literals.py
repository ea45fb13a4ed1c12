"""Numbers, dtypes and lists as Python source: what ``repr(fd)`` writes and ``exec`` reads back."""

from __future__ import annotations

import math

from ...dtypes import Category, DataType, of_python, plain_number
from ...ir import Attr, Const, Number


def float_text(value: float) -> str:
    """``%#.6g``, or all digits where six do not give the number back.

    >>> float_text(3.0), float_text(1e-5), float_text(1 / 3)
    ('3.00000', '1.00000e-05', '0.3333333333333333')
    """
    if math.isnan(value) or math.isinf(value):
        sign = "-" if value < 0 else ""
        return f'{sign}float("{"nan" if math.isnan(value) else "inf"}")'
    short = f"{value:#.6g}"
    return short if float(short) == value else repr(value)


def number_text(value: Number) -> str:
    """A number as a literal, or a call that makes it where it has none."""
    if isinstance(value, bool | int):
        return repr(plain_number(value))
    if isinstance(value, float):
        return float_text(value)
    return f"complex({float_text(value.real)}, {float_text(value.imag)})"


def is_plain(const: Const) -> bool:
    """Whether the literal alone gives the constant back, its dtype included."""
    return const.dtype is of_python(const.value)


def is_extent(const: Const) -> bool:
    """Whether an integer can stand for it in a shape."""
    return const.dtype.info.category is Category.INT and isinstance(const.value, int)


def attr_text(value: Attr) -> str:
    """A static argument; tuples are written as lists."""
    if isinstance(value, tuple):
        return "[" + ", ".join(repr(item) for item in value) + "]"
    if isinstance(value, bool | int | float):
        return number_text(value)
    return f"DataType.{value.name}" if isinstance(value, DataType) else repr(value)
