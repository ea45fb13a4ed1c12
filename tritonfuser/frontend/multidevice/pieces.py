"""``Piece``: a factor of a dim. Pieces of one name are cut in the same way."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ...ir import Node, Value

Label = Hashable


@dataclass(frozen=True)
class Piece:
    """A factor of a dim. With the label None all of it is needed."""

    label: Label
    size: int


Dims = tuple[tuple[Piece, ...], ...]
"""The factors of each dim of a tensor, outermost first."""


def named(value: Value, labels: Iterable[Label]) -> Dims:
    """A tensor's dims, each of one piece."""
    pairs = zip(labels, value.tensor.sizes, strict=True)
    return tuple((Piece(label, size),) for label, size in pairs)


def unnamed(value: Value) -> Dims:
    """A tensor that is needed whole."""
    return named(value, [None] * value.tensor.rank)


def tensors_of(node: Node) -> tuple[Value, ...]:
    """The tensors among the operands, in order."""
    return tuple(value for value in node.operands() if value.is_tensor)


def results_of(node: Node) -> tuple[Value, ...]:
    """The tensors among the results, in order."""
    return tuple(value for value in node.outs if value.is_tensor)
