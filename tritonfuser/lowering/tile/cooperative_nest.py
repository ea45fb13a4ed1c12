"""The kernel axes of cooperative rows: several programs share each row, one part each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ...heuristics.params import InnerOuterPersistentParams
from ...symbolic.index_expr import Affine, Axis, digit
from ..segments.segment import Segment
from .axis_map import RowMaps
from .nest import Nest, RowSplit
from .tile import Tile
from .tiling import row_maps, sides, tiles_of_part


@dataclass(frozen=True, kw_only=True)
class CooperativeNest(Nest):
    """The kernel axes of programs that share rows and loop over them together.

    A step of the loop reads the program's part of row ``m`` and reduces it. The same step
    finishes row ``n``, which is ``delay`` steps behind: by then the sums of all parts of that row
    have been published.

    Attributes
    ----------
    row_split : RowSplit
        How programs share a row.
    delay : int
        Steps of the loop between a row's sums and its results.
    """

    row_split: RowSplit
    delay: int

    @property
    def early(self) -> Tile:
        """The row that is read and reduced."""
        return next(tile for tile in self.tiles if tile.name == "m")

    @property
    def late(self) -> Tile:
        """The row that is finished."""
        return next(tile for tile in self.tiles if tile.name == "n")

    @cached_property
    def late_maps(self) -> RowMaps:
        """Where the segment's axes are for the row that is finished."""
        return self.maps.moved({self.early.axis: digit(self.late.axis)})


def cooperative_nest(
    segment: Segment,
    params: InnerOuterPersistentParams,
    groups: Tile,
    rows: Tile,
    places: Mapping[Axis, Affine],
) -> CooperativeNest:
    """The axes of a segment whose rows are shared by ``params.parts`` programs each.

    Parameters
    ----------
    groups : Tile
        The groups of programs that share rows.
    rows : Tile
        The rows of a group.
    places : mapping
        Where the segment's axes are on these two, but for those along a row.
    """
    m = replace(rows, masked=True)  # the loop goes on past the last row, to finish those before
    n = replace(m, axis=Axis("n", m.axis.extent), part=None)
    edges = params.tails[-1] if params.align > 1 else 0
    split = RowSplit(params.parts, params.block_r + sum(params.tails) - edges)
    row = segment.reduced_extent
    tiles = tiles_of_part(row, params.block_r, params.tails, split.before_last)
    return CooperativeNest(
        tiles=(groups, m, n, *tiles),
        loop="m",
        grid=((groups, groups.axis.extent * params.parts),),
        maps=row_maps(places, segment.reduced, tiles),
        constants=sides(*tiles),
        row_split=split,
        delay=params.delay,
    )
