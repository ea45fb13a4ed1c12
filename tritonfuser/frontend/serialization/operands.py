"""Arguments of an op as plain data, and back, by the kinds of its row of the op table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dtypes import DataType
from ...ir import Arg, Attr, Const, Number, Operand, Value
from ...ops.parameters import Kind, Param
from ..record.constants import constant
from . import plain_data

Values = Mapping[str, Value]
"""The values defined so far, by name."""

_LISTS = (Kind.TENSORS, Kind.EXTENTS)
_INTS = (Kind.INTS, Kind.DIMS)
_SPECIAL = ("nan", "inf", "-inf")
"""Floats that JSON has no number for."""


# --- numbers ---------------------------------------------------------------------------------


def const_data(const: Const) -> dict[str, Any]:
    """``{"float": 1.5, "dtype": "Double"}``: the key is the Python type."""
    value = const.value
    if isinstance(value, bool):
        return {"bool": value, "dtype": const.dtype.name}
    if isinstance(value, complex):
        parts = [_float_data(value.real), _float_data(value.imag)]
        return {"complex": parts, "dtype": const.dtype.name}
    if isinstance(value, float):
        return {"float": _float_data(value), "dtype": const.dtype.name}
    return {"int": int(value), "dtype": const.dtype.name}


def _float_data(value: float) -> float | str:
    if value != value or value in (float("inf"), float("-inf")):
        return repr(float(value))
    return float(value)


def const_from(given: Any, where: str) -> Const:
    """The constant that ``const_data`` described."""
    data = plain_data.record(given, where, ["dtype"], ["bool", "int", "float", "complex"])
    dtype = plain_data.dtype(data["dtype"], f"{where}.dtype")
    if len(data) != 2 or dtype is DataType.Null:
        plain_data.refuse(where, "one of bool, int, float, complex, and a dtype", given)
    kind = next(key for key in data if key != "dtype")
    found = Const(_number(kind, data[kind], where), dtype)
    with plain_data.taken_at(where):
        converted = constant(found.value, dtype)
    if converted != found:
        plain_data.refuse(where, f"a number of {dtype.name}", given)
    return found


def _number(kind: str, given: Any, where: str) -> Number:
    if kind == "bool":
        return plain_data.flag(given, where)
    if kind == "int":
        return plain_data.integer(given, where)
    if kind == "float":
        return _float(given, where)
    if len(plain_data.items(given, where)) != 2:
        plain_data.refuse(where, "a real and an imaginary part", given)
    return complex(_float(given[0], where), _float(given[1], where))


def _float(given: Any, where: str) -> float:
    # Programs in other languages write 1.0 as 1.
    is_number = type(given) is float or (type(given) is int and abs(given) <= 2**53)
    if not is_number and not (type(given) is str and given in _SPECIAL):
        plain_data.refuse(where, f"a float, or one of {', '.join(_SPECIAL)}", given)
    return float(given)


# --- operands --------------------------------------------------------------------------------


def operand_data(arg: Arg) -> Any:
    """A value by its name, a constant, None, or a list of operands."""
    if isinstance(arg, tuple):
        return [operand_data(item) for item in arg]
    if isinstance(arg, Const):
        return const_data(arg)
    return None if arg is None else arg.name


def _operand_from(given: Any, values: Values, where: str) -> Operand:
    if isinstance(given, dict):
        return const_from(given, where)
    found = values.get(given) if isinstance(given, str) else None
    if found is None:
        plain_data.refuse(where, "a constant, or the name of a value that is defined before", given)
    return found


# --- static arguments ------------------------------------------------------------------------


def attr_data(attr: Attr) -> Any:
    """A DataType by its name, a tuple as a list, what else there is as it is."""
    if isinstance(attr, DataType):
        return attr.name
    return [*attr] if isinstance(attr, tuple) else attr


def attr_from(kind: Kind, given: Any, where: str) -> Attr:
    """The static argument of a kind that ``attr_data`` described."""
    if given is None:
        return None
    if kind is Kind.DTYPE:
        return plain_data.dtype(given, where)
    if kind is Kind.BOOL:
        return plain_data.flag(given, where)
    if kind in _INTS:
        return tuple(plain_data.integer(item, where) for item in plain_data.items(given, where))
    if kind is Kind.BOOLS:
        return tuple(plain_data.flag(item, where) for item in plain_data.items(given, where))
    return plain_data.integer(given, where)


def argument_from(param: Param, given: Any, values: Values, where: str) -> Any:
    """What was given for a parameter, as the op table's rules take it."""
    if given is None:
        return None
    if not param.kind.is_operand:
        return attr_from(param.kind, given, where)
    if param.kind in _LISTS:
        return [_operand_from(item, values, where) for item in plain_data.items(given, where)]
    return _operand_from(given, values, where)
