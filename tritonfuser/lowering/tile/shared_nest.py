"""The kernel axes of rows that several programs share, each a part of every row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...heuristics.params import InnerOuterPersistentParams
from ...shapes import Guard, Index
from ...symbolic.index_expr import Axis, digit, substitute
from ..segments import Segment
from .nest import Nest, row_tiles, sides, spread, tile_over
from .tile import Tile


@dataclass(frozen=True, kw_only=True)
class SharedNest(Nest):
    """Programs walk over rows together: a part of a row each, and its sums told to one another.

    A step of the loop reads the row ``m`` and reduces its part of it; the row ``n``, ``delay``
    steps behind, is finished in it, when the sums of all parts are there.

    Attributes
    ----------
    parts : int
        Programs a row, a power of two.
    width : int
        Elements of a part.
    delay : int
        Steps of the loop between a row's sums and its results.
    """

    parts: int
    width: int
    delay: int

    @property
    def early(self) -> Tile:
        """The row that is read and reduced."""
        return next(tile for tile in self.tiles if tile.name == "m")

    @property
    def late(self) -> Tile:
        """The row that is finished."""
        return next(tile for tile in self.tiles if tile.name == "n")

    def late_place(self, index: Index) -> Index:
        """An index over the rows that are read, over those that are finished."""
        moved = {self.early.axis: digit(self.late.axis)}
        return tuple(substitute(item, moved) for item in index)

    def late_guards(self, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        places = self.late_place(tuple(guard.expr for guard in guards))
        return tuple(
            Guard(expr, guard.low, guard.high) for expr, guard in zip(places, guards, strict=True)
        )


def share_rows(segment: Segment, params: InnerOuterPersistentParams) -> SharedNest:
    """The axes of a segment with rows shared by ``params.parts`` programs."""
    s, s_axes = tile_over("s", segment.batch_axes, None)
    m, m_axes = tile_over("m", segment.looped_axes, None)
    m = replace(m, masked=True)  # the loop goes on behind the last row, to finish those before
    n = replace(m, axis=Axis("n", m.axis.extent))
    width = segment.reduced_extent // params.parts
    r, tails = row_tiles(segment.reduced, params.block_r, params.tails, width, place=0)
    rows = {**s_axes, **m_axes}
    return SharedNest(
        tiles=(s, m, n, r, *tails),
        loop="m",
        grid=((s, s.axis.extent * params.parts),),
        axes={**rows, **spread(segment.reduced, r.axis)},
        constants=sides(r, *tails),
        tails=tuple({**rows, **spread(segment.reduced, tail.axis)} for tail in tails),
        parts=params.parts,
        width=width,
        delay=params.delay,
    )
