"""Pointwise rows of one operand: functions of floats, roundings, tests, copies and casts."""

from __future__ import annotations

from dataclasses import replace

import torch

from ...dtypes import DataType
from ...errors import DefinitionError
from ...ir import Type
from .. import typing_rules as rules
from ..accuracy import COARSE, EXACT, Accuracy
from ..complex import functions, inverses, pairs
from ..parameters import Kind, Param
from ..table import Call, Op, Samples
from . import oracles, pieces
from .constructors import as_tensor, per, pointwise, to_dtype, unary

# A table: a row is one op, not a column of arguments.
# fmt: off

_float = rules.float_op
_same = rules.same_op
_test = rules.predicate_op
_POSITIVE = Samples(0.1, 99.0)
_UNIT = Samples(-0.99, 0.99)

FLOAT_FUNCTIONS: tuple[Op, ...] = (
    unary("acos", _float, "libdevice.acos({x})", torch.acos, "Arc cosine.", _UNIT,
          complex=inverses.acos, accuracy=Accuracy(2), instructions=19),
    unary("acosh", _float, "libdevice.acosh({x})", torch.acosh, "Inverse hyperbolic cosine.",
          Samples(1.0, 99.0), complex=inverses.acosh, accuracy=Accuracy(4), instructions=36),
    unary("asin", _float, "libdevice.asin({x})", torch.asin, "Arc sine.", _UNIT,
          complex=inverses.asin, accuracy=Accuracy(2), instructions=20),
    unary("asinh", _float, "libdevice.asinh({x})", torch.asinh, "Inverse hyperbolic sine.",
          complex=inverses.asinh, accuracy=Accuracy(4), instructions=51),
    unary("atan", _float, "libdevice.atan({x})", torch.atan, "Arc tangent.",
          complex=inverses.atan, accuracy=Accuracy(2), instructions=39),
    unary("atanh", _float, "libdevice.atanh({x})", torch.atanh, "Inverse hyperbolic tangent.",
          _UNIT, complex=inverses.atanh, accuracy=Accuracy(4), instructions=36),
    unary("cos", _float, per(single="cosine({x})", double="libdevice.cos({x})"), torch.cos,
          "Cosine of an angle in radians.",
          complex=functions.cos, accuracy=Accuracy(2, pieces=pieces.COSINE), instructions=27),
    unary("cosh", _float, "libdevice.cosh({x})", torch.cosh, "Hyperbolic cosine.",
          complex=functions.cosh, accuracy=Accuracy(2), instructions=21),
    unary("exp", _float, "libdevice.exp({x})", torch.exp, "e to the power of x.",
          complex=functions.exp, accuracy=Accuracy(2, inner=1, coarse=COARSE), instructions=8),
    unary("exp2", _float, "libdevice.exp2({x})", torch.exp2, "2 to the power of x.",
          complex=functions.exp2, accuracy=Accuracy(2), instructions=4),
    unary("expm1", _float, "libdevice.expm1({x})", torch.expm1, "exp(x) - 1, accurate near 0.",
          complex=functions.expm1, accuracy=Accuracy(2), instructions=28),
    unary("erf", _float, "libdevice.erf({x})", torch.erf, "Error function.",
          accuracy=Accuracy(2, coarse=COARSE, coarse_floor=COARSE), instructions=28),
    unary("erfc", _float, "libdevice.erfc({x})", torch.erfc, "Complementary error function.",
          accuracy=Accuracy(4), instructions=46),
    unary("erfinv", _float, "libdevice.erfinv({x})", torch.erfinv, "Inverse error function.",
          _UNIT, accuracy=Accuracy(2), instructions=17),
    unary("erfcinv", _float, "erfcinv({x})", oracles.erfcinv,
          "Inverse complementary error function.", Samples(0.01, 1.99), accuracy=Accuracy(8),
          instructions=211),
    unary("lgamma", _float, "libdevice.lgamma({x})", torch.lgamma,
          "Logarithm of the absolute value of the gamma function.", _POSITIVE,
          accuracy=Accuracy(6, pieces=pieces.LOG_GAMMA), instructions=48),
    unary("log", _float, "libdevice.log({x})", torch.log, "Natural logarithm.", _POSITIVE,
          complex=functions.log, accuracy=Accuracy(2), instructions=25),
    unary("log10", _float, "libdevice.log10({x})", torch.log10, "Logarithm to base 10.", _POSITIVE,
          complex=functions.log10, accuracy=Accuracy(2), instructions=26),
    unary("log1p", _float, "libdevice.log1p({x})", torch.log1p, "log(1 + x), accurate near 0.",
          Samples(-0.9, 99.0), complex=functions.log1p, accuracy=Accuracy(2), instructions=25),
    unary("log2", _float, "libdevice.log2({x})", torch.log2, "Logarithm to base 2.", _POSITIVE,
          complex=functions.log2, accuracy=Accuracy(2), instructions=27),
    unary("reciprocal", _float, per(single="reciprocal({x})", double="1.0 / {x}"),
          torch.reciprocal, "1 / x.", _POSITIVE, complex=pairs.reciprocal,
          accuracy=Accuracy(0.5, coarse=COARSE), instructions=10),
    unary("rsqrt", _float, "libdevice.rsqrt({x})", torch.rsqrt, "1 / sqrt(x).", _POSITIVE,
          complex=functions.rsqrt, accuracy=Accuracy(2), instructions=4),
    unary("sigmoid", _float, "sigmoid({x})", oracles.sigmoid, "1 / (1 + exp(-x)).",
          complex=functions.sigmoid, accuracy=Accuracy(4, coarse=COARSE), instructions=10),
    unary("sin", _float, per(single="sine({x})", double="libdevice.sin({x})"), torch.sin,
          "Sine of an angle in radians.",
          complex=functions.sin, accuracy=Accuracy(2, pieces=pieces.SINE), instructions=25),
    unary("sinh", _float, "libdevice.sinh({x})", torch.sinh, "Hyperbolic sine.",
          complex=functions.sinh, accuracy=Accuracy(3), instructions=21),
    unary("sqrt", _float, per(single="square_root({x})", double="tl.sqrt({x})"), torch.sqrt,
          "Square root.", _POSITIVE, complex=functions.sqrt,
          accuracy=Accuracy(0.5, coarse=COARSE), instructions=10),
    unary("tan", _float, "libdevice.tan({x})", torch.tan, "Tangent of an angle in radians.",
          complex=functions.tan, accuracy=Accuracy(4, pieces=pieces.TANGENT), instructions=23),
    unary("tanh", _float, "tanh({x})", torch.tanh, "Hyperbolic tangent.", complex=functions.tanh,
          accuracy=Accuracy(4), instructions=14),
)


def _rounding(name: str, triton: str, doc: str) -> Op:
    """A row that rounds floats and leaves integers as they are."""
    function = getattr(torch, name)
    return unary(name, _same, per(floating=triton, other="{x}"),
                 lambda x: oracles.identity_unless_float(x, function), doc, accuracy=EXACT)


SAME_DTYPE: tuple[Op, ...] = (
    _rounding("ceil", "tl.ceil({x})", "The smallest integer that is at least x."),
    _rounding("floor", "tl.floor({x})", "The largest integer that is at most x."),
    _rounding("round", "libdevice.nearbyint({x})", "The nearest integer; halves go to even."),
    _rounding("trunc", "libdevice.trunc({x})", "The integer part of x, rounded towards zero."),
    unary("frac", _same,
          per(floating="{x} - libdevice.trunc({x})", integral="{x} - {x}", boolean="{x} ^ {x}"),
          oracles.frac, "The fractional part, x - trunc(x).",
          accuracy=Accuracy(0.0, pieces=pieces.FRACTION)),
    unary("relu", _same, per(boolean="{x}", other="maximum({x}, 0)"), oracles.relu,
          "max(x, 0); nan where x is nan.", accuracy=EXACT),
    unary("silu", rules.same_float_op, "silu({x})", oracles.silu,
          "x * sigmoid(x), also called swish.", complex=functions.silu, accuracy=Accuracy(5),
          instructions=10),
    # Triton's unary minus is 0 - x, which makes 0.0 of 0.0.
    unary("neg", rules.default_op, per(floating="{x} * -1.0", boolean="{x}", integral="-{x}"),
          oracles.neg, "-x.", complex=pairs.each("neg"), operator="neg", accuracy=EXACT),
    unary("abs", rules.abs_op, per(boolean="{x}", other="tl.abs({x})"), oracles.absolute,
          "Absolute value.", complex=pairs.absolute, operator="abs", accuracy=EXACT),
    unary("sign", _same, per(boolean="{x}", other="({x} > 0).to({dtype}) - ({x} < 0).to({dtype})"),
          torch.sign, "The sign of x: -1, 0 or 1; 0 for nan.", accuracy=EXACT),
    unary("logical_not", rules.logical_op, "~{x}", torch.logical_not, "Whether x is zero.",
          complex=pairs.as_cast("logical_not"), accuracy=EXACT),
    unary("bitwise_not", rules.bitwise_op, "~{x}", torch.bitwise_not,
          "Bitwise not; logical not of a Bool.", operator="invert", accuracy=EXACT),
    replace(unary("set", rules.copy_op, "{x}", torch.clone, "A copy.",
                  complex=pairs.each("set"), accuracy=EXACT), printed="cast"),
    unary("segment_set", rules.copy_op, "{x}", torch.clone,
          "A copy, and a hint that a kernel may end here.",
          complex=pairs.each("segment_set"), accuracy=EXACT),
    unary("real", rules.real_op, "{x}", torch.real, "The real part; a copy of a real tensor.",
          complex=pairs.real, accuracy=EXACT),
    unary("imag", rules.imag_op, (), oracles.imag, "The imaginary part of a complex number.",
          complex=pairs.imag),
)

_TRUE = "{x} == {x}"  # of what is never nan
_FALSE = "{x} != {x}"
_INF = "float('inf')"

TESTS: tuple[Op, ...] = (
    unary("isfinite", _test, per(floating=f"tl.abs({{x}}) < {_INF}", other=_TRUE), torch.isfinite,
          "Whether x is neither infinite nor nan.",
          complex=pairs.both("isfinite", "logical_and")),
    unary("isinf", _test, per(floating=f"tl.abs({{x}}) == {_INF}", other=_FALSE), torch.isinf,
          "Whether x is infinite.", complex=pairs.both("isinf", "logical_or")),
    unary("isnan", _test, "{x} != {x}", torch.isnan, "Whether x is nan.",
          complex=pairs.both("isnan", "logical_or")),
    unary("isneginf", _test, per(floating=f"{{x}} == -{_INF}", other=_FALSE), torch.isneginf,
          "Whether x is minus infinity."),
    unary("isposinf", _test, per(floating=f"{{x}} == {_INF}", other=_FALSE), torch.isposinf,
          "Whether x is plus infinity."),
    unary("isreal", _test, per(floating="({x} == {x}) | ({x} != {x})", other=_TRUE), torch.isreal,
          "Whether the imaginary part of x is 0.", complex=pairs.is_real),
    unary("signbit", _test,
          per(single="{x}.to(tl.int32, bitcast=True) < 0",
              double="{x}.to(tl.int64, bitcast=True) < 0", boolean=_FALSE, integral="{x} < 0"),
          torch.signbit, "Whether the sign bit is set: true for -0.0."),
)


def _cast_type(call: Call) -> tuple[Type, ...]:
    """The operand's shape, the dtype that was asked for."""
    dtype = call.attrs["dtype"]
    assert isinstance(dtype, DataType)
    if dtype is DataType.Null:
        raise DefinitionError("cast: expected a dtype, got DataType.Null")
    return (rules.pointwise_type(call, dtype),)


def _cast_oracle(x: object, dtype: DataType) -> torch.Tensor:
    return to_dtype(as_tensor(x), dtype)


CAST = replace(
    pointwise("cast", (Param("arg", Kind.OPERAND), Param("dtype", Kind.DTYPE)), rules.cast_op,
              "{arg}", torch.clone,
              "Conversion to a dtype; floats truncate to integers, any nonzero number is true.",
              complex=pairs.cast, accuracy=EXACT),
    infer=_cast_type,
    oracle=_cast_oracle,
)

ROWS: tuple[Op, ...] = (*FLOAT_FUNCTIONS, *SAME_DTYPE, *TESTS, CAST)
