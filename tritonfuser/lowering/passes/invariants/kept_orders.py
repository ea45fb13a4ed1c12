"""Names of materialized values, with the order of their dims in memory.

``tv3`` is stored as its dims are written, ``tv3.permute(0, 2, 1)`` as ``fd.ops.permute`` of it
would be: dim 1 is the innermost in memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from ....ir import Value

_DIM = "(?:0|[1-9][0-9]{0,2})"
_ORDERED = re.compile(rf"(\w+)\.permute\(({_DIM}(?:, {_DIM})*)\)")


def in_order(value: Value, dims: Sequence[int]) -> str:
    """The name of a value whose dims have this order in memory, outermost first."""
    return f"{value.name}.permute({', '.join(map(str, dims))})"


def named(name: str) -> str:
    """The name without the order."""
    found = _ORDERED.fullmatch(name)
    return name if found is None else found[1]


def order_of(name: str) -> tuple[int, ...]:
    """The order of the dims in memory; empty for the order of the tensor."""
    found = _ORDERED.fullmatch(name)
    return () if found is None else tuple(map(int, found[2].split(", ")))


def orders(names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The order of each value, by its name without the order."""
    return {named(name): order_of(name) for name in names}


def is_order(dims: Collection[int], rank: int) -> bool:
    """Whether these are all dims of a tensor, in another order than its own."""
    return sorted(dims) == [*range(rank)] != [*dims]
