"""The fitted constants of the cost model: properties of compiler and machine not in data sheets.

They are fitted to 6,500 schedules of 147 random problems on an H200
(``bench/results/schedules_h200.jsonl.gz``). The fit starts from data sheets and the generated code,
and is regularized towards them; ``python -m bench.schedules --fit`` repeats it. None of these
problems is a gather: ``hit_clocks`` and ``l1_share`` are fitted to 340 schedules of 17 gathers on
an H100, and hold for 149 of 14 others on an H200 (``miss_rate``). ``exchange_tail`` is fitted to
300 schedules of four sums of columns on an H100, which run in one wave.

The model adds a part of the shorter times of overlapping resources to the longest one. So a fitted
share of a peak rate may be a little above 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ...device import LAUNCH_S, MEMORY_LATENCY_S, DeviceProperties
from .numbers import Numbers

CARRIED_BY_MOMENTS = 1.6
"""Values that an element of a step carries along a row for its mean and its variance: two, or fewer
if a thread first adds up adjacent elements. Fitted to registers, as ``registers_row_word`` is."""

MOVED_DRAW = 2.1
"""Cost of a random number in rows that may begin inside a Philox counter, as a multiple of the cost
in rows that begin at one, for a thread with runs of eight adjacent elements. In the code for sm_90
of rows of 903 and 904: 30.5, 30 and 38 instructions, and 14.5, 15.5 and 16, with 4, 2 and 1 runs a
thread. With half a run 68, with a quarter 128."""

FITTED_L2_BYTES = 60 << 20
"""Bytes of the L2 cache of the H200 that the constants are fitted on. Cache capacities scale with
the L2 cache of a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Latencies, efficiencies, instructions and registers of the kernels that are generated here.

    Clocks are those of a multiprocessor. Instructions are those of a warp. Registers are those of a
    thread.

    Attributes
    ----------
    launch_s : float
        Seconds before the first kernel of a plan begins and after the last one ends.
    kernel_s : float
        Seconds of each kernel in addition to its work, in which programs start and drain.
    start_s : float
        Seconds from the start of a program to its first load: arguments, index arithmetic.
    latency_s : float
        Seconds from a load to its first use in a step of a loop.
    second_latency : float
        The same in later passes over a row, which hit caches, as a share of ``latency_s``.
    bandwidth : float
        Share of ``bandwidth_bytes_per_s`` that kernels reach.
    sm_bytes : float
        Bytes between the L2 cache and one multiprocessor in a clock.
    sm_written_bytes : float
        Bytes of whole sectors that the L2 cache writes for each multiprocessor in a clock. Measured
        on an H200: 4.19 TB/s.
    line_clocks : float
        Clocks of the L1 cache for each line of 128 bytes that a load or store touches. H200: loads
        by themselves take 1.0, whatever their width; stores take 1.6, and 1.3 for each full sector
        and 1.7 for each partial one. With 1.0 the errors of two of three files of stored times are
        8 and 10% larger, and those of the third as large.
    hit_clocks : float
        Clocks of the L1 cache for a line of a gather that hits it.
    l1_share : float
        Bytes of windows of gathers that the L1 cache of a multiprocessor holds, as a share of its
        maximum of shared memory.
    issue : float
        Share of the issue rate that a fully occupied multiprocessor reaches.
    latent_warps : float
        Warps of a multiprocessor with which it reaches half of that rate.
    masked : float
        Instructions of a masked element, as a share of those of an element that exists.
    serial_clocks : float
        Clocks from one instruction of a warp to its next.
    tail : float
        Share of the instructions of a program's last step that no other program hides.
    exchange_tail : float
        Share of ``Counts.exchange_clocks`` of the last programs that no other program hides.
    sfu_clocks : float
        Factor on the time of the special function unit.
    code_misses : float
        Relative slowdown of instructions for each doubling of the length of a step's code beyond
        ``CODE_INSTRUCTIONS``, by misses of the instruction cache.
    program_clocks, warp_clocks : float
        Clocks that a multiprocessor takes to start a program, and each of its warps.
    step_instructions : float
        Instructions of a loop iteration as such.
    program_instructions : float
        Instructions of a program before and after its loop.
    access_instructions : float
        Instructions of each load or store: its address and mask.
    index_instructions : float
        Factor on the least instructions of index arithmetic (``digits``). Fitted to the code of 167
        kernels of random definitions without loops, as compiled for sm_90.
    load_instructions : float
        Instructions of each loaded element: conversion, mask.
    element_instructions : float
        Factor on the least instructions of an element's ops.
    draw_instructions : float
        Instructions of each random number if four share a Philox counter; four times as many if
        each has its own.
    exchange_instructions : float
        Instructions of each shuffle step of a reduction in a warp, for each result of a thread.
    row_exchange_instructions : float
        Instructions of each partial result of a column that warps exchange (reductions over rows).
    reduction_clocks : float
        Clocks of a reduction over the lanes of a program.
    barrier_clocks : float
        Clocks that each doubling of the warps of a reduction adds.
    l2_share_bytes : float
        Reuse distance, in bytes, at which half of the reads hit the L2 cache of an H200.
    drift : float
        How far apart programs that loop over rows are, as a share of a row.
    written_in_part : float
        Additional memory bytes for each byte of the sectors that warps of a flat kernel write in
        part; of tiles with two sides, those that rows of a tile write in part. H200, 33 kernels of
        random definitions with a twentieth of their bytes or more in such sectors: the choice over
        the fastest is 1.02, 1.17 and 1.45 (median, 90th percentile, worst); without this term 1.02,
        1.43 and 2.53, and if such sectors are a third of the bytes, kernels take 1.4 times as long
        as predicted.
    refetched : float
        Share of partially used 64-byte pairs of sectors whose unused sector is fetched too.
    spill_traffic : float
        Stores and loads of a spilled register in a step: instructions, and lines of the L1 cache.
    registers : float
        Registers for program ids, masks and loop counters.
    registers_element : float
        Registers for each element of the tile.
    registers_flat : float
        Additional registers for each element in flat kernels.
    registers_kept : float
        Registers for each element of each tensor that stays until its row is reduced.
    registers_accumulator : float
        Registers for each element of a step and each value that is carried along a row.
    registers_column : float
        Registers for each element of a row and each reduction over the rows.
    registers_word : float
        Registers for each 32-bit word that is loaded for an element.
    registers_row_word : float
        Registers for each ``Counts.row_words``. Fitted to the kernels with rows of two thirds of
        the problems, as compiled for sm_90.
    registers_result : float
        Registers for each result of a reduction.
    registers_op : float
        Registers for each doubling of the instructions of an element.
    registers_pipeline : float
        Registers for the addresses of a pipeline or of prefetches.
    registers_load : float
        Registers for the address of each loaded tensor.
    registers_address : float
        Registers for each address that is not a constant offset from another. Fitted to 324 kernels
        of random definitions as compiled for sm_90: half of them take 0.84 to 1.29 times the
        estimate.
    registers_staged, registers_staged_column : float
        Additional registers for each element if each thread has whole rows, and those for each
        element and each reduction over the rows. Fitted to 63 kernels of random ops as compiled for
        sm_90.
    """

    launch_s: float = 2.55e-06
    kernel_s: float = 1.35e-06
    start_s: float = 4.32e-07
    latency_s: float = 2.7e-07
    second_latency: float = 0.489
    bandwidth: float = 1.03
    sm_bytes: float = 38.7
    sm_written_bytes: float = 18.1
    line_clocks: float = 1.81
    hit_clocks: float = 0.25
    l1_share: float = 0.9
    issue: float = 0.959
    latent_warps: float = 5.25
    masked: float = 0.407
    serial_clocks: float = 1.56
    tail: float = 0.38
    exchange_tail: float = 0.7
    sfu_clocks: float = 0.953
    code_misses: float = 0.568
    program_clocks: float = 136.0
    warp_clocks: float = 8.16
    step_instructions: float = 16.3
    program_instructions: float = 38.5
    access_instructions: float = 3.35
    index_instructions: float = 2.0
    load_instructions: float = 0.936
    element_instructions: float = 1.94
    draw_instructions: float = 14.0
    exchange_instructions: float = 3.46
    row_exchange_instructions: float = 3.58
    reduction_clocks: float = 78.9
    barrier_clocks: float = 35.7
    l2_share_bytes: float = 45300000.0
    drift: float = 0.332
    written_in_part: float = 1.5
    refetched: float = 0.445
    spill_traffic: float = 3.0
    registers: float = 7.82
    registers_element: float = 0.549
    registers_flat: float = 1.47
    registers_kept: float = 0.481
    registers_accumulator: float = 1.06
    registers_column: float = 2.19
    registers_word: float = 0.177
    registers_row_word: float = 0.45
    registers_result: float = 1.51
    registers_op: float = 1.6
    registers_pipeline: float = 9.58
    registers_load: float = 1.04
    registers_address: float = 0.6
    registers_staged: float = 1.7
    registers_staged_column: float = 2.3


H200_CONSTANTS = Constants()
"""Fitted to times of an H200. Rates, sizes and clocks of other devices are their own."""


def constants_of(device: DeviceProperties) -> Constants:
    """The constants of a device: those of the H200, with launch time and latencies scaled."""
    return _scaled(device.launch_s / LAUNCH_S, device.memory_latency_s / MEMORY_LATENCY_S)


@cache
def _scaled(launch: float, latency: float) -> Constants:
    c = H200_CONSTANTS
    return replace(
        c,
        launch_s=c.launch_s * launch,
        kernel_s=c.kernel_s * launch,
        latency_s=c.latency_s * latency,
    )


def l2_retention_bytes(device: DeviceProperties, c: Constants) -> float:
    """The reuse distance, in bytes, at which half of the reads hit the L2 cache of a device."""
    return c.l2_share_bytes * (device.l2_bytes / FITTED_L2_BYTES)


def evicted_share(reuse_distance: Any, capacity: float) -> Any:
    """Share of what was loaded that a cache has evicted after so many other bytes: a half at
    ``capacity``. A number, or an array of them."""
    squared = (reuse_distance / capacity) ** 2
    return squared / (1 + squared)


def miss_rate(window: Any, capacity: float, m: Numbers) -> Any:
    """Share of reads at random places of a window of so many bytes that miss a cache, once it is
    warm: it holds ``capacity`` bytes of a larger window.

    H200, 14 gathers of random shapes with 11 schedules each: of the pairs that are 10% apart 0.976
    are in order, and the predicted ones take 1.00 times as long as the fastest (geometric mean; at
    most 1.02). As if the windows were read in order (``evicted_share``): 0.880, 1.12 and 1.37.
    """
    return 1 - capacity / m.maximum(window, capacity)
