"""Rows of the parts of a softmax, written by a pass where it finds one."""

from __future__ import annotations

import torch

from .. import typing_rules as rules
from ..table import Op, Samples
from .constructors import binary, unary

INTERNAL: tuple[Op, ...] = (
    unary(
        "exp_nonpositive",
        rules.float_op,
        "exp_nonpositive({x})",
        torch.exp,
        "exp(x) for x <= 0, by the approximate exp2 of the hardware in float32.",
        Samples(-20.0, 0.0),
        instructions=2,
    ),
    binary(
        "div_by_sum",
        rules.default_op,
        "div_by_sum({lhs}, {rhs})",
        torch.div,
        "lhs / rhs for 0 <= lhs <= 1 <= rhs.",
        Samples(ranges=(("lhs", 0.0, 1.0), ("rhs", 1.0, 100.0))),
        instructions=15,
    ),
)
"""Rows that only passes write: ``fd.ops`` does not have them."""
