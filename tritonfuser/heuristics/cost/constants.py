"""The fitted constants of the cost model: what no data sheet says of compiler and machine.

They are fitted to 6,500 schedules of 147 random problems on an H200
(``bench/results/schedules_h200.jsonl.gz``), beginning at and staying near to data sheets and what
the kernels' code looks like. ``python -m bench.schedules --fit`` fits them again. None of these
problems reads at indices: ``hit_clocks`` and ``l1_share`` are fitted to 340 schedules of 17 gathers
on an H100, and hold for 149 of 14 others on an H200 (``miss_rate``); ``exchange_tail`` is by 300
schedules of four sums of columns on an H100, which run in one wave.

Where resources overlap the model adds a part of the shorter times. So shares a little above 1 are
what a resource reaches by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ...device import LAUNCH_S, MEMORY_LATENCY_S, DeviceProperties
from .numbers import Numbers

CARRIED_BY_MOMENTS = 1.6
"""Numbers that an element of a step carries along a row for its mean and its variance: two, or
fewer where a thread first adds up neighbours. Fitted to registers, as ``registers_row_word`` is."""

MOVED_DRAW = 2.1
"""Instructions of a random number of rows that begin anywhere between two counters, where a thread
has eight neighbours, as a multiple of those of rows that begin at counters: 30.5, 30 and 38 for
14.5, 15.5 and 16 in the code for sm_90 of rows of 903 and 904 with 4, 2 and 1 runs of eight a
thread. With half a run 68, with a quarter 128."""

FITTED_L2_BYTES = 60 << 20
"""Bytes of the L2 cache of the H200 that the constants are fitted on: shares of the cache scale by
a device's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What kernels of this code generator take, and what its machine does beside its rates.

    Clocks are those of a multiprocessor. Instructions are those of a warp.

    Attributes
    ----------
    launch_s : float
        Seconds before the first kernel of a plan begins and after the last one ends.
    kernel_s : float
        Seconds that each kernel takes beside its work: its programs start and drain.
    start_s : float
        Seconds from the start of a program to its first load: indices, arguments.
    latency_s : float
        Seconds that a step of a loop waits for memory, beyond what other warps hide.
    second_latency : float
        ``latency_s`` of a later pass over a row, which hits caches, as a share of the first.
    bandwidth : float
        Share of ``bandwidth_bytes_per_s`` that kernels reach.
    sm_bytes : float
        Bytes between the L2 cache and one multiprocessor in a clock.
    sm_written_bytes : float
        Bytes of whole sectors that the L2 cache writes for each multiprocessor in a clock. Measured
        on an H200: 4.19 TB/s.
    line_clocks : float
        Clocks of the L1 cache for each line of 128 bytes that a load or store touches. H200, loads
        alone take 1.0 whatever their width, and stores alone 1.6 beside 1.3 for each whole sector
        and 1.7 for each other. With 1.0 the errors of two of three files of stored times are 8 and
        10% larger, and those of the third as large.
    hit_clocks : float
        The same for a line that is read at an index of another tensor and that the cache has.
    l1_share : float
        Windows of such reads that the L1 cache of a multiprocessor has room for, as a share of the
        bytes that may be shared memory.
    issue : float
        Share of the issue rate that the warps of a full multiprocessor reach.
    latent_warps : float
        Warps of a multiprocessor with which it reaches half of that rate.
    masked : float
        Instructions of an element behind the end of its row, as a share of those of others.
    serial_clocks : float
        Clocks from one instruction of a warp to its next.
    tail : float
        Share of a program's last step, behind its loads, that no other program hides.
    exchange_tail : float
        The same of what the warps of the programs that end last exchange.
    sfu_clocks : float
        Factor on the time of the pipe of special functions.
    code_misses : float
        How fast instructions slow down with the logarithm of the length of the code, above
        ``CODE_INSTRUCTIONS``.
    program_clocks, warp_clocks : float
        Clocks that a multiprocessor takes to start a program, and each of its warps.
    step_instructions : float
        Of a step of a loop, for itself.
    program_instructions : float
        Of a program before and behind its loop.
    access_instructions : float
        For each load or store: its address, mask and conversions.
    index_instructions : float
        Factor on the instructions that the digits of positions need at least. Fitted to the code of
        167 kernels of random definitions without loops, as compiled for sm_90.
    load_instructions : float
        For each element of each tensor that is loaded: conversion, mask.
    element_instructions : float
        Instructions that are issued for each that the ops of an element need at least.
    draw_instructions : float
        For each random number, where four come of one draw; four times that where one does.
    exchange_instructions : float
        For each step of a reduction between the lanes of a warp, and each result of a thread.
    row_exchange_instructions : float
        For each partial result of a column that warps exchange (reductions over rows).
    reduction_clocks : float
        Clocks of a reduction over the lanes of a program.
    barrier_clocks : float
        The same for each doubling of the warps that take part.
    l2_share_bytes : float
        Bytes in flight of all programs of which half are found again in the L2 cache of an H200.
    drift : float
        Share of a row by which programs that loop over rows are apart.
    written_in_part : float
        More bytes that memory moves, for each byte of the sectors that warps of a flat kernel write
        in part. H200, 33 kernels of random definitions with a twentieth of their bytes or more in
        such sectors: the choice over the fastest is 1.02, 1.17 and 1.45 (median, 90th percentile,
        worst); without it 1.02, 1.43 and 2.53, and where they are a third of the bytes, kernels
        take 1.4 times as long as predicted.
    refetched : float
        Share of the rest of a 64-byte pair of sectors that is fetched and not used.
    spill_traffic : float
        Times that a spilled register is written and read in a step: instructions, and lines of the
        L1 cache.
    registers : float
        Of a thread, for addresses and loop counters.
    registers_element : float
        Of a thread for each of its elements.
    registers_flat : float
        The same beside it in kernels without rows.
    registers_kept : float
        For each element of each tensor that has to stay until its row is reduced.
    registers_accumulator : float
        For each element of a step and each number that is carried along a row.
    registers_column : float
        For each element of a row and each reduction over the rows.
    registers_word : float
        For each 32-bit word that is loaded for an element.
    registers_row_word : float
        For each word of a thread of what lies along rows alone. Fitted to the kernels of rows of
        two thirds of the problems, as compiled for sm_90.
    registers_result : float
        For each result of a thread.
    registers_op : float
        For each doubling of the instructions of an element.
    registers_pipeline : float
        For the addresses of a pipeline.
    registers_load : float
        For the address of each tensor that is loaded.
    registers_address : float
        For each address of a thread that is no offset from another. Fitted to 324 kernels of random
        definitions as compiled for sm_90: half of them take 0.84 to 1.29 times the estimate.
    registers_staged, registers_staged_column : float
        For each element of a thread that has whole rows, and for each of them and each reduction
        over the rows beside ``registers_column``: it holds all of a row at a time. Of 63 kernels of
        random ops as compiled for sm_90.
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
