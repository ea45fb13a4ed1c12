"""Loads and stores whose addresses are written as the transposed block, so that threads that are
neighbours have elements that are near each other in memory.

Triton gives neighbouring threads the elements along the dim of a tile with the longest run that it
proves, and those along dim 0 where it proves none: of ``x * 2`` and ``x % 305`` it proves none.
Along dim 1 of ``tl.load(p + y * 13760 + x * 2)`` a warp's elements are in 8 sectors, but along
dim 0 in 32. So it is ``tl.trans(tl.load(tl.trans(p + y * 13760 + x * 2)))``.
"""

from __future__ import annotations

from ....heuristics.cost.footprint import warp_bytes
from ....heuristics.problem import Leg, Stream
from ....ir import Value
from ....symbolic.index_expr import Affine
from ....symbolic.sizes import hint
from ...access.legs import legs_of
from ...tile.proven_runs import proven_run
from ..index_text import IndexWriter


def is_turned(index: IndexWriter, value: Value, offset: Affine) -> bool:
    """Whether a load or store is of the transposed block, of a tile with two dims."""
    dims = index.blocked(index.dims(offset))
    found = [tile for tile in index.met(offset) if tile.name in dims and tile.width > 1]
    sides = sorted(found, key=lambda tile: tile.place)
    if [tile.place for tile in sides] != [0, 1]:
        return False
    if any(proven_run(offset, tile) > 1 for tile in sides):
        return False
    legs = legs_of(offset, [tile.axis for tile in sides])
    stream = Stream(item_bytes=value.dtype.info.bytes, legs=tuple(map(_in_numbers, legs)))
    widths = [tile.width for tile in sides]
    down, along = (warp_bytes(stream, widths, [(0,), (1,)], place) for place in (0, 1))
    return along < down


def turned(index: IndexWriter, text: str, dims: frozenset[str]) -> str:
    """A block over some axes, transposed; what is no block stays as it is."""
    return f"tl.trans({text})" if text and index.blocked(dims) else text


def _in_numbers(leg: Leg) -> Leg:
    """The same in the numbers of this run."""
    return Leg(leg.axis, hint(leg.div), hint(leg.extent), hint(leg.step))
