"""Facts and params of a kernel in, what it counts out: programs, steps, bytes, instructions.

Everything here is arithmetic on facts: nothing is fitted. A ``Number`` is a float, or an array with
an entry for each of many kernels, for a fit.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

from ...device import MAX_REGISTERS_PER_THREAD
from ..integers import next_power_of_2
from ..params import (
    InnerOuterPersistentParams,
    KernelParams,
    PointwiseParams,
    TransposeParams,
)
from ..problem import ElementWork, Problem
from .flat_traffic import flat_traffic
from .tiles import KernelTile, tile_of
from .traffic import Traffic, traffic_of

Number = Any
"""A float, or an array of them with an entry for each kernel."""


class Counts(NamedTuple):
    """What a kernel counts.

    Attributes
    ----------
    programs, warps : float
        Programs of the grid, warps of each.
    threads : float
        Of a program.
    steps, passes : float
        Steps of a program's loop over its elements, 1 without a loop, and how often it runs.
    stages : float
        Steps whose loads are in flight, 1 without a pipeline.
    elements : float
        Of a tile for each thread, those that are masked too. At least 1.
    valid : float
        Share of the elements of all tiles that exist.
    moved_bytes : float
        Bytes of the tensors, each element once, and of flat kernels those fetched in vain.
    loaded_bytes, stored_bytes : float
        Bytes of a tile of a program, in a step.
    sector_bytes : float
        The same of whole sectors, loads and stores together.
    lines : float
        Lines of the L1 cache that loads and stores of a step touch.
    accesses : float
        Loads and stores of all warps in a step.
    extra_bytes : float
        Bytes of a step beside runs that are shorter than a pair of sectors.
    loads : float
        Tensors that are loaded.
    instructions, special : float
        Of an element in all passes: all of them, those of the pipe of special functions.
    draws : float
        Random numbers of an element.
    reductions : float
        Over the lanes of a program, once for each row or in each step.
    reduced_steps : float
        How often they are done.
    lanes : float
        Lanes that a reduction is over.
    results : float
        Results of a reduction for each thread.
    row_lanes : float
        Groups of warps that have different rows of a step, where columns are reduced too.
    row_values : float
        Partial results of columns for each thread, which they exchange. 0 where they do not.
    columns : float
        Reductions over rows.
    addresses : float
        Addresses of a thread's loads of a step that are no offsets from one another.
    held : float
        Elements of a thread of the end of a row, which it keeps while a loop reads the rest.
    kept_tensors : float
        Tensors whose elements stay in registers until their row is reduced.
    accumulators : float
        Numbers that an element of a step carries along a row.
    words : float
        32-bit words that are loaded for an element.
    is_flat : float
        1 for a kernel without rows.
    register_limit : float
        Registers that a thread may have at most.
    waiting_s : float
        Seconds that a program waits for others.
    """

    programs: Number
    warps: Number
    threads: Number
    steps: Number
    passes: Number
    stages: Number
    elements: Number
    valid: Number
    moved_bytes: Number
    loaded_bytes: Number
    stored_bytes: Number
    sector_bytes: Number
    lines: Number
    accesses: Number
    extra_bytes: Number
    loads: Number
    instructions: Number
    special: Number
    draws: Number
    reductions: Number
    reduced_steps: Number
    lanes: Number
    results: Number
    row_lanes: Number
    row_values: Number
    columns: Number
    addresses: Number
    held: Number
    kept_tensors: Number
    accumulators: Number
    words: Number
    is_flat: Number
    register_limit: Number
    waiting_s: Number


def counts_of(problem: Problem, params: KernelParams, work: ElementWork) -> Counts:
    """What a kernel of these params counts. Not for matrix products."""
    tile = tile_of(problem, params)
    threads = params.num_warps * problem.device.warp_size
    traffic, vain = _traffic(problem, params, tile, threads)
    size = tile.x * tile.r
    spread = _spread(problem, tile, threads, work, traffic.neighbours)
    columns = problem.outer_members
    reduced = max(problem.reduced, 1)
    loads = sum(not s.is_store for s in problem.streams)
    kept = tile.keeps_rows and problem.dependent_outputs
    return Counts(
        programs=float(tile.programs),
        warps=float(params.num_warps),
        threads=float(threads),
        steps=float(tile.steps),
        passes=float(tile.passes),
        stages=float(params.num_stages if tile.loops else 1),
        elements=max(size / threads, 1.0),
        valid=min(problem.parallel * reduced / max(tile.programs * tile.steps * size, 1), 1.0),
        moved_bytes=float(sum(s.total_bytes for s in problem.streams)) + vain,
        loaded_bytes=traffic.loaded_bytes,
        stored_bytes=traffic.stored_bytes,
        sector_bytes=traffic.sector_bytes,
        lines=traffic.lines,
        accesses=traffic.accesses,
        extra_bytes=traffic.extra_bytes,
        loads=float(loads),
        instructions=work.before * tile.passes + work.reducing + work.after,
        special=work.special_before * tile.passes + work.special_after,
        draws=float(work.draws),
        reductions=float(work.reductions),
        reduced_steps=float(tile.steps if columns else 1),
        lanes=spread[0],
        results=spread[1],
        row_lanes=spread[2],
        row_values=spread[3],
        columns=float(columns),
        addresses=traffic.addresses,
        held=tile.kept / threads,
        kept_tensors=float(len(problem.full_loads)) if kept else 0.0,
        accumulators=_accumulators(problem, work) if tile.loops else 0.0,
        words=sum(max(s.item_bytes / 4, 0.5) for s in problem.full_loads),
        is_flat=float(not problem.reduction_depth and not columns and not problem.scans),
        register_limit=float(_register_limit(problem, params, threads)),
        waiting_s=_waiting(params, tile.steps),
    )


def _traffic(
    problem: Problem, params: KernelParams, tile: KernelTile, threads: int
) -> tuple[Traffic, float]:
    """Loads and stores of a step of a program, and bytes that the kernel fetches in vain."""
    if not problem.axes or not isinstance(params, PointwiseParams | TransposeParams):
        return traffic_of(problem, params, tile, threads), 0.0
    found = flat_traffic(problem, params, tile.programs, threads)
    touched = Traffic(
        loaded_bytes=found.loaded_bytes,
        stored_bytes=found.stored_bytes,
        sector_bytes=found.sector_bytes,
        lines=found.lines,
        accesses=found.accesses,
        addresses=found.addresses,
    )
    return touched, found.vain_bytes


def _spread(
    problem: Problem, tile: KernelTile, threads: int, work: ElementWork, neighbours: float
) -> tuple[float, float, float, float]:
    """(lanes, results, row_lanes, row_values): how reductions lie over the threads of a program.

    Threads are laid along memory first, each with the neighbours of its widest load, as Triton lays
    them out. A row that begins inside vectors lies over as many lanes as it has elements.
    """
    row_lanes, row_values = 1.0, 0.0
    if problem.outer_members:
        wide = min(max(tile.x * tile.r / threads, 1.0), neighbours)
        row_lanes = min(max(threads * wide / tile.r, 1.0), float(max(tile.x, 1)))
        if row_lanes > 1:
            row_values = problem.outer_members * tile.r * row_lanes / threads
    if not work.reductions:
        return 1.0, 1.0, row_lanes, row_values
    if problem.inner:
        lanes = min(float(threads), max(next_power_of_2(tile.r) / neighbours, 1.0))
        return lanes, max(tile.x * lanes / threads, 1.0), row_lanes, row_values
    across = min(float(threads), max(tile.x / neighbours, 1.0))
    return threads / across, max(tile.x / across, 1.0), row_lanes, row_values


def _accumulators(problem: Problem, work: ElementWork) -> float:
    """Numbers that an element of a step carries along a row, in one of the passes over it.

    Threads carry the maximum of an online softmax and its sum, and programs the sums of columns.
    """
    if problem.outer_members or problem.online_softmax:
        return 0.0
    return work.carried / max(problem.reduction_depth, 1)


def _register_limit(problem: Problem, params: KernelParams, threads: int) -> int:
    """A program has to fit on a multiprocessor; registers are given to threads by eights."""
    from_program = problem.device.registers_per_sm // threads // 8 * 8
    most = params.max_registers or MAX_REGISTERS_PER_THREAD
    return min(MAX_REGISTERS_PER_THREAD, max(from_program, 16), most)


HOP_S = 2e-6
"""Seconds from publishing a sum to its arrival at other programs (H200)."""


def _waiting(params: KernelParams, steps: int) -> float:
    if not isinstance(params, InnerOuterPersistentParams) or params.parts == 1:
        return 0.0
    return HOP_S * ceil(steps / max(params.delay, 1))
