"""``PYTORCH_NVFUSER_DUMP=python_definition``: a fusion as the first frontend printed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ...ir import Arg, Attr, Const, Fusion, Layout, Node, ScalarType, Value
from ...ir_graph import live_nodes
from ...ops.builder import as_call, missing_results
from ...ops.parameters import Kind, Param
from ...shapes.memory import row_major
from ..vocabulary.literals import attr_text, is_plain, number_text
from .printer import INDENT, arguments, items, output_calls, printed_op, shape_of


def print_legacy_definition(
    fusion: Fusion, number: int, written_axes: Mapping[Value, Attr] | None = None
) -> str:
    """The program as ``nvfuser_fusion_id{number}``: T and S count tensors and scalars together.

    Arguments are written by name, constants have lines of their own after the inputs. Axes of
    reductions are as the user wrote them, where ``written_axes`` says so of a result.
    """
    return _LegacyPrinter(written_axes or {}).text(fusion, number)


class _LegacyPrinter:
    """Names of one program, in the order they are needed."""

    def __init__(self, written_axes: Mapping[Value, Attr]) -> None:
        self._names: dict[Value | Const, str] = {}
        self._axes = written_axes

    def text(self, fusion: Fusion, number: int) -> str:
        nodes = live_nodes(fusion.nodes, [out.value for out in fusion.outputs])
        lines = [f"{self._name(value)} = {_input_text(value)}" for value in fusion.inputs]
        constants = dict.fromkeys(
            item
            for node in nodes
            for _, value in arguments(node)
            for item in items(value)
            if isinstance(item, Const)
        )
        lines += [f"{self._name(const)} = {_constant_text(const)}" for const in constants]
        for node in nodes:
            call = self._call_text(node)
            missing = missing_results(as_call(node), len(node.outs))
            outs = [*(self._name(out) for out in node.outs), *["_"] * missing]
            lines.append(f"{', '.join(outs)} = {call}")
        lines += output_calls(fusion.outputs, self._name)
        header = f"def nvfuser_fusion_id{number}(fd : FusionDefinition) -> None :"
        return "\n".join([header, *(INDENT + line for line in lines or ["pass"])]) + "\n"

    def _name(self, value: Value | Const) -> str:
        is_tensor = isinstance(value, Value) and value.is_tensor
        return self._names.setdefault(value, f"{'T' if is_tensor else 'S'}{len(self._names)}")

    def _call_text(self, node: Node) -> str:
        op = printed_op(node)
        parts: list[str] = []
        leading = True
        for param, value in arguments(node):
            leading = leading and value is not None and param.kind in (Kind.TENSOR, Kind.OPERAND)
            if value is not None:
                axes = op.category == "reduction" and param.name == "dims"
                name = "axes" if axes else param.name
                text = self._value_text(param, self._as_written(node) if axes else value)
                parts.append(text if leading else f"{name}={text}")
        return f"fd.ops.{op.name}({', '.join(parts)})"

    def _as_written(self, node: Node) -> Attr:
        """The axes of a reduction from the user's call, if they are those of the node."""
        axes, written = node.attr("dims"), self._axes.get(node.out)
        (operand,) = node.operands()
        if not isinstance(written, tuple):
            return axes
        same = tuple(sorted(axis % operand.tensor.rank for axis in written)) == axes
        return written if same else axes

    def _value_text(self, param: Param, value: Arg | Attr) -> str:
        if not param.kind.is_operand:
            return attr_text(cast("Attr", value))  # as its kind says
        if isinstance(value, tuple):
            return "[" + ", ".join(self._value_text(param, item) for item in value) + "]"
        assert isinstance(value, Value | Const)
        return self._name(value)


def _input_text(value: Value) -> str:
    type_ = value.type
    if isinstance(type_, ScalarType):
        return f"fd.define_scalar(dtype=DataType.{type_.dtype.name})"
    sizes = shape_of(type_)
    layout = type_.layout or Layout((None,) * type_.rank, row_major(type_.rank))
    rank = type_.rank
    in_memory = sorted(range(rank), key=lambda d: -layout.stride_order[d])
    # This frontend wrote True at dims of size 1; None is left at stretched ones.
    flags = [
        True if flag is None and sizes[dim] == 1 else flag
        for dim, flag in zip(in_memory, layout.contiguity, strict=True)
    ]
    parts = [f"symbolic_sizes={sizes}", f"contiguous={flags}", f"dtype=DataType.{type_.dtype.name}"]
    if type_.is_cpu:
        parts.append("is_cpu=True")
    if layout.stride_order != row_major(rank):
        parts.append(f"stride_order={list(layout.stride_order)}")
    return f"fd.define_tensor({', '.join(parts)})"


def _constant_text(const: Const) -> str:
    if is_plain(const):
        return f"fd.define_constant({number_text(const.value)})"
    return f"fd.define_scalar({number_text(const.value)}, dtype=DataType.{const.dtype.name})"
