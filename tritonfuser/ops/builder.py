"""Recording: bind arguments to an op's signature, infer the result types, append the node.

All nodes are recorded here: those of the user's ``fd.ops``, of composite ops and of passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..dtypes import PACKED, Category, DataType, data_type
from ..errors import ArgumentError, DefinitionError, SourceLoc, TritonFuserError
from ..ir import Arg, Attr, Const, Fusion, Node, Output, ScalarType, TensorType, Type, Value
from ..symbolic.sizes import is_integer
from . import registry
from .table import (
    REQUIRED,
    Call,
    Composite,
    HostScalar,
    Kind,
    Library,
    Op,
    Pointwise,
    View,
)


class GraphBuilder:
    """Collects nodes in recording order and numbers their values.

    Parameters
    ----------
    tensors, scalars : int
        The first free number of each kind.
    """

    def __init__(self, tensors: int = 0, scalars: int = 0) -> None:
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Output] = []
        self.loc: SourceLoc | None = None
        self._tensors = tensors
        self._scalars = scalars

    def new_value(self, type_: Type) -> Value:
        if isinstance(type_, TensorType):
            self._tensors += 1
            return Value(self._tensors - 1, type_)
        self._scalars += 1
        return Value(self._scalars - 1, type_)

    def number_from(self, tensors: int, scalars: int) -> None:
        """Set the next numbers, which no value may have yet."""
        self._tensors = tensors
        self._scalars = scalars

    def add_input(self, type_: Type) -> Value:
        value = self.new_value(type_)
        self.inputs.append(value)
        return value

    def knows(self, value: Value) -> bool:
        """Whether ``value`` was numbered here."""
        return value.index < (self._tensors if value.is_tensor else self._scalars)

    def mark(self) -> tuple[int, int, list[Output], int, int]:
        """The state that ``rollback`` returns to."""
        return len(self.inputs), len(self.nodes), [*self.outputs], self._tensors, self._scalars

    def rollback(self, mark: tuple[int, int, list[Output], int, int]) -> None:
        """Remove what was added since ``mark``."""
        inputs, nodes, self.outputs, self._tensors, self._scalars = mark
        del self.inputs[inputs:], self.nodes[nodes:]

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Record the op ``name`` as a user calls it; values in, value or tuple of values out.

        Raises
        ------
        ArgumentError
            An argument is of the wrong Python type, missing, or unknown.
        DefinitionError
            The operands' dtypes, ranks or shapes do not fit the op.
        """
        try:
            call = bind(registry.get(name), args, kwargs)
            if call.op.record is not None:
                return call.op.record(self, call)
            return self.append(call)
        except TritonFuserError as error:
            raise error.located(self.loc) from error.__cause__

    def append(self, call: Call) -> Any:
        """Record one node of a bound call, without the op's own ``record``."""
        check_packed(call)
        types = call.op.infer(call)
        check_complex(call, types)
        check_packed(call, types)
        check_bytes(call, types)
        outs = tuple(self.new_value(type_) for type_ in types)
        attrs = tuple((key, value) for key, value in call.attrs.items())
        self.nodes.append(Node(call.op.name, call.args, attrs, outs, self.loc))
        missing = missing_results(call, len(outs))
        if missing:
            return (*outs, *(None,) * missing)
        return outs[0] if len(outs) == 1 else outs

    def fusion(self) -> Fusion:
        return Fusion(tuple(self.inputs), tuple(self.nodes), tuple(self.outputs))


class OpNamespace:
    """``ops.mul(x, y)`` for ``builder.call("mul", x, y)``."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._builder.call(name, *args, **kwargs)


def missing_results(call: Call, made: int) -> int:
    """How many trailing None a call returns behind its results."""
    return 0 if call.op.returns is None else call.op.returns(call) - made


def check_complex(call: Call, types: Sequence[Type] = ()) -> None:
    """Refuse complex numbers where the op's row has no rule for them.

    Raises
    ------
    DefinitionError
        An operand, or a result of these types, is complex.
    """
    op = call.op
    if op.complex is not None or isinstance(op.form, View | Composite | HostScalar):
        return
    found = next((d for d in _dtypes(call, types) if d.info.category is Category.COMPLEX), None)
    if found is not None:
        raise DefinitionError(
            f"{op.name}: complex numbers are not supported, got {found}",
            hint="Take them apart with fd.ops.real(x) and fd.ops.imag(x).",
        )


def check_packed(call: Call, types: Sequence[Type] = ()) -> None:
    """Refuse to compute with types that hold no single numbers.

    Raises
    ------
    DefinitionError
        An operand, or a result of these types, is of such a type, and the op is no view, no copy
        and no library op.
    """
    form = call.op.form
    moves = isinstance(form, View | Library | HostScalar) or call.op.category == "view"
    dtypes = _dtypes(call, types)
    if moves or (isinstance(form, Pointwise) and form.copies and len(set(dtypes)) == 1):
        return
    found = next((dtype for dtype in dtypes if dtype in PACKED), None)
    if found is not None:
        raise DefinitionError(
            f"{call.op.name}: expected real numbers of 8 bits and more, got {found}",
            hint="Kernels do not compute with this type: do that part in torch.",
        )


def _dtypes(call: Call, types: Sequence[Type]) -> list[DataType]:
    """Those of a call's operands and of its results."""
    given = [item for arg in call.args for item in (arg if isinstance(arg, tuple) else (arg,))]
    return [item.dtype for item in (*given, *types) if item is not None]


def check_bytes(call: Call, types: Sequence[Type]) -> None:
    """Refuse results that no memory can hold; sizes known only at run time count as 1.

    Raises
    ------
    DefinitionError
        A result has more bytes than an int64 counts.
    """
    for type_ in types:
        if not isinstance(type_, TensorType):
            continue
        sizes = [size for size in type_.shape if isinstance(size, int)]
        if 0 not in sizes and math.prod(sizes) * type_.dtype.info.bits // 8 > INT64_MAX:
            raise DefinitionError(
                f"{call.op.name}: expected a result of less than 2**63 bytes, got the shape "
                f"{list(type_.shape)} of {type_.dtype}"
            )


def as_call(node: Node) -> Call:
    """The op's row and the bound arguments of a node."""
    return Call(registry.ROWS[node.op], node.args, dict(node.attrs))


def op_of(node: Node) -> Op:
    """The op's row of a node."""
    return registry.ROWS[node.op]


def bind(op: Op, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
    """Match arguments to parameters and convert them; Python numbers become constants."""
    given = _match(op, list(args), dict(kwargs))
    operands: list[Arg] = []
    attrs: dict[str, Attr] = {}
    for param in op.params:
        value = given.get(param.name, param.default)
        if value is REQUIRED:
            raise ArgumentError(
                f"{op.name}(): incompatible function arguments: {param.name!r} is missing",
                hint=f"Signature: {signature_text(op)}",
            )
        if value is None and (param.default is None or param.takes_none):
            converted: Any = None
        else:
            converted = _convert(op, param.name, param.kind, value)
        if param.kind.is_operand:
            operands.append(converted)
        else:
            attrs[param.name] = converted
    return Call(op, tuple(operands), attrs)


def _match(op: Op, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Positional and named arguments by parameter name.

    A dtype in the place of ``dims`` is the ``dtype``: ``sum(t, DataType.Double)``.
    """
    kinds = {p.name: p.kind for p in op.params}
    names = _names_by_place(op, args)
    given: dict[str, Any] = {}
    for place, value in enumerate(args):
        if place >= len(names):
            raise ArgumentError(
                f"{op.name}(): incompatible function arguments: {len(args)} positional "
                f"arguments, at most {len(names)} are taken",
                hint=f"Signature: {signature_text(op)}",
            )
        name = names[place]
        is_dtype = isinstance(value, DataType | torch.dtype)
        if kinds[name] is Kind.DIMS and is_dtype and "dtype" in kinds:
            name = "dtype"
        given[name] = value
    aliases = {"axes": "dims", "dim": "dims"} if "dims" in kinds else {}
    for key, value in kwargs.items():
        name = aliases.get(key, key)
        if name not in kinds or name in given:
            what = "twice" if name in given else "but there is no such parameter"
            raise ArgumentError(
                f"{op.name}(): incompatible function arguments: {key!r} is given {what}",
                hint=f"Signature: {signature_text(op)}",
            )
        given[name] = value
    return given


def _names_by_place(op: Op, args: Sequence[Any]) -> Sequence[str]:
    """The parameters that positional arguments are for, in today's order or in an older one."""
    params = [param for param in op.params if not param.keyword_only]
    pairs = zip(params, args, strict=False)
    if op.older_order and any(p.kind is Kind.TENSOR and _is_scalar(arg) for p, arg in pairs):
        return op.older_order
    return [param.name for param in params]


def _is_scalar(given: object) -> bool:
    """Whether it is a number or a scalar of the definition."""
    if isinstance(given, Value):
        return not given.is_tensor
    return is_integer(given) or isinstance(given, Const | float | complex)


def signature_text(op: Op) -> str:
    """``sum(arg, dims=None, keepdim=False, dtype=DataType.Null)``."""
    parts: list[str] = []
    star = False
    for param in op.params:
        if param.keyword_only and not star:
            parts.append("*")
            star = True
        default = "" if param.default is REQUIRED else f"={param.default}"
        parts.append(f"{param.name}: {param.kind.value}{default}")
    return f"{op.name}({', '.join(parts)})"


def _convert(op: Op, name: str, kind: Kind, value: Any) -> Any:
    converted = _CONVERTERS[kind](value)
    if converted is _WRONG:
        raise ArgumentError(
            f"{op.name}(): incompatible function arguments: {name!r} must be {kind.value}, "
            f"got {shown(value)} of type {type(value).__name__}",
            hint=f"Signature: {signature_text(op)}",
        )
    return converted


def shown(value: object) -> str:
    """A value of any type in a message: its repr, cut where it is long."""
    if type(value) is int and not fits_int64(value):
        return f"an int of {value.bit_length()} bits, beyond int64,"
    try:
        text = repr(value)
    except Exception:
        return "something without a repr"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


_WRONG = object()
INT64_MAX = 2**63 - 1
SHOWN = 200
"""Characters of a wrong argument that a message shows."""


def fits_int64(value: int) -> bool:
    """Whether an int64 holds it."""
    return -INT64_MAX - 1 <= value <= INT64_MAX


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is int and not fits_int64(value):
        return _WRONG
    return Const.of(value) if is_integer(value) or isinstance(value, float | complex) else _WRONG


def _tensor(value: Any) -> Any:
    return value if isinstance(value, Value) and value.is_tensor else _WRONG


def _scalar(value: Any) -> Any:
    if isinstance(value, Const) or (
        isinstance(value, Value) and isinstance(value.type, ScalarType)
    ):
        return value
    return _number(value)


def _operand(value: Any) -> Any:
    return value if isinstance(value, Value | Const) else _number(value)


def _int(value: Any) -> Any:
    if not is_integer(value) and not isinstance(value, np.integer):
        return _WRONG
    number = int(value)
    return number if fits_int64(number) else _WRONG


def _bool(value: Any) -> Any:
    return bool(value) if isinstance(value, int | np.bool_) else _WRONG


def _count(value: Any) -> Any:
    """A number of elements. The op refuses a scalar of another dtype, constant or not."""
    return value if isinstance(value, Const) else _extent(value)


def _extent(value: Any) -> Any:
    found = _scalar(value)
    if not isinstance(found, Const) or is_integer(found.value):
        return found
    # A scalar of the definition may be of any real dtype, a Python number must be an int.
    number = found.value
    if found is value and isinstance(number, float) and math.isfinite(number):
        return Const.of(int(number))
    return _WRONG


def _list_of(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def converter(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return _WRONG
        items = tuple(convert(item) for item in value)
        return _WRONG if any(item is _WRONG for item in items) else items

    return converter


def _dims(value: Any) -> Any:
    return _list_of(_int)([value] if isinstance(value, int | np.integer) else value)


_CONVERTERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.TENSOR: _tensor,
    Kind.OPERAND: _operand,
    Kind.SCALAR: _scalar,
    Kind.VALUE: lambda value: value if isinstance(value, Value | Const) else _WRONG,
    Kind.TENSORS: _list_of(_tensor),
    Kind.EXTENT: _count,
    Kind.EXTENTS: _list_of(_extent),
    Kind.INT: _int,
    Kind.INTS: _list_of(_int),
    Kind.BOOL: _bool,
    Kind.BOOLS: _list_of(_bool),
    Kind.DIMS: _dims,
    Kind.DTYPE: lambda value: data_type(value) or _WRONG,
}
