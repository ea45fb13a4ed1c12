"""``Val``: the handle of a scalar, and what all handles of values have."""

from __future__ import annotations

from typing import Any, SupportsIndex

from ...dtypes import DataType
from ...errors import DefinitionError
from ...ir import Const, Number, Operand, Value, type_text
from .recorded_operators import RecordedOperators
from .statements import Expr, Home, Statement, Text


class Val(Statement, RecordedOperators):
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
        return None if node is None else self._home.expression(node)

    def uses(self) -> list[Expr]:
        """The ops that take it, in recording order."""
        if isinstance(self._value, Const):
            return []
        nodes = self._home.ir.consumers.get(self._value, ())
        return [self._home.expression(node) for node in nodes]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        value = self._value
        if isinstance(value, Value):
            return restored_handle, (self._home, value.name)
        return restored_handle, (self._home, value.value, value.dtype.name)

    def _record(self, op: Text, *operands: Any) -> Any:
        return self._home.call(op, *operands)

    def __eq__(self, other: object) -> Any:
        """While the definition is recorded, the op ``eq``; later, whether both are one value."""
        if self._home.open:
            return self._operator("eq", self, other)
        return isinstance(other, Val) and self._home is other._home and self._value == other._value

    def __ne__(self, other: object) -> Any:
        """While the definition is recorded, the op ``ne``; later, whether they are two values."""
        if self._home.open:
            return self._operator("ne", self, other)
        return not self == other

    # A value has one handle, so handles are the same where values are.
    __hash__ = object.__hash__

    def __repr__(self) -> Text:
        if isinstance(self._value, Const):
            return repr(self._value)
        if self._home.has_nvfusers_names:
            return self._nvfusers_text(self._value)
        return f"{self._value.name}: {type_text(self._value.type)}"

    def _nvfusers_text(self, value: Value) -> Text:
        return f"{value.dtype.info.letter}{value.index}"


def restored_handle(home: Home, value: Text | Number, dtype: Text | None = None) -> Any:
    """The handle of a value or a constant: what copies and pickles of one are made by.

    Parameters
    ----------
    home : Fusion
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
        return home.handle_of(Const(value, DataType[dtype or "Null"]))
    made = (out for node in home.ir.nodes for out in node.outs)
    for found in (*home.handles, *home.ir.inputs, *made):
        if isinstance(found, Value) and found.name == value:
            return home.handle_of(found)
    raise DefinitionError(f"{value} is no input of the definition, and no op computes it")
