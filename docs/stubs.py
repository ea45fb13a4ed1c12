"""Writes ``frontend/record/operators.pyi``: ``fd.ops`` as type checkers and editors see it.

``python docs/stubs.py`` writes the file from the op table; a test compares.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from tritonfuser.dtypes import DataType
from tritonfuser.frontend.record.op_signatures import docstring_of
from tritonfuser.ir import Dim, ScalarType, TensorType, Value
from tritonfuser.ops.forms import HostScalar
from tritonfuser.ops.parameters import REQUIRED, Kind, Param
from tritonfuser.ops.registry import OPS
from tritonfuser.ops.table import Call, Op

STUB = Path(__file__).parents[1] / "tritonfuser" / "frontend" / "record" / "operators.pyi"

HEAD = '''\
"""``fd.ops``, typed: written by docs/stubs.py from the op table."""

from collections.abc import Callable, Sequence
from typing import Any, Union, overload

import torch

from ...dtypes import DataType
from .tensor_view import TensorView
from .val import Val

Scalar = Union[Val, bool, int, float, complex]
Operand = Union[TensorView, Scalar]
Size = Union[int, Val]
DType = Union[DataType, torch.dtype]
Record = Callable[..., Any]

class Operators:
    """The ops of a definition: ``fd.ops.add(x, y)`` records an addition and returns its result."""

    def __init__(self, record: Record) -> None: ...
'''

TYPES = {
    Kind.TENSOR: "TensorView",
    Kind.OPERAND: "Operand",
    Kind.SCALAR: "Scalar",
    Kind.VALUE: "Val",
    Kind.TENSORS: "Sequence[TensorView]",
    Kind.EXTENT: "Size",
    Kind.EXTENTS: "Sequence[Size]",
    Kind.INT: "int",
    Kind.INTS: "Sequence[int]",
    Kind.BOOL: "bool",
    Kind.BOOLS: "Sequence[bool]",
    Kind.DIMS: "int | Sequence[int]",
    Kind.DTYPE: "DType",
}
"""What type checkers are told of an argument; a ``TensorView`` is a ``Val`` too."""

Parameter = tuple[str, str]
"""Name, and the rest: ``("dim", ": int = -1")``; ``("*", "")`` before keyword-only ones."""


def parameters(params: Sequence[Param], types: dict[str, str]) -> list[Parameter]:
    """The parameters in order; ``types`` overrides what the kind says."""
    found: list[Parameter] = []
    for param in params:
        if param.keyword_only and ("*", "") not in found:
            found.append(("*", ""))
        optional = " | None" if param.default is None else ""
        default = "" if param.default is REQUIRED else f" = {param.default}"
        kind = types.get(param.name, TYPES[param.kind])
        found.append((param.name, f": {kind}{optional}{default}"))
    return found


def returned(op: Op) -> str:
    """The type of what a call hands back, where its operands are tensors."""
    if isinstance(op.form, HostScalar):
        return "Val"
    if _gives_numbers(op):
        return "list[Val]"
    if not op.results:
        return "TensorView" if op.returns is None else "Any"
    rest = "TensorView" if op.returns is None else "TensorView | None"
    return f"tuple[{', '.join(['TensorView', *[rest] * (len(op.results) - 1)])}]"


def _gives_numbers(op: Op) -> bool:
    """Whether an op that takes a tensor alone results in numbers."""
    if [param.kind for param in op.params] != [Kind.TENSOR]:
        return False
    matrix = Value(0, TensorType((Dim(2), Dim(3)), DataType.Float))
    return all(isinstance(type_, ScalarType) for type_ in op.infer(Call(op, (matrix,))))


def overloads(op: Op) -> Iterator[tuple[list[Parameter], str]]:
    """The ways to call an op, each with what it returns."""
    operands = [p.name for p in op.params if p.kind is Kind.OPERAND]
    for name in operands:
        yield parameters(op.params, {name: "TensorView"}), "TensorView"
    if operands:
        yield parameters(op.params, dict.fromkeys(operands, "Scalar")), "Val"
        return
    if all(param.kind is Kind.VALUE for param in op.params):
        for kind in ("TensorView", "Val"):
            yield parameters(op.params, {param.name: kind for param in op.params}), kind
        return
    yield parameters(op.params, {}), returned(op)
    kinds = {param.kind: param for param in op.params}
    if Kind.DIMS in kinds and Kind.DTYPE in kinds:
        dims, dtype = kinds[Kind.DIMS], kinds[Kind.DTYPE]
        others = [p for p in op.params if p is not dims]
        # A reduction takes ``sum(x, DataType.Double)``, and its dims under two more names.
        first = [p for p in others if p is not dtype and p.default is REQUIRED]
        yield parameters([*first, Param(dtype.name, dtype.kind)], {}), returned(op)
        for name in ("dim", "axes"):
            named = Param(name, dims.kind, keyword_only=True)
            rest = [Param(p.name, p.kind, p.default, keyword_only=True) for p in others[1:]]
            yield parameters([others[0], named, *rest], {}), returned(op)


def method(op: Op) -> str:
    """An op's stub; the docstring stands in the first of its overloads."""
    ways = list(overloads(op))
    lines: list[str] = []
    for place, (params, result) in enumerate(ways):
        if len(ways) > 1:
            lines.append("    @overload")
        lines += _header(op.name, params, result, " ..." if place else "")
        if not place:
            lines.append(_docstring(op))
    return "\n".join(lines)


def _header(name: str, params: Sequence[Parameter], result: str, end: str) -> list[str]:
    texts = ["self", *(name + rest for name, rest in params)]
    line = f"    def {name}({', '.join(texts)}) -> {result}:{end}"
    if len(line) <= 100:
        return [line]
    return [f"    def {name}(", *(f"        {text}," for text in texts), f"    ) -> {result}:{end}"]


def _docstring(op: Op) -> str:
    text = textwrap.indent(docstring_of(op), "        ").lstrip()
    return f'        """{text}\n        """'


def stub() -> str:
    """The whole file."""
    return HEAD + "".join(f"{method(op)}\n" for op in OPS.values())


# --- operators of handles ------------------------------------------------------------------------

OPERATORS = STUB.with_name("recorded_operators.pyi")

OPERATORS_HEAD = '''\
"""Python's operators on handles, typed: written by docs/stubs.py.

A tensor and anything is a tensor, two scalars are a scalar.
"""

from abc import ABC, abstractmethod
from typing import Any, NoReturn, TypeVar, Union, overload

from .tensor_view import TensorView
from .val import Val

NUMBERS: tuple[type, ...]
Number = Union[bool, int, float, complex]
Handle = TypeVar("Handle", bound=RecordedOperators)

class RecordedOperators(ABC):
    """The operators that torch's tensors have, for handles of a definition."""

    __slots__ = ()
    __array_ufunc__: None
    @abstractmethod
    def _record(self, op: str, *operands: Any) -> Any: ...
    def _operator(self, name: str, *operands: Any) -> Any: ...
    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __getitem__(self, key: object) -> NoReturn: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> NoReturn: ...
    def __contains__(self, item: object) -> bool: ...
'''

UNARY = ("neg", "abs", "invert", "pos")
COMPARISONS = ("lt", "le", "gt", "ge")
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift")
BINARY = (*BINARY, "rshift")
PRODUCTS = ("matmul", "rmatmul")


def operators_stub() -> str:
    """The stub of the base class of handles."""
    lines = [f"    def __{name}__(self: Handle) -> Handle: ..." for name in UNARY]
    for name in (*BINARY, *COMPARISONS):
        lines += [
            "    @overload",
            f"    def __{name}__(self, other: TensorView) -> TensorView: ...",
            "    @overload",
            f"    def __{name}__(self: Handle, other: Union[Val, Number]) -> Handle: ...",
        ]
    lines += [f"    def __r{name}__(self: Handle, other: Number) -> Handle: ..." for name in BINARY]
    lines += [
        f"    def __{name}__(self, other: TensorView) -> TensorView: ..." for name in PRODUCTS
    ]
    return OPERATORS_HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    STUB.write_text(stub())
    OPERATORS.write_text(operators_stub())
