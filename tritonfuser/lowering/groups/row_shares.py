"""Sums over padded parts, computed over the rows that exist, without the padding."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import Const, Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.table import Reduction
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import is_size
from ..access.atomic_axes import AtomicAxes
from ..passes.constant_folding import neutral
from ..segments import Member, Share


def over_existing_rows(fusion: Fusion, axes: AtomicAxes, node: Node) -> Member | None:
    """A reduction over padded parts as one over the rows that exist; None where it is none.

    ``sum(reshape(pad(x, [0, 3]), [8, 128]), [1])`` is, for a program that has the rows of one part,
    the sum of those rows of ``x``. So it fits beside results that run over the rows of ``x``. Of
    parts with interleaved rows the same is ``sum(reshape(pad(x, [0, 3]), [128, 8]), [0])``.
    """
    call = as_call(node)
    view = fusion.producers.get(call.value("arg")) if isinstance(call.op.form, Reduction) else None
    padded = None if view is None or view.op != "reshape" else as_call(view).value("arg")
    pad = None if padded is None else fusion.producers.get(padded)
    if view is None or pad is None or pad.op != "pad" or not call.dims():
        return None
    source, (inner, *others) = pad.args[0], call.dims()
    assert isinstance(source, Value)
    sizes, parts = source.tensor.sizes, view.out.tensor.sizes
    if len(parts) != len(sizes) + 1:
        return None
    ends = zip(pad.out.tensor.sizes, sizes, strict=True)
    dim = next((d for d, (end, size) in enumerate(ends) if not is_known_equal(end, size)), -1)
    if not dim <= inner <= dim + 1:
        return None
    interleaved = inner == dim
    length, count = (parts[dim + (not interleaved)], parts[dim + interleaved])
    whole = (*sizes[:dim], length * count, *sizes[dim + 1 :])
    cut = (*sizes[:dim], *parts[dim : dim + 2], *sizes[dim + 1 :])
    if not _are_equal(pad.out.tensor.sizes, whole) or not _are_equal(parts, cut):
        return None
    # Rows of the last part, where each but the last of them, or of the parts, is whole. Where sizes
    # vary it may have none at some of them.
    left = sizes[dim] - (count * (length - 1) if interleaved else length * (count - 1))
    if not is_size(left) and left <= 0:
        return None
    if not _is_neutral(node, pad, len(sizes) - 1 - dim):
        return None
    rows, part = axes.atoms(source)[dim], axes.atoms(node.out)[dim]
    if len(rows) != 1 or len(part) != 1:
        return None
    along = axes.axis(rows[0])
    inside = tuple(axes.axis(atom) for d in others for atom in axes.atoms(source)[d - 1])
    if interleaved and inside:
        return None
    share = Share(source, axes.axis(part[0]), along, length, inside, interleaved)
    return Member(node, axes.index(node.out), axes.index(source), (along, *inside), share=share)


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
