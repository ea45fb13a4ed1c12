"""``LoopNest``: the axes that a segment is computed over."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...symbolic.index_expr import Axis


@dataclass(frozen=True, kw_only=True)
class LoopNest:
    """The axes of a segment, along which its results and its rows run.

    Attributes
    ----------
    parallel : tuple of Axis
        The axes that results run over, the slowest first by the rules; params may have them in
        another order (``axis_order.py``). A position of them is a row.
    reduced : tuple of Axis
        The axes along rows, that members reduce or scan along. Empty for a flat kernel.
    batch_axes : tuple of Axis
        Those of ``parallel`` that reductions over rows keep: one program each.
    co_reduced : tuple of Axis
        Those of ``parallel`` that one program has whole: results of its rows are reduced over them.
    crossing : tuple of Axis
        Those of ``parallel`` that make up the second tile axis of a transpose, where its params do
        not say which.
    numbered : tuple of Axis or None
        Those of ``parallel`` by the numbers that params name them by. None for a dim of one
        position.
    """

    parallel: tuple[Axis, ...] = ()
    reduced: tuple[Axis, ...] = ()
    batch_axes: tuple[Axis, ...] = ()
    co_reduced: tuple[Axis, ...] = ()
    crossing: tuple[Axis, ...] = ()
    numbered: tuple[Axis | None, ...] = ()

    @property
    def parallel_extent(self) -> int:
        """Rows: positions of ``parallel``."""
        return prod(a.extent for a in self.parallel)

    @property
    def reduced_extent(self) -> int:
        """Elements of a row: positions of ``reduced``."""
        return prod(a.extent for a in self.reduced)

    @property
    def looped_axes(self) -> tuple[Axis, ...]:
        """The axes of ``parallel`` that a program loops over where it reduces over rows."""
        return tuple(a for a in self.parallel if a not in self.batch_axes)
