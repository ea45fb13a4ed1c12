"""Rows of the parts of a softmax, written by a pass where it finds one."""

from __future__ import annotations

import torch

from .. import typing_rules as rules
from ..table import Op, Samples
from .constructors import binary, unary

INTERNAL: tuple[Op, ...] = (
    unary(
        "exp_below",
        rules.float_op,
        "exp_below({x})",
        torch.exp,
        "e to the power of a number that is not above 0.",
        Samples(-20.0, 0.0),
        instructions=2,
    ),
    binary(
        "share",
        rules.default_op,
        "share({lhs}, {rhs})",
        torch.div,
        "lhs / rhs for 0 <= lhs <= 1 <= rhs.",
        Samples(ranges=(("lhs", 0.0, 1.0), ("rhs", 1.0, 100.0))),
        instructions=15,
    ),
)
"""They are no members of ``fd.ops``."""
