"""Which element types kernels hold: segment in, an error out for the others."""

from __future__ import annotations

from ...dtypes import Category, DataType
from ...errors import DefinitionError
from ..segments import Segment

_PACKED = frozenset(
    {DataType.Float8_e8m0fnu, DataType.Float4_e2m1fn, DataType.Float4_e2m1fn_x2, DataType.Null}
)


def holds(dtype: DataType) -> bool:
    """Whether kernels compute with numbers of this type: they have no complex ones."""
    return dtype.info.category is not Category.COMPLEX and dtype not in _PACKED


def refuse_unheld(piece: Segment) -> None:
    """Raise for the first op that reads or makes numbers which no kernel holds.

    Raises
    ------
    DefinitionError
        It names the op and its line.
    """
    for node in piece.nodes:
        for value in (*node.operands(), *node.outs):
            if not holds(value.dtype):
                raise DefinitionError(
                    f"{node.op}: expected real numbers of 8 bits and more, got {value.dtype}",
                    loc=node.loc,
                    hint="Kernels do not compute with this type: do that part in torch.",
                )
