"""``Where``: a node that chooses between two operands by a mask."""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from ....ir import Const, Node, Operand, Value


class Where(NamedTuple):
    """The operands of ``where``."""

    mask: Value
    yes: Operand
    no: Operand


def where_of(node: Node | None) -> Where | None:
    """The operands of a node; None where it is no ``where`` by a tensor."""
    if node is None or node.op != "where":
        return None
    mask, yes, no = node.args[:3]
    if not isinstance(mask, Value) or not _is_operand(yes) or not _is_operand(no):
        return None
    return Where(mask, yes, no)


def _is_operand(arg: object) -> TypeGuard[Operand]:
    return isinstance(arg, Value | Const)
