"""``Counting``: what a kernel of given params counts: programs, steps, bytes, instructions.

Everything here is arithmetic on facts: nothing is fitted.
"""

from __future__ import annotations

from math import ceil

from ...device import MAX_REGISTERS_PER_THREAD, DeviceProperties
from ...lazy import cached_property
from ..params import (
    InnerOuterPersistentParams,
    KernelParams,
    PointwiseParams,
    TransposeParams,
)
from ..problem import ElementWork, Problem
from ..streams import Stream
from .counts import Counts, Held
from .flat_traffic import FlatStreams, flat_streams
from .gathered import around_bytes
from .registers import LoadedAtOnce, registers_left
from .row_traffic import RowStreams
from .spread import Spreading
from .strided import with_axes
from .tiles import KernelTile, tile_of
from .traffic import Traffic


class Counting:
    """What kernels of a problem count, by their params. Not for matrix products.

    What no params change is counted once, what a tile touches of tensors once for each tile.
    """

    def __init__(self, problem: Problem, work: ElementWork) -> None:
        problem = with_axes(problem)
        columns, reduced = problem.outer_members, max(problem.reduced, 1)
        self._problem, self._work = problem, work
        self._columns = columns
        self._positions = problem.parallel * reduced
        self._moved = problem.moved_bytes + around_bytes(problem)
        self._loads = float(sum(not s.is_store for s in problem.streams))
        self._full_loads = float(len(problem.full_loads))
        self._words = sum(max(s.item_bytes / 4, 0.5) for s in problem.full_loads)
        self._is_flat = float(not problem.reduction_depth and not columns and not problem.scans)
        self._accumulators = _accumulators(problem, work)
        self._spreading = Spreading(
            reductions=float(work.reductions),
            columns=columns,
            inner=problem.inner,
            lanes=problem.device.warp_size,
        )
        self._last: tuple[KernelParams, KernelTile] | None = None

    @cached_property
    def _streams(self) -> RowStreams:
        return RowStreams(self._problem)

    @cached_property
    def _loaded(self) -> LoadedAtOnce:
        return LoadedAtOnce(self._problem)

    @cached_property
    def _flat_streams(self) -> FlatStreams:
        return flat_streams(self._problem)

    def held(self, params: KernelParams) -> Held:
        """What a thread of the kernel of these params holds at least."""
        tile = self._tile(params)
        threads = params.num_warps * self._problem.device.warp_size
        return Held(
            elements=max(tile.x * tile.r / threads, 1.0),
            instructions=self._instructions(tile),
            stages=float(params.num_stages if tile.loops else 1),
            loads=self._loads,
            kept_tensors=self._kept_tensors(tile),
            accumulators=self._accumulators if tile.loops else 0.0,
            columns=float(self._columns),
            words=self._words,
            held=tile.kept / threads,
            is_flat=self._is_flat,
        )

    def most_registers(self, params: KernelParams, wanted: float) -> float:
        """Registers of a thread if all loads of a step are begun at once: see ``LoadedAtOnce``."""
        threads = params.num_warps * self._problem.device.warp_size
        return self._loaded.most(self._tile(params), threads, wanted)

    def reread_bytes(self, params: KernelParams) -> dict[Stream, float]:
        """Bytes of tensors that programs of rows load again, and that the L2 cache has lost."""
        return {} if self._is_flat_tile(params) else self._streams.reread_bytes(self._tile(params))

    def counts(self, params: KernelParams) -> Counts:
        """What the kernel of these params counts."""
        work, tile = self._work, self._tile(params)
        threads = params.num_warps * self._problem.device.warp_size
        traffic, refetched = self._traffic(params, tile, threads)
        size = tile.x * tile.r
        spread = self._spreading.over(tile, threads, traffic.neighbours)
        return Counts(
            programs=float(tile.programs),
            warps=float(params.num_warps),
            threads=float(threads),
            steps=float(tile.steps),
            passes=float(tile.passes),
            stages=float(params.num_stages if tile.loops else 1),
            elements=max(size / threads, 1.0),
            valid=min(self._positions / max(tile.programs * tile.steps * size, 1), 1.0),
            moved_bytes=self._moved + refetched,
            loaded_bytes=traffic.loaded_bytes,
            fetched_bytes=traffic.fetched_bytes,
            again_bytes=traffic.again_bytes,
            stored_bytes=traffic.stored_bytes,
            sector_bytes=traffic.sector_bytes,
            lines=traffic.lines,
            accesses=traffic.accesses,
            slice_bytes=traffic.slice_bytes,
            extra_bytes=traffic.extra_bytes,
            opened_bytes=traffic.windows.opened_bytes,
            window_bytes=traffic.windows.window_bytes,
            requested_again=traffic.windows.again_bytes,
            hit_bytes=traffic.windows.hit_bytes,
            hit_lines=traffic.windows.hit_lines,
            loads=self._loads,
            loaded=traffic.loaded_elements / size,
            instructions=self._instructions(tile),
            special=work.special_before * tile.passes + work.special_after,
            draws=float(work.draws),
            reductions=float(work.reductions),
            reduced_steps=float(tile.steps if self._columns else 1),
            lanes=spread.lanes,
            results=spread.results,
            row_lanes=spread.row_lanes,
            row_values=spread.row_values,
            exchange_clocks=spread.exchange_clocks,
            columns=float(self._columns),
            addresses=traffic.addresses,
            held=tile.kept / threads,
            kept_tensors=self._kept_tensors(tile),
            accumulators=self._accumulators if tile.loops else 0.0,
            words=self._words,
            is_flat=self._is_flat,
            register_limit=float(register_limit(self._problem.device, params)),
            waiting_s=_waiting(params, tile.steps),
        )

    def _tile(self, params: KernelParams) -> KernelTile:
        """The tile of params; the last one is kept, since several counts ask for it in turn."""
        if self._last is None or self._last[0] is not params:
            self._last = params, tile_of(self._problem, params)
        return self._last[1]

    def _is_flat_tile(self, params: KernelParams) -> bool:
        """Whether tiles run over the axes of a problem without rows."""
        return self._problem.is_flat and isinstance(params, PointwiseParams | TransposeParams)

    def _instructions(self, tile: KernelTile) -> float:
        """Instructions of an element in all passes."""
        work = self._work
        return work.before * tile.passes + work.reducing + work.after

    def _kept_tensors(self, tile: KernelTile) -> float:
        """Tensors whose elements stay in registers until their row is reduced."""
        kept = tile.keeps_rows and self._problem.dependent_outputs
        return self._full_loads if kept else 0.0

    def _traffic(
        self, params: KernelParams, tile: KernelTile, threads: int
    ) -> tuple[Traffic, float]:
        """Loads and stores of a step of a program, and bytes that the kernel fetches again."""
        if not self._is_flat_tile(params):
            rereads = self.reread_bytes(params)
            return self._streams.traffic(params, tile, threads), sum(rereads.values())
        streams = self._flat_streams
        return streams.traffic(params, threads), streams.refetched_bytes(params, tile.programs)


def _accumulators(problem: Problem, work: ElementWork) -> float:
    """Numbers that an element of a step carries along a row, in one of the passes over it.

    Threads carry the maximum of an online softmax and its sum, and programs the sums of columns.
    """
    if problem.outer_members or not work.reductions:
        return 0.0
    carried = 0.0 if problem.online_softmax else work.carried / max(problem.passes_to_reduce, 1)
    return max(carried, 1.0)


def register_limit(device: DeviceProperties, params: KernelParams) -> int:
    """Registers of a thread at most: a program has to fit on a multiprocessor."""
    from_program = registers_left(device, params.num_warps * device.warp_size)
    return min(max(from_program, 16), params.max_registers or MAX_REGISTERS_PER_THREAD)


HOP_S = 2e-6
"""Seconds from publishing a sum to its arrival at other programs (H200)."""


def _waiting(params: KernelParams, steps: int) -> float:
    if not isinstance(params, InnerOuterPersistentParams) or params.parts == 1:
        return 0.0
    return HOP_S * ceil(steps / max(params.delay, 1))
