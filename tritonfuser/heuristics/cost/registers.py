"""Register limits and allocation, and registers if all loads of a step are hoisted to its start."""

from __future__ import annotations

from math import ceil

from ...device import (
    MAX_PROGRAMS_PER_SM,
    MAX_REGISTERS_PER_THREAD,
    WORD_BYTES,
    DeviceProperties,
)
from ..integers import ceil_div
from ..params import KernelParams
from ..problem import Problem
from .counts import Number
from .memory.traffic import is_linear
from .numbers import PLAIN, Numbers
from .tiles import KernelTile, tile_of

ADDRESS_WORDS = 2
"""Registers of an address."""

ALLOCATION_UNIT = 8
"""The granularity of register allocation, in registers per thread."""

MANY_PROGRAMS = 5
"""Resident programs of a multiprocessor beyond which the limit for one more is not considered: it
would add less than a fifth."""

HOISTED_RATIO = 2.0
"""Upper bound of the registers with hoisted loads (``HoistedLoads``), as a multiple of the register
limit, for a kernel that is chosen by its predicted time. Up to it the compiler mostly avoids spills
by issuing some loads later. Of 9,900 measured kernels that are predicted to need no more than their
limit 4% spill where this ratio is below 1, 7% where it is 1 to 1.5, 13% up to 2, and 28% and more
beyond. The kernels chosen among the measured ones take 0.981 times as long as with a bound of 1
(214 kernels), 0.986 among those held out (118)."""

FILLING_WARPS = 0.5
"""Share of the warps of a multiprocessor that suffices: more of them add little."""


def allocated_registers(wanted: float) -> int:
    """Registers allocated to a thread that needs ``wanted``: a multiple of ``ALLOCATION_UNIT``."""
    return ceil_div(ceil(wanted), ALLOCATION_UNIT) * ALLOCATION_UNIT


def registers_for_threads(device: DeviceProperties, threads: int) -> int:
    """The most registers of a thread with which ``threads`` fit on a multiprocessor."""
    return int(_registers_for_threads(device, max(threads, 1), PLAIN))


def _registers_for_threads(device: DeviceProperties, threads: Number, m: Numbers) -> Number:
    fitting = device.registers_per_sm // threads
    return m.minimum(fitting // ALLOCATION_UNIT * ALLOCATION_UNIT, MAX_REGISTERS_PER_THREAD)


def programs_per_sm(device: DeviceProperties, warps: int, registers: float) -> int:
    """Resident programs of a multiprocessor, by warps and by registers of a thread."""
    threads = warps * device.warp_size
    fitting = device.registers_per_sm // (allocated_registers(registers) * threads)
    return min(fitting, device.max_threads_per_sm // threads, MAX_PROGRAMS_PER_SM)


def limits_for_more_programs(
    device: DeviceProperties, warps: int, expected: float
) -> tuple[int, ...]:
    """Register limits with which 2, 3, ... programs are resident on a multiprocessor.

    Only numbers of programs that the expected registers allow, and that are few enough for one more
    to hide latency.

    Parameters
    ----------
    warps : int
        Warps of a program.
    expected : float
        Registers of a thread by the cost model.
    """
    threads = warps * device.warp_size
    fitting = device.registers_per_sm // (allocated_registers(expected) * threads)
    filling = int(FILLING_WARPS * device.max_threads_per_sm) // threads
    useful = min(fitting - 1, filling, MANY_PROGRAMS)
    return tuple(registers_for_threads(device, (more + 2) * threads) for more in range(useful))


def register_limit(device: DeviceProperties, params: KernelParams) -> int:
    """The most registers a thread may have: a program has to fit on a multiprocessor."""
    limit = int(limit_of_warps(device, params.num_warps, PLAIN))
    return min(limit, params.max_registers or MAX_REGISTERS_PER_THREAD)


def limit_of_warps(device: DeviceProperties, warps: Number, m: Numbers) -> Number:
    """``register_limit`` by the number of warps alone; also for arrays of them."""
    return m.maximum(_registers_for_threads(device, warps * device.warp_size, m), 16)


class HoistedLoads:
    """Registers of a thread if the compiler hoists all loads of a step above their first use.

    A loaded element takes one register for each 32-bit word, at least one. If the offset of a
    tensor is not linear in both positions, as that of a transposed tensor or of one repeated inside
    an axis, each element also has an address of its own.
    """

    def __init__(self, problem: Problem) -> None:
        self._loads: list[tuple[int, bool, bool]] = []
        for stream in problem.streams:
            if not stream.is_store:
                words = ceil_div(stream.item_bytes, WORD_BYTES)
                words += 0 if is_linear(problem, stream) else ADDRESS_WORDS
                self._loads.append((words, stream.along_x, stream.along_r))

    @property
    def per_element(self) -> int:
        """Registers that the loads of one element of a tile take."""
        return sum(words for words, along_x, along_r in self._loads if along_x and along_r)

    def registers(self, tile: KernelTile, threads: Number, wanted: Number, m: Numbers) -> Number:
        """Registers of a thread, of one kernel or of many.

        Parameters
        ----------
        wanted : float
            Predicted registers of the kernel apart from that (``KernelTime.registers``).
        """
        elements = m.maximum(tile.x * tile.r / threads, 1.0)
        # In a staged tile each thread has rows of its own; in others it may have elements of all.
        rows = m.maximum(tile.x / m.where(tile.staged, threads, 1.0), 1.0)
        loaded: Number = 0.0
        for words, along_x, along_r in self._loads:
            positions = (rows if along_x else 1) * (tile.r if along_r else 1)
            loaded = loaded + words * m.minimum(elements, 1.0 * positions)
        return wanted + loaded


def hoisted_registers(problem: Problem, params: KernelParams, wanted: float) -> float:
    """Registers of a thread of one kernel with hoisted loads: see ``HoistedLoads``."""
    threads = params.num_warps * problem.device.warp_size
    return float(HoistedLoads(problem).registers(tile_of(problem, params), threads, wanted, PLAIN))
