"""Register limits and allocation, and registers if all loads of a step are issued first."""

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
from .numbers import PLAIN, Numbers
from .tiles import KernelTile, tile_of
from .traffic import is_linear

ADDRESS_WORDS = 2
"""Registers of an address."""

REGISTERS_GIVEN = 8
"""The granularity of register allocation, in registers a thread."""

MANY_PROGRAMS = 5
"""Programs of a multiprocessor, to which one more adds a fifth. To more of them it adds less."""

LATER = 2.0
"""Times its limit that registers may be if all loads of a step are issued first, in a kernel that
is chosen for its predicted time: the compiler issues some of them later then. Of 9,900 measured
kernels that are predicted to need no more than their limit 4% spill where this is below 1, 7% at 1
to 1.5 times the limit, 13% at up to 2 times, 28% and more beyond. Those chosen among the measured
ones take 0.981 times as long as with 1 here (214 kernels), 0.986 where held out (118)."""

FILLING_WARPS = 0.5
"""Share of the warps of a multiprocessor from which on more of them are of little use."""


def registers_given(wanted: float) -> int:
    """Registers allocated to a thread that needs ``wanted``: a multiple of ``REGISTERS_GIVEN``."""
    return ceil_div(ceil(wanted), REGISTERS_GIVEN) * REGISTERS_GIVEN


def registers_left(device: DeviceProperties, threads: int) -> int:
    """The most registers of a thread with which ``threads`` fit on a multiprocessor."""
    return int(_registers_left(device, max(threads, 1), PLAIN))


def _registers_left(device: DeviceProperties, threads: Number, m: Numbers) -> Number:
    fitting = device.registers_per_sm // threads
    return m.minimum(fitting // REGISTERS_GIVEN * REGISTERS_GIVEN, MAX_REGISTERS_PER_THREAD)


def programs_at_once(device: DeviceProperties, warps: int, registers: float) -> int:
    """Programs of which threads take so many registers that fit on a multiprocessor."""
    threads = warps * device.warp_size
    fitting = device.registers_per_sm // (registers_given(registers) * threads)
    return min(fitting, device.max_threads_per_sm // threads, MAX_PROGRAMS_PER_SM)


def limits_for_more_programs(
    device: DeviceProperties, warps: int, expected: float
) -> tuple[int, ...]:
    """Registers of a thread with which 2, 3, ... programs run at a time on a multiprocessor.

    As far as so many run with the expected registers, and one more is of use.

    Parameters
    ----------
    warps : int
        Warps of a program.
    expected : float
        Registers of a thread by the cost model.
    """
    threads = warps * device.warp_size
    fitting = device.registers_per_sm // (registers_given(expected) * threads)
    filling = int(FILLING_WARPS * device.max_threads_per_sm) // threads
    useful = min(fitting - 1, filling, MANY_PROGRAMS)
    return tuple(registers_left(device, (more + 2) * threads) for more in range(useful))


def register_limit(device: DeviceProperties, params: KernelParams) -> int:
    """Registers of a thread at most: a program has to fit on a multiprocessor."""
    limit = int(limit_of_warps(device, params.num_warps, PLAIN))
    return min(limit, params.max_registers or MAX_REGISTERS_PER_THREAD)


def limit_of_warps(device: DeviceProperties, warps: Number, m: Numbers) -> Number:
    """The same of any program of so many warps, or of many of them."""
    return m.maximum(_registers_left(device, warps * device.warp_size, m), 16)


class LoadedAtOnce:
    """Registers of a thread if the compiler issues all loads of a step before their first use.

    What is loaded takes a register for each 32-bit word, and one for each element that is narrower.
    Where the offset of a tensor is no linear function of both positions, as of one that is
    transposed or repeated inside of an axis, each element has an address of its own.
    """

    def __init__(self, problem: Problem) -> None:
        self._loads: list[tuple[int, bool, bool]] = []
        for stream in problem.streams:
            if not stream.is_store:
                words = ceil_div(stream.item_bytes, WORD_BYTES)
                words += 0 if is_linear(problem, stream) else ADDRESS_WORDS
                self._loads.append((words, stream.along_x, stream.along_r))

    @property
    def words(self) -> int:
        """Words of what is loaded for each element of a tile."""
        return sum(words for words, along_x, along_r in self._loads if along_x and along_r)

    def most(self, tile: KernelTile, threads: Number, wanted: Number, m: Numbers) -> Number:
        """Registers at most, of one kernel or of many.

        Parameters
        ----------
        wanted : float
            What most kernels take (``KernelTime.registers``).
        """
        elements = m.maximum(tile.x * tile.r / threads, 1.0)
        loaded: Number = 0.0
        for words, along_x, along_r in self._loads:
            positions = (tile.x if along_x else 1) * (tile.r if along_r else 1)
            loaded = loaded + words * m.minimum(elements, 1.0 * positions)
        return wanted + loaded


def most_registers(problem: Problem, params: KernelParams, wanted: float) -> float:
    """Registers of a thread of one kernel if all loads of a step are issued first."""
    threads = params.num_warps * problem.device.warp_size
    return float(LoadedAtOnce(problem).most(tile_of(problem, params), threads, wanted, PLAIN))
