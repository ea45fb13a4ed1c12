"""The kernel axes of cooperative rows: several programs share each row, a part each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ...heuristics.params import InnerOuterPersistentParams
from ...symbolic.index_expr import Axis, digit
from ..segments import Segment
from .axis_map import RowMaps
from .nest import Nest, RowSplit
from .tile import Tile
from .tiling import peel_row, row_maps, sides, tile_over


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


def cooperative_nest(segment: Segment, params: InnerOuterPersistentParams) -> CooperativeNest:
    """The axes of a segment whose rows are shared by ``params.parts`` programs each."""
    s, s_axes = tile_over("s", segment.batch_axes, None)
    m, m_axes = tile_over("m", segment.looped_axes, None)
    m = replace(m, masked=True)  # the loop goes on past the last row, to finish those before
    n = replace(m, axis=Axis("n", m.axis.extent))
    width = segment.reduced_extent // params.parts
    r, peeled = peel_row(segment.reduced, params.block_r, params.tails, width, place=0)
    return CooperativeNest(
        tiles=(s, m, n, r, *peeled),
        loop="m",
        grid=((s, s.axis.extent * params.parts),),
        maps=row_maps({**s_axes, **m_axes}, segment.reduced, (r, *peeled)),
        constants=sides(r, *peeled),
        row_split=RowSplit(params.parts, width),
        delay=params.delay,
    )
