"""Last tiles of an axis that begin earlier, so that they end with it and need no mask.

Where tiles of 32 rows cover 371, the last one has rows 339 to 370 and not 352 to 383: 13 rows are
computed and stored twice, to the same bits. ``x = min(pid * 32, 371 - 32) + arange(32)`` leaves no
``x < 371`` for each element that is loaded or stored.

A GPU of NVIDIA has 7 predicate registers. Of a tile of which each thread has 8 rows, each row with
a predicate of its own, ptxas loads a few elements, computes with them, and loads the next ones in
the registers that are free again: a step waits for memory several times. With one predicate, or
none, all loads of a step are issued together. Kernel text 19 ops long, tiles of 32 x 32 with 4
warps, sm_90: 8 groups of loads with row masks, 1 without.
"""

from __future__ import annotations

from dataclasses import replace

from ...symbolic.queries import is_known_multiple
from ...symbolic.sizes import is_size
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion
from .neighbours import PHILOX_WORDS
from .nest import Nest
from .tile import Tile

REPEATED = 1 / 8
"""Share of positions that may be computed twice. What they load comes from memory again where other
tiles come between: of 33 rows in two tiles of 32 nearly all would."""

RUN = 2 * PHILOX_WORDS
"""Random numbers that are drawn together, at most: they begin at a multiple of as many."""


def with_overlaps(nest: Nest, segment: Segment, segmented: SegmentedFusion) -> Nest:
    """The nest, with the last tile along each axis of the grid inside of the axis.

    Where no program may compute what another one does, where much would be computed twice, or where
    an axis is shorter than a tile or varies in length, tiles reach past its end, with a mask.
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
    """Whether positions may be computed by two programs.

    Elements that are scattered may be added to what is there, and results may replace an input that
    the other program has yet to load. The programs of a finished reduction are counted.
    """
    outputs = segmented.fusion.outputs
    replaced = (out.alias_of for out in outputs if out.value in segment.outputs)
    in_place = any(value in segment.inputs for value in replaced if value is not None)
    scattered = any(store.scatter is not None for store in segment.stores)
    finished = any(piece.finishes for piece in (segment, *segmented.launched_with(segment)))
    return not (in_place or scattered or finished)


def _fits(tile: Tile) -> bool:
    """Whether a tile is one of several alike of which the last one alone needs its mask."""
    whole = tile.part is None and tile.stop is None and tile.limit is None and not tile.is_behind
    blocks = tile.block is not None and tile.masked and not tile.scattered
    extent, width = tile.axis.extent, tile.width
    if not blocks or not whole or is_size(extent) or extent < width:
        return False
    return -extent % width <= REPEATED * extent
