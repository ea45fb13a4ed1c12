"""``TileCounting``: the counts that depend on params by the tile alone."""

from __future__ import annotations

from ...lazy import cached_property
from ..problem import ElementWork, Problem
from .counts import Number, TileCounts
from .numbers import ARRAYS, PLAIN, Numbers
from .problem_counts import accumulators, scan_share
from .reduction_layout import loads_along_both_axes
from .tiles import KernelTile


class TileCounting:
    """The ``TileCounts`` of a problem's kernels, by tile.

    Attributes
    ----------
    accumulators : float
        Numbers that an element of a step carries along a row: see ``accumulators``.
    positions : int
        Positions of the loop nest.
    """

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        self._problem, self._work = problem, work
        self.positions = problem.parallel * max(problem.reduced, 1)
        self.accumulators = accumulators(problem, work)
        self._full_loads = float(len(problem.full_loads))
        self._scan_share = scan_share(problem, work)
        self._found: dict[KernelTile, TileCounts] = {}

    @cached_property
    def _reads_parts(self) -> bool:
        """Whether a tensor is loaded at a part of the positions."""
        return any(s.accessed_share < 1 for s in self._problem.streams if not s.is_store)

    @cached_property
    def _converts_layouts(self) -> bool:
        """Whether loads are contiguous along different axes."""
        return loads_along_both_axes(self._problem)

    def of_one(self, tile: KernelTile) -> TileCounts:
        """The counts of kernels with a tile, cached."""
        found = self._found.get(tile)
        if found is None:
            found = self._found[tile] = self._counts(tile, PLAIN)
        return found

    def of_many(self, tiles: KernelTile) -> TileCounts:
        """The counts of many kernels, as arrays."""
        return self._counts(tiles, ARRAYS)

    def _counts(self, tile: KernelTile, m: Numbers) -> TileCounts:
        work, problem, size = self._work, self._problem, tile.x * tile.r
        kept_tensors = self._full_loads * problem.dependent_outputs
        positions = m.maximum(tile.programs * tile.steps * size, 1)
        loops = problem.outer_loops
        turns: Number = loops * tile.steps if problem.outer_members else 1
        turns = turns + self._scan_share * (tile.steps * tile.passes - turns)
        reducing = work.reducing * (tile.passes if problem.scans else loops)
        return TileCounts(
            programs=1.0 * tile.programs,
            steps=1.0 * tile.steps,
            passes=1.0 * tile.passes,
            valid=m.minimum(self.positions / positions, 1.0),
            instructions=work.before * tile.passes + reducing + work.after,
            special=work.special_before * tile.passes + work.special_after,
            reduced_steps=1.0 * tile.pieces * turns,
            kept_tensors=kept_tensors * tile.keeps_rows,
            accumulators=self.accumulators * tile.loops,
            serial_steps=m.maximum(
                self._has_barriers(tile, m), 1.0 * (tile.masked + self._has_masks(tile) > 0)
            ),
            staged=1.0 * tile.staged,
        )

    def _has_masks(self, tile: KernelTile) -> Number:
        """1 in a loop whose loads have masks, since each of its tensors is read at a part of the
        positions. ptxas unrolls no such loop. H200, sums over a concatenation of two tensors:
        1135 us, for which 613 were predicted before this was known, 751 now."""
        return 0.0 if tile.loops is False else 1.0 * tile.loops * self._reads_parts

    def _has_barriers(self, tile: KernelTile, m: Numbers) -> Number:
        """1 where each step of a loop has a barrier of the program's warps: to convert layouts, to
        reduce the rows of the step, to scan them, or to exchange staged rows."""
        if tile.loops is False:
            return 0.0
        found = 1.0 * (tile.loops * (tile.x > 1) * (tile.r > 1) * self._converts_layouts)
        found = m.maximum(found, 1.0 * tile.over_rows * (self._work.reductions > 0))
        found = m.maximum(found, 1.0 * tile.loops * self._problem.scans)
        return m.maximum(found, 1.0 * tile.loops * tile.staged)

    def computed_share(
        self, tile: KernelTile, threads: Number, inner_vector: Number, m: Numbers
    ) -> Number:
        """The share of a tile that is computed, where the tile reaches past the end of its rows.

        A row is computed in turns, in each of which all threads have one vector of
        ``inner_vector`` elements. ptxas drops the turns that begin behind the end of the row. It
        does not if the length of rows varies; that is left out here, so that kernels with open
        sizes get the params of constant sizes.
        """
        turn = threads * inner_vector
        if not self._problem.inner:
            vector = m.minimum(m.maximum(tile.x * tile.r / threads, 1.0), inner_vector)
            turn = m.maximum(threads * vector / tile.x, 1.0)
        found = m.ceil(max(self._problem.reduced, 1) / turn) * turn / tile.r
        along_rows = 1 * tile.loops > 1 * tile.over_rows
        found = m.where(along_rows, 1.0, m.minimum(found, 1.0))
        return m.where(tile.staged, max(self._problem.reduced, 1) / tile.r, found)
