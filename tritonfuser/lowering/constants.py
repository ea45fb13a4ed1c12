"""Constant folding: an op over constants alone, evaluated by its torch oracle."""

from __future__ import annotations

import torch

from ..dtypes import DataType
from ..ir import Const, Number
from ..ops.table import Call


def fold(call: Call, dtype: DataType) -> Const | None:
    """The value of a call all of whose operands are constants, in ``dtype``; else None."""
    consts = [arg for arg in call.args if isinstance(arg, Const)]
    if not consts or len(consts) != len([a for a in call.args if a is not None]):
        return None
    operands = [_tensor(a) if isinstance(a, Const) else None for a in call.args]
    with torch.device("cpu"):  # whatever the program's default device is
        result = call.op.oracle(*operands, **call.attrs)
        return Const(as_number(torch.as_tensor(result).item(), dtype), dtype)


def _tensor(const: Const) -> torch.Tensor:
    return torch.tensor(const.value, dtype=const.dtype.info.torch, device="cpu")


def as_number(value: Number, dtype: DataType) -> Number:
    """The Python number a constant of ``dtype`` holds: rounded, truncated or tested as a cast."""
    return torch.tensor(value, device="cpu").to(dtype.info.torch).item()
