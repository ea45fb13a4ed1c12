"""Sums over padded parts, computed over the rows that exist, without the padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import Const, Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.forms import Reduction
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import is_size
from ..access.atomic_axes import AtomicAxes
from ..passes.constant_folding import neutral
from ..segments.member import Member, Share


@dataclass(frozen=True)
class _PaddedParts:
    """``reshape(pad(source))`` under a reduction: one dim is padded behind, then cut into parts.

    Attributes
    ----------
    source : Value
        What is padded.
    pad : Node
        The padding.
    dim : int
        The dim of ``source`` that is padded. The reshape has two dims for it.
    interleaved : bool
        The second of the two counts the parts: part ``i`` of ``n`` has rows ``i``, ``i + n``, ...
        Else the first one does, and a part has neighbouring rows.
    length, count : int
        Rows of a part, those of the padding among them, and the number of parts.
    others : tuple of int
        The further dims of the reshape that are reduced.
    """

    source: Value
    pad: Node
    dim: int
    interleaved: bool
    length: int
    count: int
    others: tuple[int, ...]

    @property
    def in_last(self) -> int:
        """Rows of the last part; parts that have a last row, where these are interleaved."""
        rows = self.source.tensor.sizes[self.dim]
        if self.interleaved:
            return rows - self.count * (self.length - 1)
        return rows - self.length * (self.count - 1)


def over_existing_rows(fusion: Fusion, axes: AtomicAxes, node: Node) -> Member | None:
    """A reduction over padded parts as one over the rows that exist; None where it is none.

    ``sum(reshape(pad(x, [0, 3]), [8, 128]), [1])`` is, for a program that has the rows of one part,
    the sum of those rows of ``x``. So it fits beside results that run over the rows of ``x``. Of
    parts with interleaved rows the same is ``sum(reshape(pad(x, [0, 3]), [128, 8]), [0])``.
    """
    found = _padded_parts(fusion, node)
    if found is None or not _is_neutral(node, found.pad, found.source.tensor.rank - 1 - found.dim):
        return None
    if not is_size(found.in_last) and found.in_last <= 0:
        return None  # open sizes may leave the last part empty: its loop has no steps then
    source = found.source
    rows, part = axes.atoms(source)[found.dim], axes.atoms(node.out)[found.dim]
    if not rows or len(part) != 1:
        return None
    along = tuple(map(axes.axis, rows))
    inside = tuple(axes.axis(atom) for d in found.others for atom in axes.atoms(source)[d - 1])
    if found.interleaved and inside:
        return None
    share = Share(source, axes.axis(part[0]), along, found.length, inside, found.interleaved)
    return Member(node, axes.index(node.out), axes.index(source), (*along, *inside), share=share)


def _padded_parts(fusion: Fusion, node: Node) -> _PaddedParts | None:
    """What a reduction reads, where that is a tensor padded in one dim, which is cut into parts."""
    call = as_call(node)
    view = fusion.producers.get(call.value("arg")) if isinstance(call.op.form, Reduction) else None
    padded = None if view is None or view.op != "reshape" else as_call(view).value("arg")
    pad = None if padded is None else fusion.producers.get(padded)
    if view is None or pad is None or pad.op != "pad" or not call.dims():
        return None
    source, (inner, *others) = pad.args[0], call.dims()
    assert isinstance(source, Value)
    sizes, parts = source.tensor.sizes, view.out.tensor.sizes
    ends = zip(pad.out.tensor.sizes, sizes, strict=True)
    dim = next((d for d, (end, size) in enumerate(ends) if not is_known_equal(end, size)), -1)
    if len(parts) != len(sizes) + 1 or not dim <= inner <= dim + 1:
        return None
    interleaved = inner == dim
    length, count = parts[dim + (not interleaved)], parts[dim + interleaved]
    whole = (*sizes[:dim], length * count, *sizes[dim + 1 :])
    cut = (*sizes[:dim], *parts[dim : dim + 2], *sizes[dim + 1 :])
    if not _are_equal(pad.out.tensor.sizes, whole) or not _are_equal(parts, cut):
        return None
    return _PaddedParts(source, pad, dim, interleaved, length, count, tuple(others))


def _are_equal(sizes: Sequence[int], others: Sequence[int]) -> bool:
    """Whether two shapes of one rank are the same at all sizes."""
    return all(map(is_known_equal, sizes, others))


def _is_neutral(node: Node, pad: Node, place: int) -> bool:
    """Whether the padding is behind one dim, and does not change the reduction."""
    form, (_, widths, fill) = as_call(node).op.form, pad.args
    assert isinstance(form, Reduction) and isinstance(widths, tuple)
    others = (width for number, width in enumerate(widths) if number != 2 * place + 1)
    wanted = neutral(form.identity, pad.out.dtype)
    alone = all(isinstance(width, Const) and width.value == 0 for width in others)
    return alone and isinstance(fill, Const) and fill.value == wanted.value
