"""Dims and indices broadcast by torch's rules."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Dim, TensorType
from ..symbolic.index_expr import constant
from ..symbolic.queries import assume_equal
from ..symbolic.sizes import is_integer
from .equal_extents import assume_extents_equal, assume_extents_fit
from .index_map import Index


def broadcast_dims(operands: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...] | tuple[int, int]:
    """The dims of a pointwise result, broadcast by torch's rules.

    Returns
    -------
    tuple of Dim, or the pair (dim, operand) that does not fit
        Two ints where dim ``dim`` of operand number ``operand`` does not broadcast.
    """
    rank = max(len(dims) for dims in operands)
    padded = [(Dim(1),) * (rank - len(dims)) + dims for dims in operands]
    result: list[Dim] = []
    for place in range(rank):
        joined = Dim(1)
        for number, dims in enumerate(padded):
            found = _broadcast_dim(joined, dims[place])
            if found is None:
                return place, number
            joined = found
        result.append(joined)
    return tuple(result)


def _broadcast_dim(a: Dim, b: Dim) -> Dim | None:
    """Two dims broadcast to one; None where they do not fit."""
    if assume_extents_equal(b.size, 1) and not b.expanded:
        return a
    if assume_extents_equal(a.size, 1) and not a.expanded:
        return b
    if not assume_extents_fit(a.size, b.size):
        return None
    return Dim(a.size if is_integer(a.size) else b.size, a.expanded and b.expanded)


def broadcast_index(index: Index, operand: TensorType) -> Index:
    """The operand's index for a result index of the same or a higher rank."""
    tail = index[len(index) - operand.rank :]
    pairs = zip(tail, operand.sizes, strict=True)
    return tuple([constant(0) if assume_equal(size, 1) else item for item, size in pairs])
