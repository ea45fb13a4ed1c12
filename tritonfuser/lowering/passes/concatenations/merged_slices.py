"""Fusion in, an equal Fusion with concatenated slices of one tensor as one view out.

``cat([slice(x, 3, 8), slice(x, 0, 3)])`` -> ``cat_slices(x, starts=(3, 0), lengths=(5, 3))``: a
kernel chooses the index and computes one element. Of a concatenation it would compute the element
of each slice and choose among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder
from ..rewriting import rewritten
from .slices import Slice, are_alike, are_in_order, concatenated, side_by_side, slice_of


def merge_slices(fusion: Fusion) -> Fusion:
    """Neighbours in a concatenation that are slices of one tensor become one operand of it.

    Concatenations whose operands become slices of one tensor by this, as the quadrants of a tensor
    that is rolled along two dims do, are merged after those inside.
    """
    merged = _merge_once(fusion)
    while merged is not fusion:
        fusion, merged = merged, _merge_once(merged)
    return fusion


def has_slices_to_merge(fusion: Fusion, parts: Sequence[Value], dim: int) -> bool:
    """Whether neighbours in a concatenation along ``dim`` are slices of one tensor."""
    return len(_groups_of(fusion, parts, dim)) < len(parts)


def _groups_of(fusion: Fusion, parts: Sequence[Value], dim: int) -> list[tuple[int, int]]:
    return list(_groups([slice_of(fusion, part) for part in parts], dim))


def _merge_once(fusion: Fusion) -> Fusion:
    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        if node.op != "cat":
            return None
        parts, dim = concatenated(node)
        groups = _groups_of(fusion, parts, dim)
        if len(groups) == len(parts):
            return None
        merged: list[Value] = []
        for first, last in groups:
            found = [slice_of(fusion, part) for part in parts[first:last]]
            slices = [each for each in found if each is not None]
            alone = last - first == 1
            merged.append(parts[first] if alone else side_by_side(builder, slices, dim))
        made: Value = merged[0] if len(merged) == 1 else builder.call("cat", merged, dim)
        return made

    return rewritten(fusion, rewrite)


def _groups(slices: Sequence[Slice | None], dim: int) -> Iterator[tuple[int, int]]:
    """Ranges of operands, each of one operand or of slices that differ along ``dim`` alone."""
    first = 0
    for place in range(1, len(slices) + 1):
        if place < len(slices) and are_alike(slices[first], slices[place], dim):
            continue
        lengths = [each.sizes[dim] for each in slices[first:place] if each is not None]
        if are_in_order(lengths):
            yield first, place
        else:
            yield from ((each, each + 1) for each in range(first, place))
        first = place
