"""A recording in, plain data out: dicts, lists, strings, numbers, True, False and None."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import DefinitionError
from ...ir import Fusion, Node, Output, TensorType, Value
from ...ops.registry import get
from ..record.recording import Recording
from ..vocabulary.location import user_line
from .meshes import mesh_data
from .operands import attr_data, operand_data
from .plain_data import loc_data

VERSION = 1
"""Of the data: raised where older versions of the package could not read it."""


def recording_data(recording: Recording) -> dict[str, Any]:
    """What was recorded; ``restore`` records it again.

    Raises
    ------
    DefinitionError
        It is still being recorded, or an op takes a tensor that is no input.
    """
    refuse_open(recording)
    fusion = recording.ir
    _refuse_undefined(fusion)
    data: dict[str, Any] = {
        "version": VERSION,
        "inputs": [_input_data(recording, value) for value in fusion.inputs],
        "ops": [_node_data(recording, node) for node in fusion.nodes],
        "outputs": [_output_data(output) for output in fusion.outputs],
    }
    meshes = [*mesh_data(recording)]
    return {**data, "meshes": meshes} if meshes else data


def refuse_open(recording: Recording) -> None:
    """Refuse a definition that is still being recorded.

    Raises
    ------
    DefinitionError
        It is.
    """
    if recording.open:
        raise DefinitionError(
            "the definition is still being recorded: only a whole one can be copied, pickled or "
            "written as data",
            loc=user_line(),
            hint="Do it after the `with` block.",
        )


def _refuse_undefined(fusion: Fusion) -> None:
    defined = set(fusion.inputs)
    for node in fusion.nodes:
        missing = next((value for value in node.operands() if value not in defined), None)
        if missing is not None:
            raise DefinitionError(
                f"{node.op}: {missing.name} is no input and no op computes it",
                loc=node.loc,
                hint="Call fusion.add_input(tensor).",
            )
        defined.update(node.outs)


def _input_data(recording: Recording, value: Value) -> dict[str, Any]:
    data: dict[str, Any] = {"name": value.name, "dtype": value.dtype.name}
    if isinstance(value.type, TensorType):
        layout = value.type.layout
        assert layout is not None, f"{value.name} is an input without a layout"
        data |= {
            "shape": [size if isinstance(size, int) else str(size) for size in value.type.shape],
            "contiguity": [*layout.contiguity],
            "stride_order": [*layout.stride_order],
            "is_cpu": value.type.is_cpu,
        }
    return {**data, "loc": loc_data(recording.line_of(value))}


def _node_data(recording: Recording, node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {
        "op": node.op,
        "args": dict(_arguments(node)),
        "results": [out.name for out in node.outs],
        "loc": loc_data(node.loc),
    }
    if node.out in recording.written_axes:
        data["written_dims"] = attr_data(recording.written_axes[node.out])
    return data


def _arguments(node: Node) -> Iterator[tuple[str, Any]]:
    operands, attrs = iter(node.args), dict(node.attrs)
    for param in get(node.op).params:
        if param.kind.is_operand:
            yield param.name, operand_data(next(operands))
        else:
            yield param.name, attr_data(attrs[param.name])


def _output_data(output: Output) -> dict[str, Any]:
    alias = None if output.alias_of is None else output.alias_of.name
    return {"value": output.value.name, "alias_of": alias, "hidden": output.hidden}
