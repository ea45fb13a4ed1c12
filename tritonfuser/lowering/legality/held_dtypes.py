"""Which element types kernels compute with. A reason is the answer, or None."""

from __future__ import annotations

from ...dtypes import PACKED, Category, DataType
from ...errors import DefinitionError
from ...ir import Node
from ..segments.segment import Segment


def holds(dtype: DataType) -> bool:
    """Whether kernels compute with a dtype: real, and one number an element."""
    return dtype.info.category is not Category.COMPLEX and dtype not in PACKED


def why_not_held(node: Node) -> str | None:
    """None, or a dtype of a node with which kernels do not compute."""
    for value in (*node.operands(), *node.outs):
        if not holds(value.dtype):
            return f"{node.op}: expected a type that kernels compute with, got {value.dtype}"
    return None


def refuse_unheld(segment: Segment) -> None:
    """Raise for the first node of a segment that a kernel cannot compute.

    Raises
    ------
    DefinitionError
        It names the op, its line and the type.
    """
    for node in segment.nodes:
        reason = why_not_held(node)
        if reason is not None:
            raise DefinitionError(
                reason,
                loc=node.loc,
                hint="Do that part in torch.",
            )
