"""Sums and products of 16-bit floats that the compiler computes two at a time.

A tracer records ``a + b`` of 16-bit floats as casts to float32, a sum, and a cast back. LLVM makes
one 16-bit sum of that, which has the same bits, and a sum of 16-bit floats is half an instruction.
Products that are summed are none of them: ``passes/arithmetic/rounded_products.py`` keeps those in
float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import frexp, isfinite

from ...dtypes import REDUCED_FLOATS, DataType
from ...heuristics.bounds import Instructions
from ...ir import Const, Node, Value
from ...ops.builder import op_of
from ...ops.forms import Pointwise
from ...ops.table import View
from .instructions import NONE

PACKED = Instructions(others=0.5)
"""Of two elements, one instruction."""

DIGITS = 8
"""Binary digits of a bfloat16; float16 has more."""

_OPS = frozenset({"add", "sub", "mul"})


def packed_halves(nodes: Sequence[Node]) -> dict[Node, Instructions]:
    """The nodes of a kernel that take fewer instructions by themselves, and how many each."""
    made = {out: node for node in nodes for out in node.outs}
    users = Users(nodes)
    found: dict[Node, Instructions] = {}
    for node in nodes:
        dtype = _stored_as(node, users) if node.op in _OPS else None
        if dtype is not None and all(_is_exact(arg, dtype, made) for arg in node.args):
            found[node] = PACKED
            found.update((user, NONE) for user in users.of(node.out))
    for node in nodes:
        if widened(node) is not None and all(user in found for user in users.of(node.out)):
            found[node] = NONE
    return found


class Users:
    """The nodes that use a value, or a view of it that has the same elements."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._direct: dict[Value, list[Node]] = {}
        for node in nodes:
            for value in node.operands():
                self._direct.setdefault(value, []).append(node)

    def direct(self, value: Value) -> Sequence[Node]:
        """The nodes that have the value itself as an operand."""
        return self._direct.get(value, ())

    def of(self, value: Value) -> Iterator[Node]:
        """The nodes that use the value; those of views of it in the place of these."""
        stack = [value]
        while stack:
            for node in self.direct(stack.pop()):
                if _is_alias(node):
                    stack.append(node.out)
                else:
                    yield node


def _stored_as(node: Node, users: Users) -> DataType | None:
    """The 16-bit dtype that all users cast a result to; None where some use it as it is."""
    dtypes = {narrowed(user) for user in users.of(node.out)}
    return dtypes.pop() if len(dtypes) == 1 else None


def narrowed(node: Node) -> DataType | None:
    """The dtype that a node casts float32 to, if that is a 16-bit float."""
    dtype = node.out.dtype
    return dtype if dtype in REDUCED_FLOATS and _cast_from(node) is DataType.Float else None


def widened(node: Node) -> DataType | None:
    """The dtype that a node casts to float32, if that is a 16-bit float."""
    source = _cast_from(node)
    return source if source in REDUCED_FLOATS and node.out.dtype is DataType.Float else None


def _cast_from(node: Node) -> DataType | None:
    form = op_of(node).form
    if not isinstance(form, Pointwise) or not form.copies:
        return None
    return next((value.dtype for value in node.operands()), None)


def _is_exact(arg: object, dtype: DataType, made: dict[Value, Node]) -> bool:
    """Whether an operand is of a 16-bit dtype, before a cast to float32."""
    if not isinstance(arg, Value):
        return isinstance(arg, Const) and is_short(arg.value)
    node = made.get(arg)
    while node is not None and _is_alias(node):
        node = made.get(next(node.operands()))
    return node is not None and widened(node) is dtype


def is_short(number: object) -> bool:
    """Whether a number has no more binary digits than 16-bit floats have."""
    if not isinstance(number, int | float) or not isfinite(number):
        return False
    digits: float = frexp(number)[0] * 2**DIGITS
    return digits.is_integer()


def _is_alias(node: Node) -> bool:
    form = op_of(node).form
    return isinstance(form, View) and form.alias is not None
