"""Plain data in, a recording out: every op is recorded again through its row of the op table.

Data may come from anywhere. Nothing in it is executed, imported or opened; a name in it is looked
up among the ops, the dtypes and the values before it, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...dtypes import DataType
from ...errors import DefinitionError, TritonFuserError
from ...ir import DYNAMIC, Const, Node, Output, ScalarType, Value
from ...ops.arguments import bind
from ...ops.builder import GraphBuilder
from ...ops.parameters import Kind
from ...ops.registry import OPS
from ...ops.table import Call, Op
from ...symbolic.extents import SymbolicExtent
from ..inspect.printer import output_arguments
from ..record.handles import handle_of
from ..record.layouts import as_sizes, tensor_type
from ..record.recording import Recording, unknown_extent
from ..vocabulary.location import user_line
from . import plain_data
from .encode import VERSION
from .meshes import restore_mesh
from .operands import argument_from, attr_from

_NAME = re.compile(r"(tv|c)(0|[1-9][0-9]{0,8})")
_SYMBOL = re.compile(r"i(0|[1-9][0-9]{0,8})")
_TENSOR = ("name", "dtype", "shape", "contiguity", "stride_order", "is_cpu", "loc")
_SCALAR = ("name", "dtype", "loc")


def restore(recording: Recording, given: Any) -> None:
    """Record into an empty recording what ``recording_data`` described.

    Raises
    ------
    DefinitionError
        The data is no definition, or an op in it is unknown or does not take its arguments.
    """
    try:
        data = plain_data.record(
            given, "the data", ("version", "inputs", "ops", "outputs"), ["meshes"]
        )
        _check_version(data["version"])
        Restoring(recording).run(data)
    except TritonFuserError as error:
        raise error.located(user_line()) from error.__cause__


def _check_version(given: Any) -> None:
    version = plain_data.integer(given, "version")
    if not 1 <= version <= VERSION:
        raise DefinitionError(
            f"from_dict: the data is of version {version}, this tritonfuser reads up to {VERSION}",
            hint="Write it with an older tritonfuser, or read it with a newer one.",
        )


class Restoring:
    """One recording being filled.

    Attributes
    ----------
    values : dict
        What is defined so far, by name.
    """

    def __init__(self, recording: Recording) -> None:
        self.values: dict[str, Value] = {}
        self._recording = recording
        self._builder = GraphBuilder()
        self._symbols: set[str] = set()

    def run(self, data: Mapping[str, Any]) -> None:
        """Inputs, ops, outputs, meshes."""
        recording = self._recording
        for place, given in enumerate(plain_data.items(data["inputs"], "inputs")):
            self._input(given, f"inputs[{place}]")
        for place, given in enumerate(plain_data.items(data["ops"], "ops")):
            self._op(given, f"ops[{place}]")
        names = [[0], [0]]
        for value in self.values.values():
            names[value.is_tensor].append(value.index + 1)
        self._builder.number_from(max(names[True]), max(names[False]))
        symbols = 1 + max((int(name[1:]) for name in self._symbols), default=-1)
        recording.adopt(self._builder, symbols)
        with _opened(recording):
            self._outputs(data["outputs"])
            for place, given in enumerate(plain_data.items(data.get("meshes", []), "meshes")):
                restore_mesh(recording, given, self.values, f"meshes[{place}]")

    # --- inputs ----------------------------------------------------------------------------

    def _input(self, given: Any, where: str) -> None:
        is_tensor = isinstance(given, dict) and "shape" in given
        data = plain_data.record(given, where, _TENSOR if is_tensor else _SCALAR)
        name = self._new_name(data["name"], "tv" if is_tensor else "c", f"{where}.name")
        dtype = plain_data.dtype(data["dtype"], f"{where}.dtype")
        if dtype is DataType.Null:
            plain_data.refuse(f"{where}.dtype", "the dtype of an input", dtype.name)
        type_ = self._tensor_type(data, dtype, where) if is_tensor else ScalarType(dtype)
        value = Value(_number_of(name), type_)
        self.values[name] = value
        self._builder.inputs.append(value)
        line = plain_data.loc(data["loc"], f"{where}.loc")
        if line is not None:
            self._recording.set_line(value, line)

    def _tensor_type(self, data: Mapping[str, Any], dtype: DataType, where: str) -> Any:
        shape = plain_data.items(data["shape"], f"{where}.shape")
        symbols = iter([self._symbol(size, where) for size in shape if isinstance(size, str)])
        sizes = [DYNAMIC if isinstance(size, str) else size for size in shape]
        for size in sizes:
            plain_data.integer(size, f"{where}.shape")
        if DYNAMIC in [size for size in shape if not isinstance(size, str)]:
            plain_data.refuse(f"{where}.shape", "the name of an extent in place of -1", [*shape])
        contiguity = plain_data.items(data["contiguity"], f"{where}.contiguity")
        is_cpu = plain_data.flag(data["is_cpu"], f"{where}.is_cpu")
        given = plain_data.items(data["stride_order"], f"{where}.stride_order")
        order = [plain_data.integer(item, f"{where}.stride_order") for item in given]
        with plain_data.taken_at(where):
            known = as_sizes(sizes, "shape")
            return tensor_type(known, contiguity, dtype, is_cpu, order, lambda: next(symbols))

    def _symbol(self, name: str, where: str) -> SymbolicExtent:
        if not _SYMBOL.fullmatch(name) or name in self._symbols:
            plain_data.refuse(f"{where}.shape", "extents i0, i1, ..., each once", name)
        self._symbols.add(name)
        return unknown_extent(int(name[1:]))

    def _new_name(self, given: Any, letters: str, where: str) -> str:
        found = _NAME.fullmatch(plain_data.text(given, where))
        if found is None or found[1] != letters or given in self.values:
            plain_data.refuse(where, f"a new name {letters}0, {letters}1, ...", given)
        return str(given)

    # --- ops -------------------------------------------------------------------------------

    def _op(self, given: Any, where: str) -> None:
        data = plain_data.record(given, where, ("op", "args", "results", "loc"), ["written_dims"])
        op = _op_of(data["op"], where)
        where = f"{where} ({op.name})"
        params = {param.name: param for param in op.params}
        args = plain_data.record(data["args"], f"{where}.args", (), [*params])
        arguments = {
            name: argument_from(params[name], item, self.values, f"{where}.{name}")
            for name, item in args.items()
        }
        names = plain_data.items(data["results"], f"{where}.results")
        node = self._recorded(op, arguments, names, data["loc"], where)
        self.values.update({out.name: out for out in node.outs})
        if "written_dims" in data:
            written = attr_from(Kind.DIMS, data["written_dims"], f"{where}.written_dims")
            self._recording.written_axes[node.out] = written

    def _recorded(
        self, op: Op, arguments: dict[str, Any], names: Any, loc: Any, where: str
    ) -> Node:
        builder = self._builder
        for name in names:
            if not _NAME.fullmatch(plain_data.text(name, where)) or name in self.values:
                plain_data.refuse(f"{where}.results", "new names tv0, c0, ...", [*names])
        starts = [[_number_of(n) for n in names if n.startswith(kind)] for kind in ("tv", "c")]
        builder.number_from(*(min(numbers, default=0) for numbers in starts))
        builder.loc = plain_data.loc(loc, f"{where}.loc")
        before = len(builder.nodes)
        with plain_data.taken_at(where):
            builder.call(op.name, **arguments)
        made = builder.nodes[before:]
        if len(made) != 1 or not _is_call(made[0], bind(op, (), arguments)):
            plain_data.refuse(where, "arguments as the op is recorded with", dict(arguments))
        results = [out.name for out in made[0].outs]
        if results != [*names]:
            plain_data.refuse(f"{where}.results", f"{results}", [*names])
        return made[0]

    # --- outputs ---------------------------------------------------------------------------

    def _outputs(self, given: Any) -> None:
        recording = self._recording
        wanted = [
            self._output(item, f"outputs[{place}]")
            for place, item in enumerate(plain_data.items(given, "outputs"))
        ]
        ops = recording.ir.nodes
        with plain_data.taken_at("outputs"):
            for values in output_arguments(wanted):
                recording.add_output(*(handle_of(recording, value) for value in values))
        if [*recording.ir.outputs] != wanted or recording.ir.nodes != ops:
            plain_data.refuse("outputs", "outputs as they are recorded", given)

    def _output(self, given: Any, where: str) -> Output:
        data = plain_data.record(given, where, ("value", "alias_of", "hidden"))
        value, alias = (self._tensor(data[key], f"{where}.{key}") for key in ("value", "alias_of"))
        if value is None:
            plain_data.refuse(f"{where}.value", "the name of a tensor", value)
        return Output(value, alias, plain_data.flag(data["hidden"], f"{where}.hidden"))

    def _tensor(self, given: Any, where: str) -> Value | None:
        if given is None:
            return None
        found = self.values.get(plain_data.text(given, where))
        if found is None or not found.is_tensor:
            plain_data.refuse(where, "the name of a tensor", given)
        return found


def _op_of(given: Any, where: str) -> Op:
    name = plain_data.text(given, f"{where}.op")
    found = OPS.get(name)
    if found is None:
        raise DefinitionError(
            f"from_dict: {where}: there is no op {name[:60]!r}",
            hint="The data may be of a newer tritonfuser; help(FusionDefinition.Operators) lists "
            "the ops of this one.",
        )
    return found


def _is_call(node: Node, call: Call) -> bool:
    """Whether the node has this op and these arguments.

    A constant may be recorded as another one: bounds of ``clamp`` beyond an integer dtype, which
    older versions wrote as they were given.
    """
    if (node.op, dict(node.attrs)) != (call.op.name, call.attrs):
        return False
    if len(node.args) != len(call.args):
        return False
    pairs = zip(node.args, call.args, strict=True)
    return all(a == b or (isinstance(a, Const) and isinstance(b, Const)) for a, b in pairs)


def _number_of(name: str) -> int:
    return int(name.lstrip("tvc"))


@contextmanager
def _opened(recording: Recording) -> Iterator[None]:
    recording.open += 1
    try:
        yield
    finally:
        recording.open -= 1
