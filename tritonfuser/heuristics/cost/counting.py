"""``Counting``: a problem and params -> ``Counts``: programs, steps, bytes, instructions.

Everything here is arithmetic on facts; nothing is fitted.
"""

from __future__ import annotations

from math import ceil

from ...lazy import cached_property
from ..params import InnerOuterPersistentParams, KernelParams
from ..problem import ElementWork, Problem
from ..streams import Stream
from .constants import Constants
from .counts import Counts, ElementCounts, Number, ProblemCounts
from .draws import philox_cost
from .flat.traffic import FlatStreams, flat_streams
from .memory.gathered import overfetched_bytes
from .memory.strided import with_axes
from .memory.traffic import Traffic
from .model import registers_per_element
from .numbers import ARRAYS, PLAIN, Numbers
from .problem_counts import column_operands, problem_counts, row_words, scan_share
from .reduction_layout import ReductionLayouts
from .registers import HOISTED_RATIO, HoistedLoads, register_limit
from .rows.staged import all_fit
from .rows.traffic import RowStreams
from .tile_counts import TileCounting
from .tiles import KernelTile, Launches, is_flat_tile, tile_of

PUBLISHED_SUM_S = 2e-6
"""Seconds that a program waits for a partial sum that another publishes (H200). They come on top of
its other time, once in ``delay`` steps."""


class Counting:
    """The ``Counts`` of kernels of one problem, by their params. Not for matrix products.

    What no params change is counted once; what tiles touch of tensors is counted once for each
    distinct tile.
    """

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        problem = with_axes(problem)
        self._problem, self._work = problem, work
        self._moved = problem.moved_bytes + problem.result_bytes + overfetched_bytes(problem)
        self._row_words = row_words(problem)
        self._of_problem = problem_counts(problem, work)
        self._of_tile = TileCounting(problem, work)
        self._reductions = ReductionLayouts(
            reductions=float(work.reductions),
            columns=problem.outer_members,
            column_operands=column_operands(problem, work),
            inner=problem.inner,
            lanes=problem.device.warp_size,
            scan_share=scan_share(problem, work),
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
            accumulators=0.0 if in_registers else self._of_tile.accumulators,
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
        computed = self._computed_share(params, tile, threads, traffic.inner_vector)
        # By position: with names for the rest, making the tuple took as long as counting a tile.
        return Counts(
            *self._with_draws(params, tile, size / threads),
            *self._of_tile.of_one(tile),
            *self._reductions.of_tile(
                tile, threads, traffic.inner_vector, traffic.cross_vector, computed
            ),
            *traffic.moved,
            *traffic.windows,
            float(params.num_warps),
            float(threads),
            float(params.num_stages if tile.loops else 1),
            float(params.prefetches),
            max(size * computed / threads, 1.0),
            computed,
            self._moved + refetched,
            traffic.lines,
            traffic.accesses,
            traffic.index_instructions,
            traffic.written_bytes,
            traffic.slice_bytes,
            traffic.loaded_elements / size,
            traffic.addresses,
            tile.kept / threads,
            self._row_words * max(row_elements * computed / threads, 1.0),
            float(register_limit(self._problem.device, params)),
            _waiting(params, tile.steps),
        )

    def _computed_share(
        self, params: KernelParams, tile: KernelTile, threads: int, inner_vector: float
    ) -> float:
        """The share of a tile that is computed: all of it where tails hold the end of a row."""
        if not _is_one_tile(params):
            return 1.0
        return float(self._of_tile.computed_share(tile, threads, inner_vector, PLAIN))

    def _with_draws(self, params: KernelParams, tile: KernelTile, elements: float) -> ProblemCounts:
        """The counts of the problem, with random numbers as costly as a thread of so many elements
        draws them."""
        found = self._of_problem
        if not found.draws:
            return found
        cost = philox_cost(self._problem, self._work, params, tile, elements)
        return found._replace(draws=cost)

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


def _waiting(params: KernelParams, steps: float) -> float:
    """Seconds that a program waits for the partial sums of the programs that share its rows."""
    if not isinstance(params, InnerOuterPersistentParams) or params.parts == 1:
        return 0.0
    return PUBLISHED_SUM_S * ceil(steps / max(params.delay, 1))
