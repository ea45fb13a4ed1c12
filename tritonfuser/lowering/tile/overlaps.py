"""Last tiles that are shifted to end with their axis, so that they need no mask.

If tiles of 32 rows cover 371 rows, the last tile has rows 339 to 370 and not 352 to 383: 13 rows
are computed and stored twice, with the same bits. ``x = min(pid * 32, 371 - 32) + arange(32)``
leaves no ``x < 371`` for each element that is loaded or stored.

NVIDIA GPUs have 7 predicate registers for a thread. If a thread has 8 rows of a tile, each with a
predicate of its own, ptxas loads a few elements, computes with them, and then loads the next ones:
a step waits for memory several times. With one predicate, or none, all loads of a step are issued
together. Kernel text 19 ops long, tiles of 32 x 32 with 4
warps, sm_90: 8 groups of loads with row masks, 1 without.
"""

from __future__ import annotations

from dataclasses import replace

from ...heuristics.cost.draws import RANDOM_WORDS
from ...symbolic.queries import is_known_multiple
from ...symbolic.sizes import is_size
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion
from .nest import Nest
from .tile import Tile

REPEATED = 1 / 8
"""Most positions that may be computed twice, as a share of the axis. They may be loaded from memory
twice: of 33 rows in two tiles of 32, nearly all would be."""

RUN = 2 * RANDOM_WORDS
"""Most random numbers that are drawn together; such a run begins at a multiple of its length."""


def with_overlaps(nest: Nest, segment: Segment, segmented: SegmentedFusion) -> Nest:
    """The nest with shifted last tiles along the axes of the grid.

    Tiles reach past the end of an axis, with a mask, where positions must not be computed twice,
    where too many would be, and where an axis is shorter than a tile or varies in length.
    """
    if type(nest) is not Nest or nest.row_split is not None:
        return nest
    if not _may_repeat(segment, segmented):
        return nest
    problem = segment.problem
    draws = problem is not None and problem.draws_random

    def overlapping(tile: Tile) -> Tile:
        fits = _fits(tile) and tile != nest.rest
        fits = fits and (not draws or is_known_multiple(tile.axis.extent, RUN))
        return replace(tile, masked=False, overlaps=True) if fits else tile

    over_programs = {tile.name for tile, _ in nest.grid}
    tiles = (overlapping(tile) if tile.name in over_programs else tile for tile in nest.tiles)
    grid = tuple((overlapping(tile), count) for tile, count in nest.grid)
    return replace(nest, tiles=tuple(tiles), grid=grid)


def _may_repeat(segment: Segment, segmented: SegmentedFusion) -> bool:
    """Whether two programs may compute the same positions.

    Not if elements are scattered, since they may be added to memory; not if a result replaces an
    input that the other program may still have to load; and not if programs are counted.
    """
    outputs = segmented.fusion.outputs
    replaced = (out.alias_of for out in outputs if out.value in segment.outputs)
    in_place = any(value in segment.inputs for value in replaced if value is not None)
    scattered = any(store.scatter is not None for store in segment.stores)
    finished = any(piece.finishes for piece in (segment, *segmented.launched_with(segment)))
    return not (in_place or scattered or finished)


def _fits(tile: Tile) -> bool:
    """Whether only the last one of several equal tiles needs the mask, and few positions repeat."""
    whole = tile.part is None and tile.stop is None and tile.limit is None and not tile.is_behind
    blocks = tile.block is not None and tile.masked and not tile.scattered
    extent, width = tile.axis.extent, tile.width
    if not blocks or not whole or is_size(extent) or extent < width:
        return False
    return -extent % width <= REPEATED * extent
