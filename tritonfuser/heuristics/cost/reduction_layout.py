"""How reductions are distributed over the threads of a program, and what warps exchange for them.

The layout is Triton's: threads run along the side of a tile that is contiguous in memory first,
each with the elements of its widest vectorized load along that side. A row that begins inside
vectors is spread over as many lanes as it has elements.

*Rows along memory.* The lanes of a row combine their partial results by shuffles, warps through
shared memory. In a scan, each vector of a thread has a result of its own, to which the sum of all
elements before it is added.

*Columns along memory*, as in sums over columns. Each warp has a partial result of every column, and
warps exchange these through shared memory. There the partial results of one column are adjacent, so
lanes with several columns each are far apart, often by a multiple of all banks: bank conflicts,
which make lanes take turns.
"""

from __future__ import annotations

from math import log2
from typing import NamedTuple

from ...device import SHARED_BANKS
from ..problem import Problem
from .counts import Number
from .numbers import PLAIN, Numbers
from .tiles import KernelTile


class ReductionLayout(NamedTuple):
    """The fields of ``Counts`` that follow from how reductions are distributed over threads."""

    lanes: Number = 1.0
    results: Number = 1.0
    row_lanes: Number = 1.0
    row_values: Number = 0.0
    exchange_clocks: Number = 0.0


class ReductionLayouts:
    """The layouts of the reductions of a problem, by tile.

    Parameters
    ----------
    reductions : float
        Reductions along rows (axis r).
    columns : int
        Reductions over rows (outer members).
    inner : bool
        Whether most bytes are contiguous along rows.
    column_operands : float
        Of ``reductions``, those whose operand is contiguous along x although ``inner`` holds.
    lanes : int
        Lanes of a warp.
    scan_share : float
        The share of ``reductions`` that are scans.
    """

    def __init__(
        self,
        *,
        reductions: float,
        columns: int,
        inner: bool,
        lanes: int,
        column_operands: float = 0.0,
        scan_share: float = 0.0,
    ) -> None:
        self._reductions, self._columns = reductions, columns
        self._column_operands = column_operands
        self._inner, self._lanes, self._scan_share = inner, lanes, scan_share

    def of_tile(
        self,
        tile: KernelTile,
        threads: int,
        inner_vector: float,
        cross_vector: float = 1.0,
        computed: float = 1.0,
    ) -> ReductionLayout:
        """The layout for one tile.

        Parameters
        ----------
        threads : int
            Of a program.
        inner_vector, cross_vector : float
            Elements of the widest vectorized load, as in ``Traffic``.
        computed : float
            Share of the tile that is computed: scans have no results for the rest.
        """
        if not (self._reductions or self._columns or tile.staged):
            return ReductionLayout()
        each = max(tile.x * tile.r / threads, 1.0)
        vector = min(each, inner_vector)
        layout = self._without_clocks(tile, threads, vector, inner_vector, computed, PLAIN)
        if tile.staged:
            return layout
        clocks = self._exchange_clocks(tile, threads, vector, PLAIN)
        if self._reductions and self._inner and self._column_operands:
            vector = min(each, cross_vector)
            clocks += self._column_operands * self._clocks(tile.x, vector, threads, PLAIN)
        return layout._replace(exchange_clocks=clocks) if clocks else layout

    def lower_bounds(
        self,
        tile: KernelTile,
        threads: Number,
        vectors: tuple[Number, Number],
        computed: Number,
        m: Numbers,
    ) -> ReductionLayout:
        """Lower bounds of all fields, for one kernel or for many (arrays), where the elements of
        the widest load are known by a lower and an upper bound alone."""
        least, most = vectors
        vector = m.minimum(m.maximum(tile.x * tile.r / threads, 1.0), least)
        layout = self._without_clocks(tile, threads, vector, most, computed, m)
        clocks = m.where(tile.staged, 0.0, self._exchange_clocks(tile, threads, vector, m))
        return layout._replace(exchange_clocks=clocks)

    def _without_clocks(
        self,
        tile: KernelTile,
        threads: Number,
        vector: Number,
        widest: Number,
        computed: Number,
        m: Numbers,
    ) -> ReductionLayout:
        """All fields but ``exchange_clocks``.

        Parameters
        ----------
        vector : float
            Adjacent elements of a thread: those of its widest load, or fewer where it has fewer.
        widest : float
            Elements of the widest load.
        """
        row_lanes, row_values = self._of_columns(tile, threads, vector, m)
        lanes, results = self._of_rows(tile, threads, vector, widest, m)
        if self._scan_share:
            along = widest if self._inner else 1.0
            runs = m.maximum(computed * tile.x * tile.r / threads / along, 1.0)
            results = results + self._scan_share * m.maximum(runs - results, 0.0)
        if tile.staged is False:
            return ReductionLayout(lanes, results, row_lanes, row_values)
        # Threads with whole rows reduce them without any other. Sums over rows they exchange once,
        # at the end, through all lanes of a warp.
        lanes = m.where(tile.staged, 1.0, lanes)
        results = m.where(tile.staged, m.maximum(tile.x / threads, 1.0), results)
        row_lanes = m.where(tile.staged, 1.0, row_lanes)
        exchanged = self._columns * tile.r * log2(self._lanes) / tile.steps
        row_values = m.where(tile.staged, exchanged, row_values)
        return ReductionLayout(lanes, results, row_lanes, row_values)

    def _of_columns(
        self, tile: KernelTile, threads: Number, vector: Number, m: Numbers
    ) -> tuple[Number, Number]:
        """(row_lanes, row_values) of reductions over rows."""
        if not self._columns:
            return 1.0, 0.0
        row_lanes = m.minimum(m.maximum(threads * vector / tile.r, 1.0), m.maximum(tile.x, 1.0))
        values = m.where(row_lanes > 1, self._columns * tile.r * row_lanes / threads, 0.0)
        return row_lanes, values

    def _of_rows(
        self, tile: KernelTile, threads: Number, vector: Number, widest: Number, m: Numbers
    ) -> tuple[Number, Number]:
        """(lanes, results) of reductions along rows."""
        if not self._reductions:
            return 1.0, 1.0
        if self._inner:
            padded = 2.0 ** m.ceil(m.log2(tile.r))
            lanes = m.minimum(1.0 * threads, m.maximum(padded / widest, 1.0))
            return lanes, m.maximum(tile.x * lanes / threads, 1.0)
        across = m.minimum(1.0 * threads, m.maximum(tile.x / vector, 1.0))
        return threads / across, m.maximum(tile.x / across, 1.0)

    def _exchange_clocks(
        self, tile: KernelTile, threads: Number, vector: Number, m: Numbers
    ) -> Number:
        """Clocks of reductions whose columns are contiguous along the side that most bytes are.
        They grow with the adjacent elements of a thread."""
        clocks: Number = 0.0
        if self._columns:
            clocks = clocks + self._columns * self._clocks(tile.r, vector, threads, m)
        if self._reductions and not self._inner:
            clocks = clocks + self._reductions * self._clocks(tile.x, vector, threads, m)
        return clocks

    def _clocks(self, columns: Number, vector: Number, threads: Number, m: Numbers) -> Number:
        """Clocks of shared memory for one reduction of contiguous columns, of 4-byte words: each
        warp writes its partial results, and all warps read the results."""
        lanes_across = m.maximum(columns / vector, 1.0)
        lanes = m.minimum(lanes_across, float(self._lanes))
        warps = threads / self._lanes
        partial = warps * lanes / lanes_across
        conflicts = lanes * m.minimum(vector * partial, SHARED_BANKS) / SHARED_BANKS
        return m.where(partial <= 1, 0.0, 2 * warps * vector * m.maximum(conflicts, 1.0))


def loads_along_both_axes(problem: Problem) -> bool:
    """Whether some loaded tensors are contiguous along x, and others along r."""
    loads = problem.full_loads
    return any(s.x_stride == 1 for s in loads) and any(s.r_stride == 1 for s in loads)


def column_operand_share(problem: Problem) -> float:
    """Share of the reductions along rows whose operand is contiguous along x, although most bytes
    are contiguous along r. Estimated by the bytes of the loads of either kind.

    Triton reduces in the layout of the operand, and converts layouts where tensors of both meet.
    """
    loads = problem.full_loads
    along_x = sum(s.total_bytes for s in loads if s.x_stride == 1)
    along_r = sum(s.total_bytes for s in loads if s.r_stride == 1)
    return along_x / (along_x + along_r) if problem.inner and along_x else 0.0
