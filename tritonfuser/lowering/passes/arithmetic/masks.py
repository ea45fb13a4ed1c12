"""Choices between two operands by a mask, as nodes of a fusion."""

from __future__ import annotations

import math
from typing import NamedTuple

from ....ir import Const, Node, Operand, Value


class Choice(NamedTuple):
    """The operands of ``where``."""

    mask: Value
    yes: Operand
    no: Operand


def choice_of(node: Node | None) -> Choice | None:
    """What a node chooses; None where it is no ``where`` by a tensor."""
    if node is None or node.op != "where":
        return None
    mask, yes, no = node.args[:3]
    if not isinstance(mask, Value) or not _is_operand(yes) or not _is_operand(no):
        return None
    return Choice(mask, yes, no)  # type: ignore[arg-type]  # tested above


def _is_operand(arg: object) -> bool:
    return isinstance(arg, Value | Const)


def is_positive_zero(operand: object) -> bool:
    """Whether an operand is the constant 0.0, and not -0.0."""
    if not isinstance(operand, Const) or isinstance(operand.value, complex):
        return False
    return operand.value == 0 and math.copysign(1.0, float(operand.value)) > 0
