"""Pointwise rows of two operands: arithmetic, comparisons, logic, bits."""

from __future__ import annotations

import torch

from .. import typing_rules as rules
from ..accuracy import CHOICE, COARSE, Accuracy
from ..complex import functions, pairs
from ..parameters import Kind, Param
from ..table import Op, Samples
from . import oracles, pieces
from .constructors import binary, per, pointwise

# A table: a row is one op, not a column of arguments.
# fmt: off

_default = rules.default_op
_compare = rules.compare_op
_NOT_ZERO = Samples(ranges=(("rhs", 0.5, 10.0),))
_BY_ONE = (("rhs", "1.0"),)
_SHIFTS = Samples(ranges=(("rhs", 0.0, 40.0),))

ARITHMETIC: tuple[Op, ...] = (
    binary("add", _default, per(boolean="{lhs} | {rhs}", other="{lhs} + {rhs}"), oracles.add,
           "Sum; logical or of Bools.", complex=pairs.each("add"), operator="add"),
    binary("sub", _default, per(boolean="{lhs} ^ {rhs}", other="{lhs} - {rhs}"), oracles.sub,
           "Difference; exclusive or of Bools.", complex=pairs.each("sub"), operator="sub"),
    binary("mul", _default, per(boolean="{lhs} & {rhs}", other="{lhs} * {rhs}"), torch.mul,
           "Product; logical and of Bools.", complex=pairs.mul, operator="mul"),
    binary("pow", _default,
           per(double="libdevice.pow({lhs}, {rhs})", floating="pow_float({lhs}, {rhs})",
               integral="int_pow({lhs}, {rhs})", boolean="{lhs} | ~{rhs}"), oracles.power,
           "Power; an integer to a negative power is 0 unless the base is 1 or -1.",
           Samples(ranges=(("lhs", 0.1, 6.0), ("rhs", -4.0, 4.0))),
           constants=((1, "{lhs}"), (2, "{lhs} * {lhs}"), (3, "{lhs} * {lhs} * {lhs}"),
                      (0.5, "square_root({lhs})"), (-0.5, "libdevice.rsqrt({lhs})"),
                      (-1, "inverse_power({lhs}, 1)"), (-2, "inverse_power({lhs}, 2)")),
           by_number=per(
               double="power_by_number(libdevice.pow({lhs}, {rhs}), {lhs}, {rhs})",
               floating="power_by_number(pow_float({lhs}, {rhs}), {lhs}, {rhs})"),
           oracle_by_number=oracles.power_by_number,
           complex=functions.power, operator="pow", accuracy=Accuracy(2), instructions=84),
    binary("minimum", _default, per(boolean="{lhs} & {rhs}", other="minimum({lhs}, {rhs})"),
           torch.minimum, "The smaller operand; nan where either is nan.", accuracy=CHOICE),
    binary("maximum", _default, per(boolean="{lhs} | {rhs}", other="maximum({lhs}, {rhs})"),
           torch.maximum, "The larger operand; nan where either is nan.", accuracy=CHOICE),
    binary("div", _default,
           per(single="div_rounded({lhs}, {rhs})", double="{lhs} / {rhs}",
               integral="int_div({lhs}, {rhs})", boolean="{lhs} | ~{rhs}"), oracles.div,
           "Quotient; truncated towards zero for integers.", _NOT_ZERO, complex=pairs.div,
           accuracy=Accuracy(0.5, coarse=COARSE), instructions=10, masked=_BY_ONE),
    binary("truediv", rules.float_op,
           per(single="div_rounded({lhs}, {rhs})", double="{lhs} / {rhs}"), torch.div,
           "Quotient; a Float for integers.", _NOT_ZERO, complex=pairs.div, operator="truediv",
           accuracy=Accuracy(0.5, coarse=COARSE), instructions=10, masked=_BY_ONE),
    binary("atan2", rules.float_op, "libdevice.atan2({lhs}, {rhs})", torch.atan2,
           "Angle of the point (rhs, lhs), in radians.", accuracy=Accuracy(3), instructions=48),
    *(
        binary(name, _default,
               per(floating="libdevice.fmod({lhs}, {rhs})", integral="int_mod({lhs}, {rhs})",
                   boolean="~{rhs} & ({lhs} | ~{lhs})"), oracles.fmod, doc, _NOT_ZERO,
               accuracy=Accuracy(0.0, pieces=pieces.TRUNCATED), instructions=10)
        for name, doc in (
            ("fmod", "Remainder with the sign of the dividend."),
            ("mod", "Remainder with the sign of the dividend, as C's %."),
        )
    ),
    binary("remainder", _default,
           per(floating="float_remainder({lhs}, {rhs})", integral="int_remainder({lhs}, {rhs})",
               boolean="~{rhs} & ({lhs} | ~{lhs})"), oracles.remainder,
           "Remainder with the sign of the divisor, as Python's %.", _NOT_ZERO, operator="mod",
           accuracy=Accuracy(1, pieces=pieces.FLOORED), instructions=16),
    binary("nextafter", rules.nextafter_op, "libdevice.nextafter({lhs}, {rhs})", torch.nextafter,
           "The next floating-point number after lhs towards rhs.",
           accuracy=Accuracy(1, of_dtype=True), instructions=7),
    binary("gcd", rules.integer_op, "gcd({lhs}, {rhs})", oracles.gcd, "Greatest common divisor."),
    binary("hypot", rules.float_op, "libdevice.hypot({lhs}, {rhs})", torch.hypot,
           "sqrt(lhs ** 2 + rhs ** 2), without overflow of the squares.", accuracy=Accuracy(3),
           instructions=20),
    pointwise("complex", (Param("lhs", Kind.VALUE), Param("rhs", Kind.VALUE)), rules.complex_op, (),
              torch.complex, "The complex number with a given real and imaginary part.",
              complex=pairs.from_parts),
)

COMPARISONS: tuple[Op, ...] = (
    binary("eq", _compare, "{lhs} == {rhs}", torch.eq, "Whether lhs equals rhs.",
           complex=pairs.equal, operator="eq"),
    binary("ne", _compare, "{lhs} != {rhs}", torch.ne, "Whether lhs differs from rhs.",
           complex=pairs.differ, operator="ne"),
    binary("lt", _compare, "{lhs} < {rhs}", torch.lt, "Whether lhs is less than rhs.",
           operator="lt"),
    binary("le", _compare, "{lhs} <= {rhs}", torch.le, "Whether lhs is at most rhs.",
           operator="le"),
    binary("gt", _compare, "{lhs} > {rhs}", torch.gt, "Whether lhs is greater than rhs.",
           operator="gt"),
    binary("ge", _compare, "{lhs} >= {rhs}", torch.ge, "Whether lhs is at least rhs.",
           operator="ge"),
)

BITS: tuple[Op, ...] = (
    binary("logical_and", rules.logical_op, "{lhs} & {rhs}", torch.logical_and,
           "Whether both operands are nonzero.", complex=pairs.as_cast("logical_and")),
    binary("logical_or", rules.logical_op, "{lhs} | {rhs}", torch.logical_or,
           "Whether at least one operand is nonzero.", complex=pairs.as_cast("logical_or")),
    binary("bitwise_and", rules.bitwise_op, "{lhs} & {rhs}", torch.bitwise_and,
           "Bitwise and; logical and of Bools.", operator="and"),
    binary("bitwise_or", rules.bitwise_op, "{lhs} | {rhs}", torch.bitwise_or,
           "Bitwise or; logical or of Bools.", operator="or"),
    binary("bitwise_xor", rules.bitwise_op, "{lhs} ^ {rhs}", torch.bitwise_xor,
           "Bitwise exclusive or; logical exclusive or of Bools.", operator="xor"),
    binary("bitwise_left_shift", rules.integer_op, "shift_left({lhs}, {rhs})", oracles.shift_left,
           "Left shift; 0 where the shift is at least the number of bits.", _SHIFTS,
           operator="lshift"),
    binary("bitwise_right_shift", rules.integer_op, "shift_right({lhs}, {rhs})",
           oracles.shift_right, "Arithmetic right shift.", _SHIFTS, operator="rshift"),
    binary("logical_right_shift", rules.integer_op, "shift_right_logical({lhs}, {rhs})",
           oracles.shift_right_logical,
           "Logical right shift; 0 where the shift is at least the number of bits.",
           _SHIFTS),
)

ROWS: tuple[Op, ...] = (*ARITHMETIC, *COMPARISONS, *BITS)
