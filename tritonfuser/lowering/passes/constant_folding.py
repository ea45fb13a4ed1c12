"""Constant folding: an op over constants alone, evaluated by its torch oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from ...dtypes import Category, DataType, holding
from ...ir import Const, Number
from ...ops.forms import Pointwise
from ...ops.table import Call
from ...symbolic.queries import assume_at_most, assume_constant, assume_less, assume_max, assume_min
from ...symbolic.sizes import integer, is_integer, is_size


def fold(call: Call, dtype: DataType) -> Const | None:
    """The value of a call all of whose operands are constants, in ``dtype``; else None."""
    consts = [arg for arg in call.args if isinstance(arg, Const)]
    if not consts or len(consts) != len([a for a in call.args if a is not None]):
        return None
    size = _size(call, consts) if dtype is DataType.Int else None
    if size is not None:
        return Const(size, dtype)
    operands = [_tensor(a) if isinstance(a, Const) else None for a in call.args]
    with torch.device("cpu"):  # whatever the program's default device is
        try:
            result = call.oracle(*operands, **call.attrs)
        except NotImplementedError:  # torch has few functions of unsigned integers; kernels have
            return None
        return Const(as_number(torch.as_tensor(result).item(), dtype), dtype)


_OF_SIZES: dict[str, Callable[..., int]] = {
    "int_div": lambda a, b: _where_natural(a, b)[0] // b,
    "int_mod": lambda a, b: _where_natural(a, b)[0] % b,
    "minimum": assume_min,
    "maximum": assume_max,
}
"""What functions in expressions of ops mean for sizes that vary."""


def _where_natural(a: int, b: int) -> tuple[int, int]:
    """Operands for which rounding down is rounding towards zero."""
    if assume_less(a, 0) or assume_at_most(b, 0):
        raise TypeError("not for sizes")
    return a, b


def _size(call: Call, consts: Sequence[Const]) -> int | None:
    """An expression of integers some of which are sizes that vary, with those left open."""
    form = call.op.form
    whole = all(const.dtype.info.category is Category.INT for const in consts)
    if not isinstance(form, Pointwise) or not whole or not any(is_size(c.value) for c in consts):
        return None
    names = {param.name: param.name for param in call.op.params}
    values = {name: const.value for name, const in zip(names, consts, strict=False)}
    last = None if is_size(consts[-1].value) else consts[-1].value  # a power of any exponent
    text = form.expression(consts[0].dtype, last).format(**{**names, "dtype": "dtype"})
    try:
        found = eval(text, {"__builtins__": {}, **_OF_SIZES}, values)
    except (NameError, TypeError, AttributeError):
        return None  # the oracle knows, with the sizes of this run
    return integer(found)


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
    value = assume_constant(const.value) if is_integer(const.value) else const.value
    return torch.tensor(value, dtype=const.dtype.info.torch, device="cpu")


def as_number(value: Number, dtype: DataType) -> Number:
    """The Python number a constant of ``dtype`` holds: rounded, truncated or tested as a cast."""
    # torch.tensor(0.1) alone is a float32.
    exact = torch.tensor(value, dtype=holding(value).info.torch, device="cpu")
    return exact.to(dtype.info.torch).item()
