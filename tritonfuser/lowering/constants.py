"""Constant folding: an op over constants alone, evaluated by its torch oracle."""

from __future__ import annotations

import math

import torch

from ..dtypes import Category, DataType, of_python
from ..ir import Const, Number
from ..ops.table import Call

_UNSIGNED = range(2**63, 2**64)
"""Ints that only an unsigned dtype holds."""


def fold(call: Call, dtype: DataType) -> Const | None:
    """The value of a call all of whose operands are constants, in ``dtype``; else None."""
    consts = [arg for arg in call.args if isinstance(arg, Const)]
    if not consts or len(consts) != len([a for a in call.args if a is not None]):
        return None
    operands = [_tensor(a) if isinstance(a, Const) else None for a in call.args]
    with torch.device("cpu"):  # whatever the program's default device is
        result = call.op.oracle(*operands, **call.attrs)
        return Const(as_number(torch.as_tensor(result).item(), dtype), dtype)


def neutral(kind: str, dtype: DataType) -> Const:
    """The neutral element of a reduction: "zero", "one", "lowest" or "highest" of a dtype."""
    category = dtype.info.category
    if kind in ("zero", "one"):
        number: Number = int(kind == "one")
    elif category is Category.FLOAT:
        number = -math.inf if kind == "lowest" else math.inf
    elif category is Category.BOOL:
        number = int(kind == "highest")
    else:
        assert dtype.info.torch is not None
        limits = torch.iinfo(dtype.info.torch or torch.int64)
        number = limits.min if kind == "lowest" else limits.max
    return Const(as_number(number, dtype), dtype)


def _tensor(const: Const) -> torch.Tensor:
    return torch.tensor(const.value, dtype=const.dtype.info.torch, device="cpu")


def as_number(value: Number, dtype: DataType) -> Number:
    """The Python number a constant of ``dtype`` holds: rounded, truncated or tested as a cast."""
    # torch.tensor(0.1) alone is a float32.
    # A float would be looked for number by number.
    unsigned = isinstance(value, int) and value in _UNSIGNED
    kind = DataType.UInt64 if unsigned else of_python(value)
    exact = torch.tensor(value, dtype=kind.info.torch, device="cpu")
    return exact.to(dtype.info.torch).item()
