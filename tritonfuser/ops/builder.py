"""Recording: infer the result types of a bound call, check them, append the node.

All nodes are recorded here: those of the user's ``fd.ops``, of composite ops and of passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import PACKED, Category, DataType
from ..errors import DefinitionError, SourceLoc, TritonFuserError
from ..ir import Fusion, Node, Output, TensorType, Type, Value
from ..symbolic.queries import require_at_most
from ..symbolic.sizes import is_integer
from . import registry
from .arguments import INT64_MAX, bind
from .forms import Composite, HostScalar, Pointwise
from .table import Call, Library, Op, View

MOST_BITS = 8 * INT64_MAX + 7
"""The bits of the largest result: less than 2**63 bytes."""


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
        """A value with the next number, which no node makes yet."""
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
        """A new input of the fusion."""
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
        """What was recorded, frozen."""
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
            f"{call.op.name}: expected a type that kernels compute with, got {found}",
            hint="Kernels only move elements of this type: do that part in torch.",
        )


def _dtypes(call: Call, types: Sequence[Type]) -> list[DataType]:
    """The dtypes of a call's operands and of its results."""
    given = [item for arg in call.args for item in (arg if isinstance(arg, tuple) else (arg,))]
    return [item.dtype for item in (*given, *types) if item is not None]


def check_bytes(call: Call, types: Sequence[Type], open_sizes: bool = False) -> None:
    """Refuse results that no memory can hold; sizes known only at run time count as 1.

    Parameters
    ----------
    call : Call
        The op.
    types : sequence of Type
        Its results.
    open_sizes : bool
        Whether open sizes count: kernels then serve none at which a result is refused.

    Raises
    ------
    DefinitionError
        A result has more bytes than an int64 counts.
    """
    for type_ in types:
        if not isinstance(type_, TensorType):
            continue
        known = [n for n in type_.shape if isinstance(n, int) or (open_sizes and is_integer(n))]
        bits = math.prod(known) * type_.dtype.info.bits
        if not require_at_most(bits, MOST_BITS):
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
