"""The row behind Python's ``//`` on handles, which nvFuser has no op for: written in other ops."""

from __future__ import annotations

from typing import Any

import torch

from ...dtypes import Category
from .. import typing_rules as rules
from ..table import Call, Op
from .constructors import PAIR
from .constructors import pointwise as row


def _record(builder: Any, call: Call) -> Any:
    """Record the quotient rounded down, as ``torch.floor_divide`` rounds it."""
    lhs, rhs = call.operand("lhs"), call.operand("rhs")
    floats = max(lhs.dtype.info.category, rhs.dtype.info.category) is not Category.INT
    return _of_floats(builder, lhs, rhs) if floats else _of_integers(builder, lhs, rhs)


def _of_integers(builder: Any, lhs: Any, rhs: Any) -> Any:
    """The truncated quotient, one less where the remainders of both roundings differ.

    No step of it overflows, and a division by zero has all bits set in each of them.
    """
    floored, truncated = (builder.call(name, lhs, rhs) for name in ("remainder", "mod"))
    below = builder.call("ne", floored, truncated)
    return builder.call("sub", builder.call("div", lhs, rhs), below)


def _of_floats(builder: Any, lhs: Any, rhs: Any) -> Any:
    """From the exact remainder, since ``floor(a / b)`` is one too many where a / b rounds up.

    This is the rule of C++ ``c10::div_floor_floating``: 1.0 // 0.1 is 9.
    """
    rest = builder.call("fmod", lhs, rhs)
    whole = builder.call("truediv", builder.call("sub", lhs, rest), rhs)
    signs = builder.call("ne", builder.call("lt", rhs, 0), builder.call("lt", rest, 0))
    below = builder.call("logical_and", builder.call("ne", rest, 0), signs)
    rounded = builder.call("round", builder.call("sub", whole, below))
    by_zero = builder.call("eq", rhs, 0)
    return builder.call("where", by_zero, builder.call("truediv", lhs, rhs), rounded)


INTERNAL: tuple[Op, ...] = (
    row(
        "floor_divide",
        PAIR,
        rules.default_op,
        (),
        torch.floor_divide,
        "Quotient rounded down.",
        record=_record,
        operator="floordiv",
    ),
)
