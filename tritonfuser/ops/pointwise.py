"""The pointwise rows of the op table, joined: one operand, two, three and more."""

from __future__ import annotations

from . import pointwise_binary, pointwise_ternary, pointwise_unary
from .table import Op

ROWS: tuple[Op, ...] = (*pointwise_unary.ROWS, *pointwise_binary.ROWS, *pointwise_ternary.ROWS)
