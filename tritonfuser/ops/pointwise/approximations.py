"""Rows that passes write: cheaper approximations, ``coarse`` ones for 16-bit results, and products
that are rounded by themselves."""

from __future__ import annotations

import torch

from .. import typing_rules as rules
from ..table import Op, Samples
from .constructors import binary, unary

# A table: a row is one op, not a column of arguments.
# fmt: off

_TAILS = Samples(-9.0, 9.0)
_POSITIVE = Samples(0.1, 99.0)

INTERNAL: tuple[Op, ...] = (
    unary("one_plus_tanh", rules.float_op, "one_plus_tanh({x})", lambda x: 1 + torch.tanh(x),
          "1 + tanh(x), near -1 to as many places as elsewhere.", _TAILS, instructions=4),
    unary("one_plus_erf", rules.float_op, "one_plus_erf({x})", lambda x: torch.erfc(-x),
          "1 + erf(x), coarse.", _TAILS, instructions=14),
    unary("coarse_exp", rules.float_op, "coarse_exp({x})", torch.exp, "e to the power of x.",
          _TAILS, instructions=2),
    unary("coarse_sigmoid", rules.float_op, "coarse_sigmoid({x})", torch.sigmoid,
          "1 / (1 + exp(-x)).", _TAILS, instructions=4),
    unary("coarse_reciprocal", rules.float_op, "1.0 / {x}", torch.reciprocal, "1 / x.", _POSITIVE,
          instructions=8),
    unary("coarse_sqrt", rules.float_op, "tl.sqrt({x})", torch.sqrt, "Square root.", _POSITIVE,
          instructions=4),
    binary("mul_rn", rules.float_op, "mul_rn({lhs}, {rhs})", torch.mul,
           "Product, never contracted with a sum into one rounding."),
    binary("coarse_div", rules.float_op, "{lhs} / {rhs}", torch.div, "Quotient, to 2 ulp.",
           Samples(ranges=(("rhs", 0.5, 10.0),)), instructions=8),
)
"""Rows that only passes write: ``fd.ops`` does not have them."""
