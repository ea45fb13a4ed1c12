"""Pointwise rows of three operands and more."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from ...dtypes import Category, DataType
from ...ir import Const
from .. import typing_rules as rules
from ..accuracy import CHOICE, EXACT, Accuracy
from ..complex import pairs
from ..parameters import Kind, Param
from ..table import Call, Op, Samples
from . import oracles
from .constructors import per, pointwise

# A table: a row is one op, not a column of arguments.
# fmt: off


def _params(*names: str, **docs: str) -> tuple[Param, ...]:
    return tuple(Param(name, Kind.OPERAND, doc=docs.get(name, "")) for name in names)


def _record_clamp(builder: Any, call: Call) -> Any:
    """A bound None is recorded as the lowest or highest number of the dtype.

    One beyond the numbers of an integer dtype is no limit either, or one that all are beyond: the
    cast to the dtype would make any number of it.
    """
    dtype = call.operand("input").dtype
    args = list(call.args)
    for place, bound in enumerate(_bounds(dtype), start=1):
        given = args[place]
        if given is None:
            args[place] = Const(bound, dtype)
        elif dtype.info.category is Category.INT and isinstance(given, Const):
            args[place] = _within(given, dtype)
    return builder.append(replace(call, args=tuple(args)))


def _within(number: Const, dtype: DataType) -> Const:
    """A constant, or the end of the dtype's range that it is beyond. A nan stays."""
    value, (lowest, highest) = number.value, _bounds(dtype)
    if isinstance(value, complex):
        return number
    if value < lowest:
        return Const(lowest, dtype)
    return Const(highest, dtype) if value > highest else number


def _bounds(dtype: DataType) -> tuple[float, float]:
    if dtype is DataType.Bool:
        return False, True
    found = dtype.info.torch
    if found is None or found.is_floating_point or found.is_complex:
        return -math.inf, math.inf
    limits = torch.iinfo(found)
    return limits.min, limits.max


ROWS: tuple[Op, ...] = (
    pointwise("where", _params("condition", "x", "y", x="The result where the condition is true.",
                               y="The result elsewhere."), rules.where_op,
              "tl.where({condition}, {x}, {y})", torch.where,
              "x where condition is true, else y.", complex=pairs.each("where"), accuracy=EXACT),
    pointwise("lerp", _params("x", "y", "weight", weight="How far from x to y.",
                              x="The result where weight is 0.",
                              y="The result where weight is 1."), rules.default_op,
              per(floating="lerp({x}, {y}, {weight})", integral="{x} + {weight} * ({y} - {x})",
                  boolean="({weight} & {y}) | (~{weight} & {x})"), oracles.lerp,
              "x + weight * (y - x): linear interpolation between x and y.",
              Samples(ranges=(("weight", 0.0, 1.0),)), complex=pairs.lerp,
              accuracy=Accuracy(1, inner=2), instructions=6),
    pointwise("clamp",
              (Param("input", Kind.OPERAND), Param("min", Kind.SCALAR, None),
               Param("max", Kind.SCALAR, None)), rules.same_op,
              per(boolean="({input} | {min}) & {max}",
                  other="minimum(maximum({input}, {min}), {max})"), oracles.clamp,
              "The input limited to [min, max]; None for no limit.",
              Samples(ranges=(("min", -4.0, -1.0), ("max", 1.0, 4.0))), record=_record_clamp,
              accuracy=CHOICE),
    pointwise("threshold",
              (Param("input", Kind.OPERAND), Param("threshold", Kind.SCALAR),
               Param("value", Kind.SCALAR, doc="What replaces them.")), rules.same_op,
              "tl.where({input} <= {threshold}, {value}, {input})", oracles.threshold,
              "The input where it is above the threshold, else the value.", accuracy=EXACT),
    pointwise("addcmul", (*_params("i1", "i2", "i3"),
                          Param("alpha", Kind.SCALAR, doc="The third factor.")),
              rules.default_op,
              per(boolean="{i1} | ({i2} & ({i3} & {alpha}))",
                  other="{i1} + {i2} * ({i3} * {alpha})"), oracles.addcmul,
              "i1 + i2 * i3 * alpha.", complex=pairs.addcmul, accuracy=Accuracy(1, inner=2)),
)
