"""The op table itself: every row of the package, by name."""

from __future__ import annotations

from types import MappingProxyType

from ..errors import DefinitionError
from . import materialize, mma
from .creation import factories, random_ops
from .library import accumulation, attention, contractions, grouped, narrow, sorting
from .pointwise import approximations, binary, floor_division, softmax_parts, ternary, unary
from .reductions import sums
from .table import Op
from .views import cat_slices, rearranging

_TABLES = (
    unary.ROWS,
    binary.ROWS,
    ternary.ROWS,
    sums.ROWS,
    rearranging.ROWS,
    factories.ROWS,
    contractions.ROWS,
    attention.ROWS,
    sorting.ROWS,
    accumulation.ROWS,
    grouped.ROWS,
    narrow.ROWS,
)

OPS: MappingProxyType[str, Op] = MappingProxyType({op.name: op for rows in _TABLES for op in rows})
"""What ``fd.ops`` has."""

_INTERNAL = (
    *mma.INTERNAL,
    *softmax_parts.INTERNAL,
    *materialize.INTERNAL,
    *approximations.INTERNAL,
    *floor_division.INTERNAL,
    *random_ops.INTERNAL,
    *cat_slices.INTERNAL,
)
ROWS: MappingProxyType[str, Op] = MappingProxyType({**OPS, **{op.name: op for op in _INTERNAL}})
"""All rows by the names of ops, those too that only passes record."""

BY_OPERATOR: MappingProxyType[str, str] = MappingProxyType(
    {op.operator: op.name for op in ROWS.values() if op.operator}
)
"""The op that each of Python's operators records: ``"mod"`` for ``%`` -> ``"remainder"``."""


def get(name: str) -> Op:
    """The row of an op.

    Raises
    ------
    DefinitionError
        There is no such op.
    """
    try:
        return ROWS[name]
    except KeyError:
        raise DefinitionError(f"fd.ops has no op {name!r}") from None
