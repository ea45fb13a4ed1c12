"""Maps from the axes of a segment to the axes of its kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...shapes.index_map import Guard, Index
from ...symbolic.index_expr import Affine, Axis
from ...symbolic.substitution import substitute


@dataclass(frozen=True)
class AxisMap:
    """Each axis of a segment as an expression over kernel axes, for one tile of a row.

    Attributes
    ----------
    axes : mapping
        Axis of the segment -> expression over kernel axes.
    """

    axes: Mapping[Axis, Affine]

    def index(self, index: Index) -> Index:
        """An index over the segment's axes as one over the kernel's."""
        return tuple(substitute(item, self.axes) for item in index)

    def guards(self, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        """Guards over the segment's axes as guards over the kernel's."""
        return tuple(Guard(substitute(g.expr, self.axes), g.low, g.high) for g in guards)

    def moved(self, axes: Mapping[Axis, Affine]) -> AxisMap:
        """This map with some kernel axes replaced by expressions over others."""
        met = {axis for axis, at in self.axes.items() if not at.axes().isdisjoint(axes)}
        return AxisMap({a: substitute(at, axes) if a in met else at for a, at in self.axes.items()})


@dataclass(frozen=True)
class RowMaps:
    """The maps of all tiles of a row.

    Attributes
    ----------
    blocks : AxisMap
        For the whole blocks; the only map of a kernel whose rows have no peeled tiles.
    peeled : tuple of AxisMap
        For each tile peeled off the end of the row.
    """

    blocks: AxisMap
    peeled: tuple[AxisMap, ...] = ()

    def of(self, index: Index, guards: tuple[Guard, ...] = ()) -> tuple[AxisMap, ...]:
        """The maps of the tiles that an index or its guards run over: all of a row, or the first
        alone."""
        ends = self.peeled[:1]
        here = self.blocks.index(index), self.blocks.guards(guards)
        if all(here == (end.index(index), end.guards(guards)) for end in ends):
            return (self.blocks,)
        return (self.blocks, *self.peeled)

    def along(self, axes: Iterable[Axis]) -> bool:
        """Whether one of the axes runs along a row that has peeled tiles."""
        if not self.peeled:
            return False
        return any(self.blocks.axes[a] != self.peeled[0].axes[a] for a in axes)

    def moved(self, axes: Mapping[Axis, Affine]) -> RowMaps:
        """These maps with some kernel axes replaced by expressions over others."""
        return RowMaps(self.blocks.moved(axes), tuple(m.moved(axes) for m in self.peeled))
