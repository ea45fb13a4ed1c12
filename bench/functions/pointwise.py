"""Pointwise nodes in torch: operands cast by the op's typing rule, then one expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tritonfuser.dtypes import Category, DataType
from tritonfuser.ir import Arg, Const, Node, Value
from tritonfuser.ops import registry
from tritonfuser.ops.forms import Pointwise, Typing
from tritonfuser.ops.typing_rules import operand_types

from .line import Line, Text, literal, torch_name, unwritable

_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "truediv": "/",
    "pow": "**",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "logical_and": "&",
    "logical_or": "|",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_RENAMED = {"set": "clone", "segment_set": "clone", "mod": "fmod", "silu": "nn.functional.silu"}
"""torch's name of an op, where it differs."""
_FLOATS_ONLY = frozenset({"div", "fmod", "frac", "lerp", "mod", "pow", "remainder", "round"})
"""Ops that torch rejects for integers, or computes differently."""
_QUOTIENTS = frozenset({"div", "fmod", "mod", "remainder"})
"""Those of them that torch computes alike for integers, but where it divides by zero."""
_NO_BOOLS = frozenset(
    {"abs", "addcmul", "ceil", "clamp", "floor", "neg", "relu", "sign", "sub", "threshold", "trunc"}
)
_DIFFERENT = frozenset({"addcmul", "bitwise_left_shift", "bitwise_right_shift", "gcd", "lerp"})
"""Ops whose torch function of that name has other operands or other edge cases."""
_SHIFTS = frozenset({"bitwise_left_shift", "bitwise_right_shift"})
_TENSORS_ONLY = frozenset({"atan2", "hypot", "maximum", "minimum", "nextafter", "fmod", "mod"})
"""Ops for which torch rejects Python numbers, or rejects them on the left."""
_PYTHON_TYPES: dict[DataType, Callable[[Any], bool | float]] = {
    DataType.Bool: bool,
    DataType.Double: float,
    DataType.Float: float,
}


def pointwise(line: Line) -> str:
    """The expression of a pointwise node.

    Raises
    ------
    DefinitionError
        torch has no such function, or it computes something else for these dtypes.
    """
    node = line.node
    if node.op == "cast":
        return _cast(line)
    given = [
        (arg, text)
        for arg, text in zip(node.args, line.operands.values(), strict=True)
        if arg is not None
    ]
    form = registry.get(node.op).form
    assert isinstance(form, Pointwise)
    typing = form.typing(operand_types([arg for arg, _ in given]))
    _refuse(node, typing)
    texts = [
        _as(arg, text, dtype) for (arg, text), dtype in zip(given, typing.operands, strict=True)
    ]
    for place in _numbers_to_wrap(node, [arg for arg, _ in given], typing):
        dtype = torch_name(typing.operands[place])
        texts[place] = f"torch.full((), {texts[place]}, dtype={dtype}, {line.place})"
    if node.op == "div" and _is_safe_quotient(node, typing.operands[-1]):
        found = f'torch.div({", ".join(texts)}, rounding_mode="trunc")'
    else:
        found = _applied(node, texts)
    if typing.computed is typing.result:
        return found
    return f"({found}).to({torch_name(typing.result)})"


def _cast(line: Line) -> str:
    """A cast; to the dtype that a tensor has it is ``set``, a copy."""
    arg, dtype = line.node.args[0], line.node.attr("dtype")
    if isinstance(arg, Value) and arg.is_tensor and arg.dtype is dtype:
        return f"{line['arg']}.clone()"
    return f"{line['arg']}.to({torch_name(dtype)})"


def _refuse(node: Node, typing: Typing) -> None:
    dtype = typing.operands[-1]
    category = dtype.info.category
    integral = category < Category.FLOAT and node.op in _FLOATS_ONLY
    integral = integral and not _is_safe_quotient(node, dtype)
    boolean = category is Category.BOOL and node.op in _NO_BOOLS
    different = node.op in _DIFFERENT and not _is_safe_shift(node, dtype)
    if integral or boolean or different:
        raise unwritable(node, f"of {dtype}")


def _is_safe_quotient(node: Node, dtype: DataType) -> bool:
    """Whether a node divides integers by a number: torch traps only where it divides by zero."""
    divisor = node.args[-1]
    is_number = isinstance(divisor, Const) and divisor.value != 0
    return node.op in _QUOTIENTS and dtype.info.category is Category.INT and is_number


def _is_safe_shift(node: Node, dtype: DataType) -> bool:
    """Whether a node shifts by a number of bits that its integers have."""
    by = node.args[-1]
    return node.op in _SHIFTS and isinstance(by, Const) and by.value in range(dtype.info.bits)


def _as(arg: Arg, text: Text, dtype: DataType) -> str:
    """An operand in the op's compute dtype: numbers are written out, tensors are cast."""
    assert isinstance(text, str)
    if isinstance(arg, Const):
        kind = _PYTHON_TYPES.get(dtype)
        return literal(arg.value if kind is None else kind(arg.value))
    if isinstance(arg, Value) and arg.is_tensor and arg.dtype is not dtype:
        return f"{text}.to({torch_name(dtype)})"
    return text


def _numbers_to_wrap(node: Node, args: Sequence[Arg], typing: Typing) -> list[int]:
    """Indices of the operands that must become 0-dim tensors.

    From Python floats alone torch would make a float32.
    """
    numbers = [i for i, arg in enumerate(args) if not (isinstance(arg, Value) and arg.is_tensor)]
    if node.op in _TENSORS_ONLY:
        return numbers
    last = typing.operands[-1]
    tensors = [dtype for i, dtype in enumerate(typing.operands) if i not in numbers]
    lost = last.info.category is Category.FLOAT and last not in tensors
    return numbers[-1:] if lost else []


def _applied(node: Node, texts: Sequence[str]) -> str:
    if node.op in _OPERATORS:
        return f" {_OPERATORS[node.op]} ".join(texts)
    name = _RENAMED.get(node.op, node.op)
    if node.op not in _RENAMED and not hasattr(torch, name):
        raise unwritable(node)
    return f"torch.{name}({', '.join(texts)})"
