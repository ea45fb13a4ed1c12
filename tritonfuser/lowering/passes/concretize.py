"""Fusion and input signature in, the same Fusion with every extent a number out.

Types are inferred anew from the actual sizes, so broadcasts, empty and size-1 extents come out as
they are in this run; sizes of dims and the scalars that shapes depend on become constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Union

from ...dtypes import DataType
from ...errors import DefinitionError, InputShapeError, TritonFuserError
from ...ir import (
    Arg,
    Const,
    Dim,
    Fusion,
    Layout,
    Node,
    Number,
    Operand,
    Output,
    ScalarType,
    TensorType,
    Value,
)
from ...ir_graph import depth_first
from ...ops.builder import as_call, check_bytes
from ...ops.forms import HostScalar
from ...ops.parameters import Kind
from ...ops.table import Call, Op
from ...symbolic.queries import assume_abs, assume_equal, assume_less, assume_same_shape
from ...symbolic.sizes import integer, is_integer
from .constant_folding import fold


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What is known of an input tensor: sizes and strides in elements, 16-byte alignment."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DataType
    aligned: bool = True
    is_cpu_scalar: bool = False


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """An input scalar; ``value`` only where shapes depend on it."""

    dtype: DataType
    value: Number | None = None


InputSpec = Union[TensorSpec, ScalarSpec]
InputSignature = tuple[InputSpec, ...]


def concretize(fusion: Fusion, signature: InputSignature, folds: bool = True) -> Fusion:
    """The fusion at the sizes of ``signature``, in the same values' numbers.

    Its nodes are in the order of the printed definition, so that passes add the same values to a
    definition and to its print. Ops that no output needs are left out: nothing is asked of
    their sizes.

    Parameters
    ----------
    fusion : Fusion
        The definition.
    signature : InputSignature
        Of its inputs.
    folds : bool
        Whether ops compute with the constants too. Else these are in shapes alone, and scalar ops
        stay beside them.

    Raises
    ------
    InputShapeError
        An op does not fit these sizes; it carries the op's line. Or what is written into an input
        is of another shape, or the input is expanded.
    """
    known: dict[Value, Operand] = {}
    numbers: dict[Value, Operand] = known if folds else {}
    inputs: list[Value] = []
    for value, spec in zip(fusion.inputs, signature, strict=True):
        concrete = _concrete_input(value, spec)
        inputs.append(concrete)
        known[value] = numbers[value] = concrete
        if isinstance(spec, ScalarSpec) and spec.value is not None:
            numbers[value] = Const(spec.value, spec.dtype)
    nodes: list[Node] = []
    for node in depth_first(fusion):
        try:
            nodes.extend(_concrete_nodes(node, known, numbers))
        except TritonFuserError as error:
            raise _of_inputs(error).located(node.loc) from error.__cause__
    outputs = tuple(
        Output(_as_value(known[o.value]), _concrete_alias(o, known), o.hidden)
        for o in fusion.outputs
    )
    return Fusion(tuple(inputs), tuple(nodes), outputs)


def _of_inputs(error: TritonFuserError) -> TritonFuserError:
    """What is wrong with an op at these sizes is wrong with the inputs: the op was recorded."""
    if not isinstance(error, DefinitionError) or isinstance(error, InputShapeError):
        return error
    return InputShapeError(error.message, loc=error.loc, hint=error.hint)


def _concrete_alias(output: Output, known: dict[Value, Operand]) -> Value | None:
    """The input that an output is written into, which has its shape."""
    if output.alias_of is None:
        return None
    made, into = _as_value(known[output.value]), _as_value(known[output.alias_of])
    if not assume_same_shape(made.tensor.sizes, into.tensor.sizes):
        raise InputShapeError(
            f"add_output: {made.name} of shape {list(made.tensor.sizes)} cannot be written into "
            f"{into.name} of shape {list(into.tensor.sizes)}"
        )
    if any(dim.expanded for dim in into.tensor.dims):
        raise InputShapeError(
            f"add_output: {made.name} cannot be written into {into.name}, which is expanded: "
            "elements of it share memory",
            hint="Pass t.contiguous().",
        )
    return into


def _as_value(operand: Operand) -> Value:
    """An operand that is no constant."""
    if not isinstance(operand, Value):
        raise DefinitionError("a scalar cannot be an output of a fusion")
    return operand


def _concrete_input(value: Value, spec: InputSpec) -> Value:
    """An input with the sizes, strides and dtype of its tensor."""
    if isinstance(spec, ScalarSpec):
        return value
    declared = value.tensor
    dims = tuple(
        Dim(size, _is_expanded(size, stride, dim))
        for size, stride, dim in zip(spec.sizes, spec.strides, declared.dims, strict=True)
    )
    layout = declared.layout or Layout((), ())
    type_ = TensorType(
        dims,
        spec.dtype,
        spec.is_cpu_scalar,
        replace(layout, strides=spec.strides),
        declared.weak,
    )
    return Value(value.index, type_)


def _concrete_nodes(
    node: Node, known: dict[Value, Operand], numbers: dict[Value, Operand]
) -> list[Node]:
    """The node over concrete operands, as a list; empty where its result is a constant now.

    Shapes are of ``numbers``, which ops compute with too where ``known`` is the same.
    """
    call = _concrete_call(node, numbers, numbers)
    folded = _constant_result(call, node)
    if folded is not None:
        numbers[node.out] = folded
        if known is numbers or isinstance(call.op.form, HostScalar):
            known[node.out] = folded
            return []
    if known is not numbers:
        call = _concrete_call(node, known, numbers)
    types = call.op.infer(call)
    check_bytes(call, types, open_sizes=True)
    outs = tuple(Value(o.index, t) for o, t in zip(node.outs, types, strict=True))
    known.update(zip(node.outs, outs, strict=True))
    if folded is None:
        numbers.update(zip(node.outs, outs, strict=True))
    return [Node(node.op, call.args, node.attrs, outs, node.loc)]


def _concrete_call(node: Node, known: dict[Value, Operand], numbers: dict[Value, Operand]) -> Call:
    """The call of a node over concrete operands."""
    call = as_call(node)
    args = tuple(
        _concrete_arg(node.op, arg, kind, numbers if kind in (Kind.EXTENT, Kind.EXTENTS) else known)
        for arg, kind in _operand_params(call.op, node.args)
    )
    return Call(call.op, args, call.attrs)


def _operand_params(op: Op, args: tuple[Arg, ...]) -> list[tuple[Arg, Kind]]:
    """Each operand with the kind of its parameter."""
    kinds = [p.kind for p in op.params if p.kind.is_operand]
    return list(zip(args, kinds, strict=True))


def _concrete_arg(op: str, arg: Arg, kind: Kind, known: dict[Value, Operand]) -> Arg:
    """An operand, or a list of them, as it is at these sizes."""
    if isinstance(arg, tuple):
        items = tuple(known[a] if isinstance(a, Value) else a for a in arg)
        return tuple(_extent(op, item) for item in items) if kind is Kind.EXTENTS else items
    found = known[arg] if isinstance(arg, Value) else arg
    return _extent(op, found) if kind is Kind.EXTENT and found is not None else found


def _is_expanded(size: int, stride: int, declared: Dim) -> bool:
    """Whether the positions of a dim share memory."""
    return assume_less(1, size) and (assume_equal(stride, 0) or declared.expanded)


def _fits_int64(value: int | float) -> bool:
    if is_integer(value):
        return assume_less(assume_abs(value), 2**63)
    return abs(value) < 2**63  # of nan it is False


def _extent(op: str, item: Operand) -> Operand:
    """A shape entry as an integer: a Float scalar counts as a size too."""
    if not isinstance(item, Const) or isinstance(item.value, complex):
        return item
    if not _fits_int64(item.value):
        raise DefinitionError(f"{op}: a size must be a number of at most 63 bits, got {item.value}")
    return Const(integer(item.value), DataType.Int)


def _constant_result(call: Call, node: Node) -> Const | None:
    """The result of a node on sizes or constant scalars; None for any other."""
    if isinstance(call.op.form, HostScalar):
        dim = call.attrs["dim"]
        assert isinstance(dim, int)
        size = call.value("arg").tensor.sizes[dim]
        return Const(size, DataType.Int)
    if isinstance(node.out.type, ScalarType):
        return fold(call, node.out.dtype)
    return None


def shape_scalars(fusion: Fusion) -> frozenset[Value]:
    """The input scalars that some extent depends on: their values belong to the signature."""
    needed: set[Value] = set()
    for node in reversed(fusion.nodes):
        call = as_call(node)
        reached = any(out in needed for out in node.outs)
        for arg, kind in _operand_params(call.op, node.args):
            if kind in (Kind.EXTENT, Kind.EXTENTS):
                items = arg if isinstance(arg, tuple) else (arg,)
                needed.update(a for a in items if isinstance(a, Value))
            elif reached and isinstance(arg, Value) and not arg.is_tensor:
                needed.add(arg)
    return frozenset(needed.intersection(fusion.inputs))
