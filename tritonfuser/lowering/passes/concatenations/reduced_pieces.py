"""Fusion in, an equal Fusion whose reductions of concatenated tensors reduce each of these out.

``sum(cat([x, y], 1), [0])`` -> ``cat([sum(x, [0]), sum(y, [0])], 0)``, and ``sum(cat([x, y], 0),
[0])`` -> ``add(sum(x, [0]), sum(y, [0]))``. Ops may lie between the concatenation and the
reduction. A kernel of the one reduction computes an element of each piece, and chooses one of them;
those of the others compute one element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from ....dtypes import compute_dtype
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.forms import Pointwise, Reduction
from ....ops.table import View
from ....symbolic.index_expr import Affine, Axis, digit
from ....symbolic.queries import is_known_equal
from ....symbolic.sizes import is_size
from ...access.reads import Read, reads
from ..rewriting import rewritten
from .slices import concatenated

_MOST_PIECES = 8
"""Pieces of a reduction at most: each takes time to lower, and may be a kernel."""

_MOST_READS = 500
"""Reads that are followed at most: a chain of stencils has more."""


class ConcatenatedOperand(NamedTuple):
    """Where the operand of a reduction is pieced together.

    Attributes
    ----------
    dim : int
        The dim of the operand. It may be of several merged dims, of which one is concatenated.
    inner : int
        Positions of the dims that are merged inside the concatenated one; 1 where none is.
    ends : tuple of int
        The index behind each piece along the concatenated dim.
    concatenated : frozenset of Value
        The concatenations.
    """

    dim: int
    inner: int
    ends: tuple[int, ...]
    concatenated: frozenset[Value]


def pieces_of(fusion: Fusion, node: Node) -> ConcatenatedOperand | None:
    """Where the operand of a reduction is pieced together, if it is.

    Along a dim that the reduction keeps, where there is one.
    """
    call = as_call(node)
    if not isinstance(call.op.form, Reduction):
        return None
    reduced, found = call.dims(), _concatenations(fusion, call.value("arg"))
    for dim, inner, length in sorted(found, key=lambda place: place[0] in reduced):
        values = found[dim, inner, length]
        ends = sorted({end for value in values for end in _ends(fusion.producers[value])})
        if 1 < len(ends) <= _MOST_PIECES:
            return ConcatenatedOperand(dim, inner, tuple(ends), frozenset(values))
    return None


def reduce_pieces(fusion: Fusion, names: Collection[str]) -> Fusion:
    """The fusion with the named reductions, of those that have pieces, in pieces."""

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = pieces_of(fusion, node) if node.outs[0].name in names else None
        return None if found is None else _in_pieces(fusion, node, found, builder)

    return rewritten(fusion, rewrite) if names else fusion


def _concatenations(fusion: Fusion, operand: Value) -> dict[tuple[int, int, int], list[Value]]:
    """The concatenations that a tensor is computed from, by the dim of the tensor that they run
    along, the positions inside of them, and their length."""
    found: dict[tuple[int, int, int], list[Value]] = {}
    axes = [Axis(f"d{place}", size) for place, size in enumerate(operand.tensor.sizes)]
    queue = [Read(operand, tuple(map(digit, axes)))]
    seen = set(queue)
    for read in queue:
        node = fusion.producers.get(read.value)
        if node is None or not isinstance(as_call(node).op.form, View | Pointwise):
            continue
        if len(queue) > _MOST_READS:
            return {}
        if node.op == "cat":
            along = concatenated(node)[1]
            length = node.out.tensor.sizes[along]
            place = _place(read.index[along], axes, length)
            if place is not None and not any(is_size(end) for end in _ends(node)):
                found.setdefault((*place, length), []).append(node.out)
        needed = [Read(item.value, item.index) for item in reads(node, read)]
        fresh = dict.fromkeys(item for item in needed if item.value.is_tensor)
        queue += [item for item in fresh if item not in seen]
        seen.update(fresh)
    return found


def _place(item: Affine, axes: Sequence[Axis], length: int) -> tuple[int, int] | None:
    """The dim that an index of so many positions is one of the merged dims of, and the positions
    inside of it."""
    if item.const or len(item.terms) != 1 or item.terms[0][1] != 1:
        return None
    term = item.terms[0][0]
    if not isinstance(term.base, Axis) or term.base not in axes:
        return None
    size, merged = term.base.extent, term.div * length
    whole = is_known_equal(size // merged * merged, size)
    covers = is_known_equal(size, merged) if term.mod is None else is_known_equal(term.mod, length)
    return (axes.index(term.base), term.div) if whole and covers else None


def _ends(cat: Node) -> Iterator[int]:
    """The index behind each tensor of a concatenation."""
    parts, dim = concatenated(cat)
    return accumulate(part.tensor.sizes[dim] for part in parts)


def _in_pieces(
    fusion: Fusion, node: Node, found: ConcatenatedOperand, builder: GraphBuilder
) -> Value:
    """The result of a reduction from those of its pieces."""
    call = as_call(node)
    form, reduced, operand = call.op.form, set(call.dims()), call.value("arg")
    assert isinstance(form, Reduction)
    dim, sizes = found.dim, [*operand.tensor.sizes]
    if not is_known_equal(sizes[dim], found.ends[-1]):
        # The dims outside of the concatenated one, itself, and those inside.
        outer = sizes[dim] // (found.inner * found.ends[-1])
        sizes[dim : dim + 1] = [outer, found.ends[-1], found.inner]
        is_reduced, dim = dim in reduced, dim + 1
        reduced = {place if place < dim else place + 2 for place in reduced - {found.dim}}
        reduced |= {dim - 1, dim, dim + 1} if is_reduced else set()
        operand = builder.call("reshape", operand, sizes)
    results = []
    for piece in _sliced(fusion, operand, dim, found, builder):
        wide = compute_dtype(piece.dtype)
        piece = piece if piece.dtype is wide else builder.call("cast", piece, wide)
        results.append(builder.call(node.op, piece, sorted(reduced)))
    if dim in reduced:
        total = results[0]
        for other in results[1:]:
            total = builder.call(form.pairwise, total, other)
    else:
        total = builder.call("cat", results, dim - sum(place < dim for place in reduced))
        if total.tensor.rank != node.out.tensor.rank:
            total = builder.call("reshape", total, list(node.out.tensor.sizes))
    same = total.dtype is node.out.dtype
    made: Value = total if same else builder.call("cast", total, node.out.dtype)
    return made


def _sliced(
    fusion: Fusion, operand: Value, dim: int, found: ConcatenatedOperand, builder: GraphBuilder
) -> Iterator[Value]:
    """The pieces of an operand: the tensors themselves where it is the concatenation of them."""
    if found.concatenated == {operand}:
        parts = concatenated(fusion.producers[operand])[0]
        if len(parts) == len(found.ends):
            yield from parts
            return
    rank = operand.tensor.rank
    for start, end in pairwise((0, *found.ends)):
        low, high = [0] * rank, list(operand.tensor.sizes)
        low[dim], high[dim] = start, end
        yield builder.call("slice", operand, low, high, [1] * rank)
