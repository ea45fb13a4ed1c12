"""Loads and stores of the transposed block, where neighbouring threads would else lie far apart.

Triton gives neighbouring threads the elements along the dim of a tile with the longest run that it
proves, and those along dim 0 where it proves none: of ``x * 2`` and ``x % 305`` it proves none.
Along dim 1 of ``tl.load(p + y * 13760 + x * 2)`` a warp's elements are in 2 cache lines, but along
dim 0 in 32. So it is ``tl.trans(tl.load(tl.trans(p + y * 13760 + x * 2)))``.
"""

from __future__ import annotations

from ....heuristics.cost.memory.footprint import TensorStrides
from ....heuristics.cost.memory.runs import warp_lines
from ....heuristics.streams import Stream, StrideTerm
from ....ir import Value
from ....symbolic.index_expr import Affine
from ....symbolic.sizes import hint
from ...access.stride_terms import stride_terms_of
from ...tile.proven_runs import proven_run
from ..indexing.kernel_axes import KernelAxes


def is_transposed(axes: KernelAxes, value: Value, offset: Affine) -> bool:
    """Whether a 2-D load or store touches fewer cache lines a warp as the transposed block."""
    dims = axes.blocked(axes.dims(offset))
    found = [tile for tile in axes.tiles_of(offset) if tile.name in dims and tile.width > 1]
    sides = sorted(found, key=lambda tile: tile.place)
    if [tile.place for tile in sides] != [0, 1]:
        return False
    if any(proven_run(offset, tile) > 1 for tile in sides):
        return False
    stride_terms = stride_terms_of(offset, [tile.axis for tile in sides])
    stream = Stream(
        item_bytes=value.dtype.info.bytes, stride_terms=tuple(map(_in_numbers, stride_terms))
    )
    widths = [tile.width for tile in sides]
    strides = TensorStrides(stream.item_bytes, stream.stride_terms)
    down, along = (warp_lines(strides, widths, [(0,), (1,)], place) for place in (0, 1))
    return along < down


def transposed(axes: KernelAxes, text: str, dims: frozenset[str]) -> str:
    """The text of a block over ``dims``, transposed; a scalar's text is returned as it is."""
    return f"tl.trans({text})" if text and axes.blocked(dims) else text


def _in_numbers(term: StrideTerm) -> StrideTerm:
    """A term with the sizes of this run in place of sizes that vary."""
    return term._replace(div=hint(term.div), extent=hint(term.extent), step=hint(term.step))
