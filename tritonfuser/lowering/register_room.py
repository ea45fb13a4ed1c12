"""How many registers a thread may have, so that enough programs run at a time."""

from __future__ import annotations

from math import prod

from ..heuristics.cost.model import FILLED, KernelTime
from ..heuristics.cost.registers import limits_for_more_programs, registers_for_threads
from ..heuristics.integers import ceil_div
from ..symbolic.sizes import is_size
from .cost import segment_time
from .problem_sizes import env_of
from .segments.segment import Segment

MEMORY_LIMITED = 0.95
"""Share of a kernel's predicted time in which memory is busy, from which on more programs do not
help: the loads of each of them are fewer then. H200: of 48 kernels of random definitions, the suite
and recorded definitions with a limit for one more program, the 42 below take 0.87 of the time
(geometric mean; 0.50 to 1.25), the others 1.04."""


def max_registers(segment: Segment) -> int:
    """The limit on the registers of a thread by which a kernel is compiled; 0 for none.

    That of its params, as far as one program fits on a multiprocessor: a limit that was chosen for
    fewer warps would give a kernel that cannot be launched.
    """
    params, problem = segment.kernel_params, segment.problem
    if problem is None or not params.max_registers or not problem.device.arch.startswith("sm_"):
        return params.max_registers
    fitting = registers_for_threads(problem.device, params.num_warps * problem.device.warp_size)
    return min(params.max_registers, fitting)


def register_room(segment: Segment, grid: tuple[int, int, int]) -> int:
    """Registers of a thread with which a multiprocessor has room for its share of the programs.

    With fewer no more of them run at a time. 0 where sizes vary, and without a device.
    """
    problem, programs = segment.problem, share_of_programs(segment, grid)
    if problem is None or not programs:
        return 0
    threads = segment.kernel_params.num_warps * problem.device.warp_size
    return registers_for_threads(problem.device, programs * threads)


def register_limits(segment: Segment, grid: tuple[int, int, int]) -> tuple[int, ...]:
    """Registers of a thread with which 2, 3, ... programs run at a time on a multiprocessor.

    As many as the cost model expects, within the error of its registers, and no more than the grid
    has for each of them. None where memory is the limit, where sizes vary, and without a device.
    """
    problem, programs = segment.problem, share_of_programs(segment, grid)
    if problem is None or not programs or env_of(problem) is not None:
        return ()
    time = segment_time(segment)
    if time is None or not time.registers or _is_limited_by_memory(time):
        return ()
    warps = segment.kernel_params.num_warps
    limits = limits_for_more_programs(problem.device, warps, FILLED * float(time.registers))
    return limits[: programs - 1]


def _is_limited_by_memory(time: KernelTime) -> bool:
    return bool(time.resources["memory"] >= MEMORY_LIMITED * time.seconds)


def share_of_programs(segment: Segment, grid: tuple[int, int, int]) -> int:
    """Programs of a grid for each multiprocessor. 0 where sizes vary, and without a device."""
    problem = segment.problem
    if problem is None or problem.on_cpu or any(map(is_size, grid)):
        return 0
    return max(ceil_div(prod(grid), problem.device.sm_count), 1)
