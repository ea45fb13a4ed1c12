"""``Val``: the handle of a scalar, and what all handles of values have."""

from __future__ import annotations

from typing import Any, SupportsIndex

from ...dtypes import DataType
from ...errors import DefinitionError
from ...ir import Const, Number, Operand, Value, type_text
from .recorded_operators import RecordedOperators
from .statements import Container, Expr, Statement, Text


class Val(Statement, RecordedOperators):
    """A scalar of a definition: an input, a constant or the result of an op.

    Not made by hand: ``fd.define_scalar``, ``t.size(dim)`` and ops of scalars give one.
    """

    __slots__ = ("_value",)

    def __init__(self, container: Container, value: Operand) -> None:
        super().__init__(container)
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
        node = self._container.ir.producers.get(self._value)
        return None if node is None else self._container.expression(node)

    def uses(self) -> list[Expr]:
        """The ops that take it, in recording order."""
        if isinstance(self._value, Const):
            return []
        nodes = self._container.ir.consumers.get(self._value, ())
        return [self._container.expression(node) for node in nodes]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        value = self._value
        if isinstance(value, Value):
            return restored_handle, (self._container, value.name)
        return restored_handle, (self._container, value.value, value.dtype.name)

    def _record(self, op: Text, *operands: Any) -> Any:
        return self._container.call(op, *operands)

    def __eq__(self, other: object) -> Any:
        """While the definition is recorded, the op ``eq``; later, whether both are one value."""
        if self._container.open:
            return self._operator("eq", self, other)
        return (
            isinstance(other, Val)
            and self._container is other._container
            and self._value == other._value
        )

    def __ne__(self, other: object) -> Any:
        """While the definition is recorded, the op ``ne``; later, whether they are two values."""
        if self._container.open:
            return self._operator("ne", self, other)
        return not self == other

    # A value has one handle, so handles are the same where values are.
    __hash__ = object.__hash__

    def __repr__(self) -> Text:
        if isinstance(self._value, Const):
            return repr(self._value)
        if self._container.uses_nvfuser_names:
            return self._nvfuser_text(self._value)
        return f"{self._value.name}: {type_text(self._value.type)}"

    def _nvfuser_text(self, value: Value) -> Text:
        return f"{value.dtype.info.letter}{value.index}"


def restored_handle(container: Container, value: Text | Number, dtype: Text | None = None) -> Any:
    """The handle of a value or a constant. Copies and pickles of handles call it.

    Parameters
    ----------
    container : Fusion
        The recording, or its copy.
    value : str or number
        The name of a value, or a constant.
    dtype : str, optional
        The name of a constant's dtype.

    Raises
    ------
    DefinitionError
        The recording has no value of that name.
    """
    if not isinstance(value, Text):
        return container.handle_of(Const(value, DataType[dtype or "Null"]))
    made = (out for node in container.ir.nodes for out in node.outs)
    for found in (*container.handles, *container.ir.inputs, *made):
        if isinstance(found, Value) and found.name == value:
            return container.handle_of(found)
    raise DefinitionError(f"{value} is no input of the definition, and no op computes it")


class Vector(list[Val]):
    """Scalars in a row, as shapes are: a list with a ``size``, as in nvFuser's first frontend."""

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self)
