"""The op table itself: every row of the package, by name."""

from __future__ import annotations

from types import MappingProxyType

from ..errors import DefinitionError
from . import (
    attention,
    cheaper,
    contractions,
    factories,
    grouped,
    kept,
    narrow,
    pointwise,
    products,
    randoms,
    reductions,
    softmax,
    sorting,
    views,
)
from .table import Op

_TABLES = (
    pointwise.ROWS,
    reductions.ROWS,
    views.ROWS,
    factories.ROWS,
    contractions.ROWS,
    attention.ROWS,
    sorting.ROWS,
    grouped.ROWS,
    narrow.ROWS,
)

OPS: MappingProxyType[str, Op] = MappingProxyType({op.name: op for rows in _TABLES for op in rows})
"""What ``fd.ops`` has."""

_INTERNAL = (
    *products.INTERNAL,
    *softmax.INTERNAL,
    *kept.INTERNAL,
    *cheaper.INTERNAL,
    *randoms.INTERNAL,
)
_ALL = {**OPS, **{op.name: op for op in _INTERNAL}}


def get(name: str) -> Op:
    """The row of an op.

    Raises
    ------
    DefinitionError
        There is no such op.
    """
    try:
        return _ALL[name]
    except KeyError:
        raise DefinitionError(f"fd.ops has no op {name!r}") from None
