"""Index maps of views that are pieced together: pad, cat, and slices one behind the other."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Const, Value
from ..symbolic.index_expr import Affine, Bounded, digit
from ..symbolic.queries import assume_equal
from .index_map import Guard, Index, Source


def pad_sources(
    index: Index, operand: Value, before: Sequence[int], fill: Value | Const | None
) -> tuple[Source, ...]:
    """The operand where the shifted index is in bounds, the fill value elsewhere."""
    shifted = tuple(item - low for item, low in zip(index, before, strict=True))
    guards = tuple(
        Guard(item, 0, size) for item, size in zip(shifted, operand.tensor.sizes, strict=True)
    )
    return Source(operand, shifted, guards), Source(fill)


def cat_sources(index: Index, operands: Sequence[Value], dim: int) -> tuple[Source, ...]:
    """Each operand, guarded by its range of positions along ``dim``."""
    sources: list[Source] = []
    start = 0
    for operand in operands:
        size = operand.tensor.sizes[dim]
        inside = index[dim] - start
        moved = (*index[:dim], inside, *index[dim + 1 :])
        if not assume_equal(size, 0):
            sources.append(Source(operand, moved, (Guard(inside, 0, size),)))
        start += size
    return tuple(sources)


def cat_slices_pull(
    place: Affine, starts: Sequence[int], lengths: Sequence[int], size: int
) -> Affine:
    """The index in a dim of ``size`` elements of a position in slices of it, one behind the other.

    One index for all slices: where a position reaches the next slice, the index jumps to its start.
    """
    total = sum(lengths)
    moved, begin = place + starts[0], lengths[0]
    for (start, length), after in zip(
        zip(starts, lengths, strict=True), zip(starts[1:], lengths[1:], strict=True), strict=False
    ):
        reached = (place + (total - begin)) // total  # 1 from ``begin`` on, else 0
        moved = moved + reached * (after[0] - start - length)
        begin = begin + after[1]
    return digit(Bounded(moved, size))
