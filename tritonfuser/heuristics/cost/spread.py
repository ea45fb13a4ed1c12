"""How reductions lie over the threads of a program, and what its warps exchange for them.

Threads are laid along memory first, each with the neighbours of its widest load there, as Triton
lays them out. A row that begins inside vectors lies over as many lanes as it has elements.

Of a scan each run of neighbours of a thread has a result of its own, to which those before it are
added.

Where memory runs along the results, as in sums of columns, each warp has a partial result of each
of them, and they exchange these through shared memory. There the partial results of one column are
neighbours. Lanes with several columns each are then far apart, often by all banks, and the words of
their lanes are written and read one after another.
"""

from __future__ import annotations

from math import log2
from typing import NamedTuple

from ...device import SHARED_BANKS
from ..problem import Problem
from .counts import Number
from .numbers import PLAIN, Numbers
from .tiles import KernelTile


class Spread(NamedTuple):
    """How reductions lie over the threads of a program: fields of ``Counts``, which says more."""

    lanes: Number = 1.0
    results: Number = 1.0
    row_lanes: Number = 1.0
    row_values: Number = 0.0
    exchange_clocks: Number = 0.0


class Spreading:
    """How reductions of a problem lie over threads.

    Parameters
    ----------
    reductions : float
        Of each row.
    columns : int
        Reductions over rows.
    inner : bool
        Whether memory runs along the rows.
    across : float
        Of these reductions, those of operands that memory runs along the results of.
    lanes : int
        Lanes of a warp.
    scan_share : float
        The share of these reductions that are scans.
    """

    def __init__(
        self,
        *,
        reductions: float,
        columns: int,
        inner: bool,
        lanes: int,
        across: float = 0.0,
        scan_share: float = 0.0,
    ) -> None:
        self._reductions, self._columns, self._across = reductions, columns, across
        self._inner, self._lanes, self._scan_share = inner, lanes, scan_share

    def over(
        self,
        tile: KernelTile,
        threads: int,
        neighbours: float,
        beside: float = 1.0,
        computed: float = 1.0,
    ) -> Spread:
        """How they lie over the threads of a program whose widest load has ``neighbours``, and
        whose widest along the other side has those ``beside``. Scans have no results for what
        is not in the ``computed`` share of the tile."""
        each = max(tile.x * tile.r / threads, 1.0)
        wide = min(each, neighbours)
        found = self._lanes_over(tile, threads, wide, neighbours, computed, PLAIN)
        if tile.staged:
            return found
        clocks = self._exchange_clocks(tile, threads, wide, PLAIN)
        if self._reductions and self._inner and self._across:
            clocks += self._across * self._clocks(tile.x, min(each, beside), threads, PLAIN)
        return found._replace(exchange_clocks=clocks) if clocks else found

    def at_least(
        self,
        tile: KernelTile,
        threads: Number,
        neighbours: tuple[Number, Number],
        computed: Number,
        m: Numbers,
    ) -> Spread:
        """The least lanes, results and clocks, where the widest load has so many neighbours at
        least and at most: of one kernel, or of many."""
        least, most = neighbours
        wide = m.minimum(m.maximum(tile.x * tile.r / threads, 1.0), least)
        found = self._lanes_over(tile, threads, wide, most, computed, m)
        clocks = m.where(tile.staged, 0.0, self._exchange_clocks(tile, threads, wide, m))
        return found._replace(exchange_clocks=clocks)

    def _lanes_over(
        self,
        tile: KernelTile,
        threads: Number,
        wide: Number,
        neighbours: Number,
        computed: Number,
        m: Numbers,
    ) -> Spread:
        """All but the clocks, by the neighbours of a thread."""
        lanes: Number = 1.0
        results: Number = 1.0
        row_lanes: Number = 1.0
        values: Number = 0.0
        if self._columns:
            row_lanes = m.minimum(m.maximum(threads * wide / tile.r, 1.0), m.maximum(tile.x, 1.0))
            values = m.where(row_lanes > 1, self._columns * tile.r * row_lanes / threads, 0.0)
        if self._reductions and self._inner:
            padded = 2.0 ** m.ceil(m.log2(tile.r))
            lanes = m.minimum(1.0 * threads, m.maximum(padded / neighbours, 1.0))
            results = m.maximum(tile.x * lanes / threads, 1.0)
        elif self._reductions:
            across = m.minimum(1.0 * threads, m.maximum(tile.x / wide, 1.0))
            lanes, results = threads / across, m.maximum(tile.x / across, 1.0)
        if self._scan_share:
            along = neighbours if self._inner else 1.0
            runs = m.maximum(computed * tile.x * tile.r / threads / along, 1.0)
            results = results + self._scan_share * m.maximum(runs - results, 0.0)
        if tile.staged is False:
            return Spread(lanes, results, row_lanes, values)
        # Threads with whole rows reduce them by themselves. Sums over rows they exchange once, at
        # the end, through all lanes of a warp.
        lanes = m.where(tile.staged, 1.0, lanes)
        results = m.where(tile.staged, m.maximum(tile.x / threads, 1.0), results)
        row_lanes = m.where(tile.staged, 1.0, row_lanes)
        exchanged = self._columns * tile.r * log2(self._lanes) / tile.steps
        values = m.where(tile.staged, exchanged, values)
        return Spread(lanes, results, row_lanes, values)

    def _exchange_clocks(
        self, tile: KernelTile, threads: Number, wide: Number, m: Numbers
    ) -> Number:
        """Clocks of reductions of columns that lie along memory as most bytes do. They grow with
        the neighbours of a thread."""
        clocks: Number = 0.0
        if self._columns:
            clocks = clocks + self._columns * self._clocks(tile.r, wide, threads, m)
        if self._reductions and not self._inner:
            clocks = clocks + self._reductions * self._clocks(tile.x, wide, threads, m)
        return clocks

    def _clocks(self, columns: Number, wide: Number, threads: Number, m: Numbers) -> Number:
        """Clocks of shared memory for a reduction of columns that lie along memory, of words of 4
        bytes: each warp writes its partial results, and all read the results."""
        across = m.maximum(columns / wide, 1.0)
        beside = m.minimum(across, float(self._lanes))
        warps = threads / self._lanes
        partial = warps * beside / across
        at_a_bank = m.maximum(beside * m.minimum(wide * partial, SHARED_BANKS) / SHARED_BANKS, 1.0)
        return m.where(partial <= 1, 0.0, 2 * warps * wide * at_a_bank)


def lies_both_ways(problem: Problem) -> bool:
    """Whether some of what is loaded lies along x, and some along the rows."""
    loads = problem.full_loads
    return any(s.x_stride == 1 for s in loads) and any(s.r_stride == 1 for s in loads)


def across_share(problem: Problem) -> float:
    """The share of what is loaded that lies along x, where most bytes lie along the rows: the share
    of the reductions whose operands do, as far as that is known.

    Triton reduces in the layout of the operand, and changes layouts where tensors of both meet.
    """
    loads = problem.full_loads
    along_x = sum(s.total_bytes for s in loads if s.x_stride == 1)
    along_r = sum(s.total_bytes for s in loads if s.r_stride == 1)
    return along_x / (along_x + along_r) if problem.inner and along_x else 0.0
