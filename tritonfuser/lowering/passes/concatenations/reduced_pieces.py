"""Fusion in, an equal Fusion whose reductions of concatenated tensors reduce each of these out.

``sum(cat([x, y], 1), [0])`` -> ``cat([sum(x, [0]), sum(y, [0])], 0)``, and ``sum(cat([x, y], 0),
[0])`` -> ``add(sum(x, [0]), sum(y, [0]))``. Ops may lie between the concatenation and the
reduction. A kernel of the one reduction computes an element of each piece, and chooses one of them;
those of the others compute one element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

from ....dtypes import compute_dtype
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.forms import Pointwise, Reduction
from ....ops.table import View
from ....symbolic.sizes import is_size
from ..rewriting import rewritten
from .followed_dims import Place, operands_along
from .slices import concatenated

_MOST_PIECES = 8
"""Pieces of a reduction at most: each takes time to lower, and may be a kernel."""


class Pieces(NamedTuple):
    """Where the operand of a reduction is pieced together.

    Attributes
    ----------
    dim : int
        The dim of the operand.
    ends : tuple of int
        The index behind each piece along it.
    concatenated : frozenset of Value
        The concatenations.
    """

    dim: int
    ends: tuple[int, ...]
    concatenated: frozenset[Value]


def pieces_of(fusion: Fusion, node: Node) -> Pieces | None:
    """Where the operand of a reduction is pieced together, if it is.

    Along a dim that the reduction keeps, where there is one.
    """
    call = as_call(node)
    if not isinstance(call.op.form, Reduction):
        return None
    operand, reduced = call.value("arg"), call.dims()
    for dim in sorted(range(operand.tensor.rank), key=lambda dim: dim in reduced):
        found = frozenset(_concatenations(fusion, (operand, dim)))
        ends = sorted({end for value in found for end in _ends(fusion.producers[value])})
        if 1 < len(ends) <= _MOST_PIECES:
            return Pieces(dim, tuple(ends), found)
    return None


def reduce_pieces(fusion: Fusion, names: Collection[str]) -> Fusion:
    """The fusion with the named reductions, of those that have pieces, in pieces."""

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = pieces_of(fusion, node) if node.outs[0].name in names else None
        return None if found is None else _in_pieces(fusion, node, found, builder)

    return rewritten(fusion, rewrite) if names else fusion


def _concatenations(fusion: Fusion, place: Place) -> Iterator[Value]:
    """The concatenations along a dim that a tensor is computed from."""
    places, seen = [place], set[Place]()
    while places:
        place = places.pop()
        node = fusion.producers.get(place[0])
        if node is None or place in seen or place[1] is None:
            continue
        seen.add(place)
        if node.op == "cat" and concatenated(node)[1] == place[1]:
            parts, dim = concatenated(node)
            if not any(is_size(part.tensor.sizes[dim]) for part in parts):
                yield node.out
        elif isinstance(as_call(node).op.form, View | Pointwise):
            places += operands_along(node, place[1])


def _ends(cat: Node) -> Iterator[int]:
    """The index behind each tensor of a concatenation."""
    parts, dim = concatenated(cat)
    return accumulate(part.tensor.sizes[dim] for part in parts)


def _in_pieces(fusion: Fusion, node: Node, found: Pieces, builder: GraphBuilder) -> Value:
    """The result of a reduction from those of its pieces."""
    call = as_call(node)
    form, reduced, operand = call.op.form, call.dims(), call.value("arg")
    assert isinstance(form, Reduction)
    results = []
    for piece in _sliced(fusion, operand, found, builder):
        wide = compute_dtype(piece.dtype)
        piece = piece if piece.dtype is wide else builder.call("cast", piece, wide)
        results.append(builder.call(node.op, piece, list(reduced)))
    if found.dim in reduced:
        total = results[0]
        for other in results[1:]:
            total = builder.call(form.pairwise, total, other)
    else:
        place = found.dim - sum(dim < found.dim for dim in reduced)
        total = builder.call("cat", results, place)
    same = total.dtype is node.out.dtype
    made: Value = total if same else builder.call("cast", total, node.out.dtype)
    return made


def _sliced(
    fusion: Fusion, operand: Value, found: Pieces, builder: GraphBuilder
) -> Iterator[Value]:
    """The pieces of an operand: the tensors themselves where it is the concatenation of them."""
    if found.concatenated == {operand}:
        yield from concatenated(fusion.producers[operand])[0]
        return
    rank, dim = operand.tensor.rank, found.dim
    for start, end in pairwise((0, *found.ends)):
        low, high = [0] * rank, list(operand.tensor.sizes)
        low[dim], high[dim] = start, end
        yield builder.call("slice", operand, low, high, [1] * rank)
