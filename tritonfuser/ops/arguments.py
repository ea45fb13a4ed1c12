"""Arguments of a call of an op: matched to the parameters of its row, converted, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..dtypes import DataType, data_type, dtype_advice, plain_number
from ..errors import ArgumentError
from ..ir import Arg, Attr, Const, ScalarType, Value
from ..symbolic.sizes import is_integer
from .parameters import REQUIRED, Kind
from .table import Call, Op

INT64_MAX = 2**63 - 1
SHOWN = 200
"""Characters of a wrong argument that an error message shows."""

_WRONG = object()
"""What a converter returns for an argument of the wrong type."""


def bind(op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
    """Match arguments to parameters and convert them; Python numbers become constants.

    Raises
    ------
    ArgumentError
        An argument is missing, unknown, given twice, or of the wrong Python type.
    """
    given = _match(op, list(args), dict(kwargs))
    operands: list[Arg] = []
    attrs: dict[str, Attr] = {}
    for param in op.params:
        value = given.get(param.name, param.default)
        if value is REQUIRED:
            raise ArgumentError(
                f"{op.name}(): incompatible function arguments: {param.name!r} is missing",
                hint=f"Signature: {signature_text(op)}",
            )
        if value is None and (param.default is None or param.takes_none):
            converted: Any = None
        else:
            converted = _convert(op, param.name, param.kind, value)
        if param.kind.is_operand:
            operands.append(converted)
        else:
            attrs[param.name] = converted
    return Call(op, tuple(operands), attrs)


def _match(op: Op, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Positional and named arguments by parameter name.

    A dtype in the place of ``dims`` is the ``dtype``: ``sum(t, DataType.Double)``.
    """
    kinds = {p.name: p.kind for p in op.params}
    names = _names_by_place(op, args)
    given: dict[str, Any] = {}
    for place, value in enumerate(args):
        if place >= len(names):
            raise ArgumentError(
                f"{op.name}(): incompatible function arguments: {len(args)} positional "
                f"arguments, at most {len(names)} are taken",
                hint=f"Signature: {signature_text(op)}",
            )
        name = names[place]
        is_dtype = isinstance(value, DataType | torch.dtype)
        if kinds[name] is Kind.DIMS and is_dtype and "dtype" in kinds:
            name = "dtype"
        given[name] = value
    aliases = {"axes": "dims", "dim": "dims"} if "dims" in kinds else {}
    for key, value in kwargs.items():
        name = aliases.get(key, key)
        if name not in kinds or name in given:
            what = "twice" if name in given else "but there is no such parameter"
            raise ArgumentError(
                f"{op.name}(): incompatible function arguments: {key!r} is given {what}",
                hint=f"Signature: {signature_text(op)}",
            )
        given[name] = value
    return given


def _names_by_place(op: Op, args: Sequence[Any]) -> Sequence[str]:
    """The parameters that positional arguments are for.

    In the order of the row, or in ``Op.older_order`` where a scalar is in the place of a tensor.
    """
    params = [param for param in op.params if not param.keyword_only]
    pairs = zip(params, args, strict=False)
    if op.older_order and any(p.kind is Kind.TENSOR and _is_scalar(arg) for p, arg in pairs):
        return op.older_order
    return [param.name for param in params]


def _is_scalar(given: object) -> bool:
    """Whether it is a number or a scalar of the definition."""
    if isinstance(given, Value):
        return not given.is_tensor
    return is_integer(given) or isinstance(given, Const | float | complex)


def signature_text(op: Op) -> str:
    """``sum(arg, dims=None, keepdim=False, dtype=DataType.Null)``."""
    parts: list[str] = []
    star = False
    for param in op.params:
        if param.keyword_only and not star:
            parts.append("*")
            star = True
        default = "" if param.default is REQUIRED else f"={param.default}"
        parts.append(f"{param.name}: {param.kind.value}{default}")
    return f"{op.name}({', '.join(parts)})"


def _convert(op: Op, name: str, kind: Kind, value: Any) -> Any:
    converted = _CONVERTERS[kind](value)
    if converted is _WRONG:
        raise ArgumentError(
            f"{op.name}(): incompatible function arguments: {name!r} must be {kind.value}, "
            f"got {shown(value)} of type {_type_name(value)}",
            hint=" ".join(filter(None, (_advice(value), f"Signature: {signature_text(op)}"))),
        )
    return converted


def _type_name(value: object) -> str:
    """As signatures name it, for a value of the definition."""
    if isinstance(value, Value):
        return Kind.TENSOR.value if value.is_tensor else "Val"
    return type(value).__name__


def _advice(value: object) -> str:
    """What to do about an argument that no op takes; nothing where only its place is wrong."""
    if isinstance(value, list | tuple):
        beyond = [n for n in value if type(n) is int and not fits_int64(n)]
        return f"One of them is {shown(beyond[0]).rstrip(',')}." if beyond else ""
    if hasattr(value, "__array__"):
        return "Data becomes an operand as an input: fd.from_pytorch(tensor)."
    return dtype_advice(value)


def shown(value: object) -> str:
    """A value of any type in a message: its repr, cut where it is long."""
    if type(value) is int and not fits_int64(value):
        return f"an int of {value.bit_length()} bits, beyond int64,"
    try:
        text = repr(value)
    except Exception:
        return "something without a repr"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def fits_int64(value: int) -> bool:
    """Whether an int64 holds it."""
    return -INT64_MAX - 1 <= value <= INT64_MAX


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float | complex):
        value = plain_number(value)
    elif not is_integer(value):
        return _WRONG
    return Const.of(value) if type(value) is not int or fits_int64(value) else _WRONG


def _tensor(value: Any) -> Any:
    return value if isinstance(value, Value) and value.is_tensor else _WRONG


def _scalar(value: Any) -> Any:
    if isinstance(value, Const) or (
        isinstance(value, Value) and isinstance(value.type, ScalarType)
    ):
        return value
    return _number(value)


def _operand(value: Any) -> Any:
    return value if isinstance(value, Value | Const) else _number(value)


def _int(value: Any) -> Any:
    if not is_integer(value) and not isinstance(value, np.integer):
        return _WRONG
    number = int(value)
    return number if fits_int64(number) else _WRONG


def _bool(value: Any) -> Any:
    return bool(value) if isinstance(value, int | np.bool_) else _WRONG


def _count(value: Any) -> Any:
    """A number of elements, of any dtype: the op refuses scalars that are no integers."""
    return value if isinstance(value, Const) else _extent(value)


def _extent(value: Any) -> Any:
    found = _scalar(value)
    if not isinstance(found, Const) or is_integer(found.value):
        return found
    # A scalar of the definition may be of any real dtype, a Python number must be an int.
    number = found.value
    if found is value and isinstance(number, float) and math.isfinite(number):
        return Const.of(int(number))
    return _WRONG


def _list_of(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def converter(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return _WRONG
        items = tuple(convert(item) for item in value)
        return _WRONG if any(item is _WRONG for item in items) else items

    return converter


def _dims(value: Any) -> Any:
    return _list_of(_int)([value] if isinstance(value, int | np.integer) else value)


_CONVERTERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.TENSOR: _tensor,
    Kind.OPERAND: _operand,
    Kind.SCALAR: _scalar,
    Kind.VALUE: lambda value: value if isinstance(value, Value | Const) else _WRONG,
    Kind.TENSORS: _list_of(_tensor),
    Kind.EXTENT: _count,
    Kind.EXTENTS: _list_of(_extent),
    Kind.INT: _int,
    Kind.INTS: _list_of(_int),
    Kind.BOOL: _bool,
    Kind.BOOLS: _list_of(_bool),
    Kind.DIMS: _dims,
    Kind.DTYPE: lambda value: data_type(value) or _WRONG,
}
