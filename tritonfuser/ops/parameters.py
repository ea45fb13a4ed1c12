"""What arguments of ops may be: the kinds of parameters, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Kind(Enum):
    """What an argument may be; its value is the text in signatures.

    The first seven are run-time operands, the others static arguments.
    """

    TENSOR = "TensorView"
    OPERAND = "TensorView | Val | bool | int | float | complex"
    SCALAR = "Val | bool | int | float | complex"
    VALUE = "TensorView | Val"
    TENSORS = "list[TensorView]"
    EXTENT = "int | Val"
    EXTENTS = "list[int | Val] | tuple"
    INT = "int"
    INTS = "list[int] | tuple"
    BOOL = "bool"
    BOOLS = "list[bool] | tuple"
    DIMS = "int | list[int] | tuple"
    DTYPE = "DataType | torch.dtype"

    @property
    def is_operand(self) -> bool:
        return self in _OPERANDS


_OPERANDS = {
    Kind.TENSOR,
    Kind.OPERAND,
    Kind.SCALAR,
    Kind.VALUE,
    Kind.TENSORS,
    Kind.EXTENT,
    Kind.EXTENTS,
}


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an op.

    Attributes
    ----------
    name : str
        The Python name.
    kind : Kind
        What an argument may be.
    default : object
        REQUIRED where there is no default; None is a default like any other.
    keyword_only : bool
        Whether it cannot be given by position.
    takes_none : bool
        Whether None may be given although there is no default.
    doc : str
        What it means. Empty where that is what ``param_docs.py`` says of its name.
    """

    name: str
    kind: Kind
    default: Any = REQUIRED
    keyword_only: bool = False
    takes_none: bool = False
    doc: str = ""
