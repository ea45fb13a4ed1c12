"""One node as a line of torch: operands, numbers and dtypes as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from tritonfuser.dtypes import DataType
from tritonfuser.errors import DefinitionError
from tritonfuser.ir import Attr, Node

Text = Union[str, tuple[str, ...], None]


@dataclass(frozen=True)
class Line:
    """A node, its operands as text by parameter name, and the device of new tensors."""

    node: Node
    operands: dict[str, Text]
    device: str

    def __getitem__(self, name: str) -> str:
        """The text of an operand that must be present; a list becomes a tuple."""
        found = self.operands[name]
        if found is None:
            raise unwritable(self.node, f"without {name}")
        return found if isinstance(found, str) else tuple_text(found)

    def items(self, name: str) -> tuple[str, ...]:
        """The texts of the items of a list operand."""
        found = self.operands[name]
        assert isinstance(found, tuple), f"{self.node.op}: {name} is no list"
        return found

    def attr(self, name: str) -> Any:
        return self.node.attr(name)

    @property
    def place(self) -> str:
        """The ``device=`` argument of a new tensor."""
        return f"device={self.device!r}"


def unwritable(node: Node, why: str = "") -> DefinitionError:
    """The error of a node without an equivalent in torch."""
    return DefinitionError(
        f"{node.op}: expected an op that has a form in torch, got {node.op} {why}".rstrip(),
        loc=node.loc,
        hint=f"Add a form for {node.op} to bench/functions.",
    )


def tuple_text(items: Sequence[object]) -> str:
    """``(1, 2)``, ``(1,)``."""
    return f"({', '.join(map(str, items))}{',' if len(items) == 1 else ''})"


def torch_name(dtype: Attr) -> str:
    """``torch.float32``."""
    assert isinstance(dtype, DataType)
    return str(dtype.info.torch)


def literal(value: Any) -> str:
    """A number as text; a negative one in parentheses, so that any operator may precede it."""
    if isinstance(value, bool | complex):
        return repr(value)
    text = repr(value) if math.isfinite(value) else f'float("{value}")'
    return f"({text})" if text.startswith("-") else text
