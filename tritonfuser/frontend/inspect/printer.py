"""``repr(fd)``: a fusion as the Python program that defines it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from ...errors import ArgumentError
from ...ir import (
    DYNAMIC,
    Arg,
    Attr,
    Const,
    Fusion,
    Layout,
    Node,
    Output,
    ScalarType,
    TensorType,
    Value,
)
from ...ir_graph import depth_first
from ...ops import registry
from ...ops.arguments import shown
from ...ops.builder import as_call, missing_results
from ...ops.parameters import REQUIRED, Kind, Param
from ...ops.table import Op
from ...shapes.memory import row_major
from ..record.statements import HasFusion
from ..vocabulary.literals import attr_text, is_extent, is_plain, number_text

INDENT = "    "
_HEADER = "def nvfuser_fusion(fd : FusionDefinition) -> None :"
_LEADING = frozenset(kind for kind in Kind if kind.is_operand) - {Kind.EXTENTS}
"""Kinds of the arguments that are written without a name, while they come first."""


def print_definition(fusion: Fusion) -> str:
    """The program, in a form that ``exec`` turns into a function that records it again.

    Ops come depth first from the outputs, operands left to right; what no output needs is left
    out.
    """
    lines = [f"{value.name} = {_input_text(value)}" for value in fusion.inputs]
    constants: dict[Const, str] = {}
    for node in depth_first(fusion):
        for const in _without_literal(node):
            if const not in constants:
                constants[const] = f"k{len(constants)}"
                lines.append(f"{constants[const]} = {_scalar_text(const)}")
        missing = missing_results(as_call(node), len(node.outs))
        outs = ", ".join([*(out.name for out in node.outs), *["_"] * missing])
        lines.append(f"{outs} = {_call_text(node, constants)}")
    lines += output_calls(fusion.outputs, lambda value: value.name)
    return "\n".join([_HEADER, *(INDENT + line for line in lines or ["pass"])]) + "\n"


def translate_fusion(fusion: HasFusion) -> str:
    """The program that defines a ``Fusion``; for a definition, the same as ``repr(fd)``."""
    if not isinstance(getattr(fusion, "ir", None), Fusion):
        raise ArgumentError(
            "translate_fusion(): incompatible function arguments: expected a Fusion, "
            f"got {shown(fusion)}"
        )
    return print_definition(fusion.ir)


# --- inputs and outputs ----------------------------------------------------------------------


def shape_of(type_: TensorType) -> list[int]:
    """The sizes as ``define_tensor`` takes them: -1 for those known only at run time."""
    return [size if isinstance(size, int) else DYNAMIC for size in type_.shape]


def _input_text(value: Value) -> str:
    type_ = value.type
    if isinstance(type_, ScalarType):
        return f"fd.define_scalar(None, dtype=DataType.{type_.dtype.name})"
    layout = type_.layout or Layout((None,) * type_.rank, row_major(type_.rank))
    order = ""
    if layout.stride_order != row_major(type_.rank):
        order = f", stride_order={list(layout.stride_order)}"
    return (
        f"fd.define_tensor(shape={shape_of(type_)}, contiguity={list(layout.contiguity)}, "
        f"dtype=DataType.{type_.dtype.name}, is_cpu={type_.is_cpu}{order})"
    )


def output_calls(outputs: Sequence[Output], name: Callable[[Value], str]) -> Iterator[str]:
    """The ``add_output`` calls that give these outputs, as text."""
    for pair in output_arguments(outputs):
        yield f"fd.add_output({', '.join(name(value) for value in pair)})"


def output_arguments(outputs: Sequence[Output]) -> Iterator[tuple[Value, ...]]:
    """The arguments of each ``add_output`` call that gives these outputs."""
    written: set[Value] = set()
    for output in outputs:
        value = output.value
        if output.alias_of is not None and value not in written:
            written.add(value)
            yield value, output.alias_of
        if not output.hidden:
            yield (value,)


# --- ops -------------------------------------------------------------------------------------


def arguments(node: Node) -> Iterator[tuple[Param, Arg | Attr]]:
    """The parameters of a node's op, as it is printed, with what was given for them."""
    operands, attrs = iter(node.args), dict(node.attrs)
    for param in printed_op(node).params:
        if param.kind.is_operand:
            yield param, next(operands)
        else:
            yield param, attrs.get(param.name, node.out.dtype)


def printed_op(node: Node) -> Op:
    """The row that a node is printed as: its own, or another one that means the same."""
    op = registry.get(node.op)
    return op if op.printed is None else registry.get(op.printed)


def items(value: Arg | Attr) -> Sequence[object]:
    """The operands of an argument: one, or those of a list."""
    return value if isinstance(value, tuple) else (value,)


def _without_literal(node: Node) -> Iterator[Const]:
    """The constants that take a line of their own."""
    for param, value in arguments(node):
        for item in items(value):
            if isinstance(item, Const) and not _has_literal(param, item):
                yield item


def _has_literal(param: Param, const: Const) -> bool:
    is_size = param.kind in (Kind.EXTENT, Kind.EXTENTS) and is_extent(const)
    return is_size or (is_plain(const) and param.kind is not Kind.VALUE)


def _scalar_text(const: Const) -> str:
    return f"fd.define_scalar({number_text(const.value)}, dtype=DataType.{const.dtype.name})"


def _call_text(node: Node, constants: dict[Const, str]) -> str:
    parts: list[str] = []
    leading = True
    for param, value in arguments(node):
        # Optional tensors, such as a bias, go by name.
        leading = leading and param.kind in _LEADING and not param.keyword_only
        leading = leading and (param.default is REQUIRED or param.kind is not Kind.TENSOR)
        if is_default(param, value):
            leading = False
            continue
        text = _value_text(param, value, constants)
        parts.append(text if leading else f"{param.name}={text}")
    return f"fd.ops.{printed_op(node).name}({', '.join(parts)})"


def is_default(param: Param, value: Arg | Attr) -> bool:
    """Whether leaving the argument out means the same."""
    if param.default is REQUIRED:
        return False
    if isinstance(value, Const):
        return param.default is not None and value == Const.of(param.default)
    return bool(value == param.default) and type(value) is type(param.default)


def _value_text(param: Param, value: Arg | Attr, constants: dict[Const, str]) -> str:
    if not param.kind.is_operand:
        return attr_text(cast("Attr", value))  # as its kind says
    if isinstance(value, tuple):
        return "[" + ", ".join(_value_text(param, item, constants) for item in value) + "]"
    if isinstance(value, Const):
        return number_text(value.value) if _has_literal(param, value) else constants[value]
    return value.name if isinstance(value, Value) else repr(value)
