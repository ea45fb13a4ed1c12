"""What a program holds of a definition: ``TensorView`` and ``Val`` around the IR's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..dtypes import DataType
from ..errors import DefinitionError
from ..ir import Const, Fusion, Node, Operand, Value

Text = str
"""``str`` where a class has a method of that name."""


class HasFusion(Protocol):
    """A frontend Fusion, or whatever else carries an IR fusion."""

    @property
    def ir(self) -> Fusion: ...


class Home(HasFusion, Protocol):
    """The recording that a handle belongs to."""

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any: ...


class Statement:
    """A value or an expression of a definition."""

    __slots__ = ("_home",)

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def home(self) -> Home:
        """The recording it was made in."""
        return self._home


class Val(Statement):
    """A scalar of a definition: an input, a constant or the result of an op.

    Not made by hand: ``fd.define_scalar``, ``t.size(dim)`` and ops of scalars give one.
    """

    __slots__ = ("_value",)

    def __init__(self, home: Home, value: Operand) -> None:
        super().__init__(home)
        self._value = value

    @property
    def value(self) -> Operand:
        """The value in the IR, or the constant."""
        return self._value

    def dtype(self) -> DataType:
        """The element type."""
        return self._value.dtype

    def is_tensor(self) -> bool:
        """Whether this is a TensorView."""
        return isinstance(self._value, Value) and self._value.is_tensor

    def is_symbolic(self) -> bool:
        """Whether it is known only at run time."""
        return isinstance(self._value, Value)

    def definition(self) -> Expr | None:
        """The op that makes it; None for inputs and constants."""
        if isinstance(self._value, Const):
            return None
        node = self._home.ir.producers.get(self._value)
        return None if node is None else Expr(self._home, node)

    def uses(self) -> list[Expr]:
        """The ops that take it, in recording order."""
        if isinstance(self._value, Const):
            return []
        nodes = self._home.ir.consumers.get(self._value, ())
        return [Expr(self._home, node) for node in nodes]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Val) and self._home is other._home and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> Text:
        if isinstance(self._value, Const):
            return repr(self._value)
        return f"{self._value.dtype.info.letter}{self._value.index}"

    def str(self) -> Text:
        """The same as ``str(value)``."""
        return repr(self)

    def __add__(self, other: Any) -> Any:
        return self._home.call("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._home.call("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._home.call("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._home.call("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._home.call("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._home.call("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._home.call("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._home.call("truediv", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._home.call("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._home.call("pow", other, self)

    def __neg__(self) -> Any:
        return self._home.call("neg", self)


class TensorView(Val):
    """A tensor of a definition: an input or the result of an op."""

    __slots__ = ()
    _value: Value

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self._value.tensor.rank

    def size(self, dim: int) -> Val:
        """The extent of a dim: a constant where it is static, else known at run time."""
        rank = self.ndim
        if not -rank <= dim < rank:
            raise DefinitionError(
                f"size: The dimension requested is beyond the bounds of the shape: "
                f"{dim} of {self._value.name} with {rank} dims"
            )
        extent = self._value.tensor.shape[dim]
        if isinstance(extent, int):
            return Val(self._home, Const.of(extent))
        found: Val = self._home.call("size", self, dim % rank)
        return found

    def shape(self) -> list[Val]:
        """The extents of all dims."""
        return [self.size(dim) for dim in range(self.ndim)]

    def __repr__(self) -> Text:
        type_ = self._value.tensor
        dims = []
        for place, dim in enumerate(type_.dims):
            mark = "b" if dim.is_broadcast else "i"
            extent = f"1 ex {dim.size}" if dim.expanded else f"{dim.size}"
            dims.append(f"{mark}S{place}{{{extent}}}")
        fusion = self._home.ir
        ends = (*fusion.inputs, *(out.value for out in fusion.outputs))
        memory = "g" if self._value in ends else "l"
        return f"T{self._value.index}_{memory}_{type_.dtype.value}[{', '.join(dims)}]"


class Expr(Statement):
    """An op of a definition, as recorded."""

    __slots__ = ("_node",)

    def __init__(self, home: Home, node: Node) -> None:
        super().__init__(home)
        self._node = node

    @property
    def op(self) -> Text:
        """The op's name under ``fd.ops``."""
        return self._node.op

    @property
    def node(self) -> Node:
        """The node in the IR."""
        return self._node

    def inputs(self) -> list[Val]:
        """The values it takes, constants left out."""
        return [wrap(self._home, value) for value in self._node.operands()]

    def outputs(self) -> list[Val]:
        """The values it makes."""
        return [wrap(self._home, value) for value in self._node.outs]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self._node == other._node and self._home is other._home

    def __hash__(self) -> int:
        return hash((self._node.op, self._node.outs))

    def __repr__(self) -> Text:
        operands = ", ".join(repr(arg) for arg in self._node.args)
        return f"{', '.join(out.name for out in self._node.outs)} = {self._node.op}({operands})"

    def str(self) -> Text:
        """The same as ``str(expr)``."""
        return repr(self)


def wrap(home: Home, result: Any) -> Any:
    """Values of the IR as handles, in tuples and lists too."""
    if isinstance(result, tuple | list):
        return type(result)(wrap(home, item) for item in result)
    if isinstance(result, Value) and result.is_tensor:
        return TensorView(home, result)
    if isinstance(result, Value | Const):
        return Val(home, result)
    return result


def unwrap(given: Any, check: Callable[[Val], Operand]) -> Any:
    """Handles as values of the IR, in lists and tuples too; ``check`` sees each handle."""
    if isinstance(given, Val):
        return check(given)
    if isinstance(given, tuple | list):
        return [unwrap(item, check) for item in given]
    return given
