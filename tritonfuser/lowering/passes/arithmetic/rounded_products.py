"""Fusion in, the same Fusion with products that are rounded before they are summed.

``cast(a * b, BFloat16) + c``, cast to BFloat16, is a product and a sum of 16 bits each for LLVM,
which has the same bits. Its code generators contract these into one fused multiply-add then, and
skip the rounding that the definition asks for.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....dtypes import DataType
from ....ir import Const, Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.table import View
from ...access.packed_halves import Users, is_short, narrowed, widened
from ..rewriting import is_copy, is_float, rewritten, with_number

_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0, "truediv": 1.0, "pow": 1.0}
"""The number with which an op gives its operand, or the negative of it. These are left to LLVM."""


def round_products(fusion: Fusion) -> Fusion:
    """``cast(mul(a, b), Half) + c`` -> ``cast(mul_rn(a, b), Half) + c``, where all are Half."""
    users = Users(fusion.nodes)

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        if node.op != "mul" or not is_float(node):
            return None
        rounded = [user for user in users.of(node.out) if narrowed(user) is not None]
        if not any(_is_contracted(node, user, users, fusion.producers) for user in rounded):
            return None
        made: Value = builder.call("mul_rn", *node.args)
        return made

    return rewritten(fusion, rewrite)


def _is_contracted(product: Node, cast: Node, users: Users, makers: Mapping[Value, Node]) -> bool:
    """Whether a product of 16-bit floats that a cast rounds may be contracted with a sum."""
    dtype = cast.out.dtype
    exact = all(_may_be_exact(arg, dtype, makers) for arg in product.args)
    return exact and _is_summed(cast.out, dtype, users)


def _may_be_exact(arg: object, dtype: DataType, makers: Mapping[Value, Node]) -> bool:
    """Whether an operand may be of a 16-bit dtype, before casts, views and changes of sign."""
    if not isinstance(arg, Value):
        return isinstance(arg, Const) and is_short(arg.value)
    stack, seen = [arg], {arg}
    while stack:
        node = makers.get(stack.pop())
        source = None if node is None else widened(node)
        if source is dtype:
            return True
        if node is not None and source is None and _passes_on(node):
            found = [value for value in node.operands() if value.is_tensor and value not in seen]
            seen.update(found)
            stack += found
    return False


def _is_summed(value: Value, dtype: DataType, users: Users) -> bool:
    """Whether a value, or its negative, is an operand of a sum that is rounded to its dtype."""
    stack, seen = [value], {value}
    while stack:
        for user in users.of(stack.pop()):
            is_sum = user.op in ("add", "sub")
            if is_sum and any(narrowed(after) is dtype for after in users.of(user.out)):
                return True
            if (is_copy(user) or _passes_on(user)) and user.out not in seen:
                seen.add(user.out)
                stack.append(user.out)
    return False


def _passes_on(node: Node) -> bool:
    """Whether elements of a node are those of operands, or the negatives of these.

    A view that pieces tensors together is one of them in a kernel that stores it box by box.
    """
    found = with_number(node, tuple(_NEUTRAL))
    is_signed = node.op == "neg" or (found is not None and abs(found[1]) == _NEUTRAL[node.op])
    return is_signed or isinstance(as_call(node).op.form, View)
