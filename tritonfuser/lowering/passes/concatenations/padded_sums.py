"""Fusion in, an equal Fusion with sums of padded slices of one tensor as concatenations out.

``add(pad(x[3:8], (0, 3)), pad(x[:3], (5, 0)))`` -> ``add(cat([x[3:8], x[:3]]), 0.0)``: tracers
write a roll so. The zero stays, since ``-0.0 + 0.0`` is ``0.0``. Sums of other tensors stay sums: a
kernel cuts them into boxes of one size.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from ....dtypes import Category, DataType
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....symbolic.index_expr import Axis, digit
from ....symbolic.queries import is_known_equal, is_known_less
from ....symbolic.sizes import hint
from ...access.reads import Read, sources_of
from ..rewriting import is_copy, is_positive_zero, rewritten
from .merged_slices import has_slices_to_merge


class PaddedPiece(NamedTuple):
    """Where a tensor lies along a dim, and what it is cast to, in the order of the casts."""

    start: int
    value: Value
    dtypes: tuple[DataType, ...] = ()


class PaddedSum(NamedTuple):
    """A sum of tensors that are padded with zeros along one dim: one or more of them.

    Attributes
    ----------
    dim : int
        The dim.
    pieces : tuple of PaddedPiece
        The tensors, in the order in which they are added.
    """

    dim: int
    pieces: tuple[PaddedPiece, ...]


def concatenate_padded(fusion: Fusion) -> Fusion:
    """Sums of padded slices of which exactly one has an element at each position.

    The slices are of one tensor, or they are such sums themselves: a roll along two dims.
    """
    known: dict[Value, PaddedSum] = {}
    rolls: set[Value] = set()

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = padded_sum_of(node, known)
        if found is None:
            return None
        known[node.out] = found
        if len(found.pieces) < 2 or node.op != "add":
            return None
        pieces = _in_order(found, node.out.tensor.sizes[found.dim])
        if pieces is None or not _is_roll(fusion, pieces, found.dim, rolls):
            return None
        rolls.add(node.out)
        parts = []
        for piece in pieces:
            value = piece.value
            for dtype in piece.dtypes:
                value = builder.call("cast", value, dtype)
            parts.append(value)
        made: Value = builder.call("cat", parts, found.dim)
        if made.dtype.info.category is Category.FLOAT:
            made = builder.call("add", made, 0.0)
        return made

    return rewritten(fusion, rewrite)


def padded_sum_of(node: Node, known: dict[Value, PaddedSum]) -> PaddedSum | None:
    """A node's result as a sum of padded tensors; None where it is not known to be one."""
    if node.op == "pad":
        return _of_pad(node)
    operands = [known.get(arg) if isinstance(arg, Value) else None for arg in node.args]
    found, dtype = next(iter(operands), None), node.out.dtype
    if found is not None and is_copy(node):
        return found._replace(
            pieces=tuple(p._replace(dtypes=(*p.dtypes, dtype)) for p in found.pieces)
        )
    if node.op != "add" or len(operands) != 2:
        return None
    one, other = operands
    dtypes = {value.dtype for value in (*node.operands(), node.out)}
    if one is None or other is None or one.dim != other.dim or len(dtypes) > 1:
        return None
    return PaddedSum(one.dim, (*one.pieces, *other.pieces))


def _of_pad(node: Node) -> PaddedSum | None:
    """A tensor that is padded along one dim, with zeros."""
    value, fill = node.args[0], as_call(node).arg("value")
    if not isinstance(value, Value) or not (fill is None or is_positive_zero(fill)):
        return None
    sizes = node.out.tensor.sizes
    index = tuple(digit(Axis(f"d{place}", size)) for place, size in enumerate(sizes))
    at = sources_of(node, Read(node.out, index))[0]
    dims = [
        place
        for place, (size, own) in enumerate(zip(sizes, value.tensor.sizes, strict=True))
        if not is_known_equal(size, own)
    ]
    if at.operand != value or len(dims) != 1 or len(at.guards) > 1:
        return None
    (dim,) = dims
    before = -at.guards[0].expr.const if at.guards else 0
    inside = is_known_less(-1, before) and is_known_less(
        before + value.tensor.sizes[dim] - 1, sizes[dim]
    )
    return PaddedSum(dim, (PaddedPiece(before, value),)) if inside else None


def _is_roll(
    fusion: Fusion, pieces: Sequence[PaddedPiece], dim: int, rolls: Container[Value]
) -> bool:
    values = [piece.value for piece in pieces]
    return all(value in rolls for value in values) or has_slices_to_merge(fusion, values, dim)


def _in_order(padded: PaddedSum, size: int) -> Sequence[PaddedPiece] | None:
    """The pieces one behind the other, where they fill a dim and none overlap; else None."""
    pieces = sorted(padded.pieces, key=lambda piece: hint(piece.start))
    end = 0
    for piece in pieces:
        if not is_known_equal(piece.start, end):
            return None
        end = end + piece.value.tensor.sizes[padded.dim]
    return pieces if is_known_equal(end, size) else None
