"""``Counting``: a problem and params -> ``Counts``: programs, steps, bytes, instructions.

Everything here is arithmetic on facts; nothing is fitted.
"""

from __future__ import annotations

from math import ceil

from ...device import WORD_BYTES
from ...lazy import cached_property
from ..params import InnerOuterPersistentParams, KernelParams
from ..problem import ElementWork, Problem
from ..streams import Stream
from .constants import CARRIED_BY_MOMENTS, Constants
from .counts import Counts, ElementCounts, Number, ProblemCounts, TileCounts
from .draws import philox_cost
from .flat.traffic import FlatStreams, flat_streams
from .gathered import overfetched_bytes
from .model import registers_per_element
from .numbers import ARRAYS, PLAIN, Numbers
from .reduction_layout import ReductionLayouts, column_operand_share, loads_along_both_axes
from .registers import HOISTED_RATIO, HoistedLoads, register_limit
from .rows.staged import all_fit
from .rows.traffic import RowStreams
from .strided import with_axes
from .tiles import KernelTile, Launches, is_flat_tile, tile_of
from .traffic import Traffic


class Counting:
    """The ``Counts`` of kernels of one problem, by their params. Not for matrix products.

    What no params change is counted once; what tiles touch of tensors is counted once for each
    distinct tile.
    """

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        problem = with_axes(problem)
        columns, reduced = problem.outer_members, max(problem.reduced, 1)
        self._problem, self._work = problem, work
        self._positions = problem.parallel * reduced
        self._moved = problem.moved_bytes + problem.result_bytes + overfetched_bytes(problem)
        self._full_loads = float(len(problem.full_loads))
        self._reads_parts = any(s.accessed_share < 1 for s in problem.streams if not s.is_store)
        self._converts_layouts = loads_along_both_axes(problem)
        self._accumulators = _accumulators(problem, work)
        self._row_words = _row_words(problem)
        self._scan_share = _scan_share(problem, work)
        self._of_problem = ProblemCounts(
            loads=float(sum(not s.is_store for s in problem.streams)),
            draws=float(work.draws),
            reductions=float(work.reductions),
            columns=float(columns),
            scans=self._scan_share * work.reductions,
            loaded_words=problem.loaded_words,
            is_flat=float(not problem.reduction_depth and not columns and not problem.scans),
            register_factor=work.registers,
        )
        self._tiles: dict[KernelTile, TileCounts] = {}
        self._reductions = ReductionLayouts(
            reductions=float(work.reductions),
            columns=columns,
            column_operands=_column_operands(problem, work),
            inner=problem.inner,
            lanes=problem.device.warp_size,
            scan_share=self._scan_share,
        )
        self._last: tuple[KernelParams, KernelTile] | None = None

    @cached_property
    def _streams(self) -> RowStreams:
        return RowStreams(self._problem)

    @cached_property
    def _hoisted(self) -> HoistedLoads:
        return HoistedLoads(self._problem)

    @cached_property
    def _flat_streams(self) -> FlatStreams:
        return flat_streams(self._problem)

    def registers_per_element(self, c: Constants, in_registers: bool) -> float:
        """Lower bound of the registers that an element of a thread needs in a kernel without
        spills.

        It is the larger of two: by the predicted registers, and by those with hoisted loads, of
        which the compiler can save ``HOISTED_RATIO``.
        """
        element = ElementCounts(
            is_flat=self._of_problem.is_flat,
            kept_tensors=0.0,
            accumulators=0.0 if in_registers else self._accumulators,
            columns=self._of_problem.columns,
            loaded_words=self._of_problem.loaded_words,
        )
        each, factor = float(registers_per_element(element, c)), self._of_problem.register_factor
        return max((each + self._hoisted.per_element) / HOISTED_RATIO, factor * each)

    def hoisted_registers(self, params: KernelParams, wanted: float) -> float:
        """Registers of a thread if all loads of a step are hoisted: see ``HoistedLoads``.

        If the registers of a compiled kernel are known, they include those of its hoisted loads.
        """
        return float(self._hoisted_registers(self._tile(params), params.num_warps, wanted, PLAIN))

    def hoisted_registers_of(self, many: Launches, wanted: Number) -> Number:
        """``hoisted_registers`` of many kernels, as an array."""
        return self._hoisted_registers(many.tile, many.warps, wanted, ARRAYS)

    def _hoisted_registers(
        self, tile: KernelTile, warps: Number, wanted: Number, m: Numbers
    ) -> Number:
        threads = warps * self._problem.device.warp_size
        predicted = wanted / self._of_problem.register_factor
        return m.maximum(self._hoisted.registers(tile, threads, predicted, m), wanted)

    def reread_bytes(self, params: KernelParams) -> dict[Stream, float]:
        """Bytes of each tensor that programs of a kernel with rows load again, after the L2 cache
        has evicted them. Empty for flat kernels."""
        if is_flat_tile(self._problem, params):
            return {}
        return self._streams.reread_bytes(self._tile(params))

    def sector_refetch_bytes(self, params: KernelParams) -> float:
        """Bytes that a kernel with rows moves again, because the L2 cache evicts the rest of
        partially used sectors before its use. 0 for flat kernels."""
        if is_flat_tile(self._problem, params):
            return 0.0
        tile, threads = self._tile(params), params.num_warps * self._problem.device.warp_size
        return self._streams.sector_refetch_bytes(params, tile, _align(params), threads)

    def counts(self, params: KernelParams) -> Counts:
        """The counts of the kernel with these params."""
        tile = self._tile(params)
        threads = params.num_warps * self._problem.device.warp_size
        traffic, refetched = self._traffic(params, tile, threads)
        size = tile.x * tile.r
        row_elements = size if _align(params) > 1 else tile.r
        computed = 1.0
        if _is_one_tile(params):
            computed = float(self.computed_share(tile, threads, traffic.inner_vector, PLAIN))
        of_problem = self._of_problem
        if of_problem.draws:
            draws = of_problem.draws * philox_cost(self._problem, params, tile, size / threads)
            of_problem = of_problem._replace(draws=draws)
        return Counts(
            *of_problem,
            *self._of_tile(tile),
            *self._reductions.of_tile(
                tile, threads, traffic.inner_vector, traffic.cross_vector, computed
            ),
            *traffic.moved,
            *traffic.windows,
            warps=float(params.num_warps),
            threads=float(threads),
            stages=float(params.num_stages if tile.loops else 1),
            prefetches=float(params.prefetches),
            elements=max(size * computed / threads, 1.0),
            computed=computed,
            moved_bytes=self._moved + refetched,
            lines=traffic.lines,
            accesses=traffic.accesses,
            index_instructions=traffic.index_instructions,
            written_bytes=traffic.written_bytes,
            slice_bytes=traffic.slice_bytes,
            loaded=traffic.loaded_elements / size,
            addresses=traffic.addresses,
            tail_elements=tile.kept / threads,
            row_words=self._row_words * max(row_elements * computed / threads, 1.0),
            register_limit=float(register_limit(self._problem.device, params)),
            waiting_s=_waiting(params, tile.steps),
        )

    def _of_tile(self, tile: KernelTile) -> TileCounts:
        found = self._tiles.get(tile)
        if found is None:
            found = self._tiles[tile] = self._tile_counts(tile, PLAIN)
        return found

    def _tile_counts(self, tile: KernelTile, m: Numbers) -> TileCounts:
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
            valid=m.minimum(self._positions / positions, 1.0),
            instructions=work.before * tile.passes + reducing + work.after,
            special=work.special_before * tile.passes + work.special_after,
            reduced_steps=1.0 * tile.pieces * turns,
            kept_tensors=kept_tensors * tile.keeps_rows,
            accumulators=self._accumulators * tile.loops,
            serial_steps=m.maximum(
                self._synchronizes(tile, m), 1.0 * (tile.masked + self._masks(tile) > 0)
            ),
            staged=1.0 * tile.staged,
        )

    def _masks(self, tile: KernelTile) -> Number:
        """1 in a loop whose loads have masks, since each of its tensors is read at a part of the
        positions. ptxas unrolls no such loop. H200, sums over a concatenation of two tensors:
        1135 us, for which 613 were predicted before this was known, 751 now."""
        return 1.0 * tile.loops * self._reads_parts

    def _synchronizes(self, tile: KernelTile, m: Numbers) -> Number:
        """1 where each step of a loop has a barrier of the program's warps: to convert layouts, to
        reduce the rows of the step, to scan them, or to exchange staged rows."""
        if tile.loops is False:
            return 0.0
        found = 1.0 * (tile.loops * (tile.x > 1) * (tile.r > 1) * self._converts_layouts)
        found = m.maximum(found, 1.0 * tile.over_rows * (self._of_problem.reductions > 0))
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

    def _tile(self, params: KernelParams) -> KernelTile:
        """The tile of params; the last one is kept, since several counts ask for it in turn."""
        if self._last is None or self._last[0] is not params:
            tile = tile_of(self._problem, params)
            if tile.staged and not all_fit(self._problem):
                tile = tile._replace(staged=False)
            self._last = params, tile
        return self._last[1]

    def _traffic(
        self, params: KernelParams, tile: KernelTile, threads: int
    ) -> tuple[Traffic, float]:
        """The traffic of a step of a program, and the bytes that the kernel fetches again."""
        if not is_flat_tile(self._problem, params):
            align = _align(params)
            refetched = sum(self._streams.reread_bytes(tile).values())
            refetched += self._streams.sector_refetch_bytes(params, tile, align, threads)
            return self._streams.traffic(params, tile, align, threads), refetched
        streams = self._flat_streams
        return streams.traffic(params, threads), streams.refetched_bytes(params, tile.programs)


def _align(params: KernelParams) -> int:
    """Elements that the beginning of every tile of rows is a multiple of; 1 for any beginning."""
    return 1 if params.row_tiling is None else params.row_tiling.align


def _is_one_tile(params: KernelParams) -> bool:
    """Whether each row has one tile (no tails), which may reach past the end of the row."""
    tiling = params.row_tiling
    return tiling is not None and not tiling.tails and tiling.align == 1


def _accumulators(problem: Problem, work: ElementWork) -> float:
    """Numbers that an element of a step carries along a row, in one of the passes over it.

    Threads carry the maximum of an online softmax and its sum, and programs the sums of columns.
    """
    if problem.outer_members or not work.reductions:
        return 0.0
    if problem.online_softmax:
        return 1.0
    moments = 0 if problem.scans else max(work.reductions - work.carried, 0)
    carried = work.carried + CARRIED_BY_MOMENTS * moments
    return max(carried / max(problem.passes_to_reduce, 1), 1.0)


def _column_operands(problem: Problem, work: ElementWork) -> float:
    """Reductions along rows whose operand is contiguous along x although most bytes are not."""
    return work.reductions * column_operand_share(problem) if work.reductions else 0.0


def _row_words(problem: Problem) -> float:
    """32-bit words that are loaded for a position of a row, of what lies along rows alone."""
    along = (s for s in problem.streams if s.along_r and not s.along_x and not s.is_store)
    return sum(max(s.item_bytes / WORD_BYTES, 0.5) for s in along)


def _scan_share(problem: Problem, work: ElementWork) -> float:
    """The share of a kernel's reductions that are scans, which are done in every step of a loop.

    0 for a scan over a dim of one position, which ``ElementWork`` may not count as a reduction.
    """
    if not problem.scans:
        return 0.0
    return (work.reductions - work.carried) / max(work.reductions, 1)


HOP_S = 2e-6
"""Seconds from the publication of a partial sum to its arrival at other programs (H200)."""


def _waiting(params: KernelParams, steps: float) -> float:
    """Seconds that a program waits for the partial sums of the programs that share its rows."""
    if not isinstance(params, InnerOuterPersistentParams) or params.parts == 1:
        return 0.0
    return HOP_S * ceil(steps / max(params.delay, 1))
