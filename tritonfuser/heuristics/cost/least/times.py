"""Lower bounds of predicted times: of a problem by any params, and of many params at once."""

from __future__ import annotations

from ....device import NVIDIA_WARP_SIZE, DeviceProperties
from ...problem import ElementWork, Problem
from ..constants import Constants, constants_of
from ..counts import LeastCounts, Number
from ..model import KernelTime, busy_seconds, memory_rate, norm_order, whole_seconds
from ..numbers import ARRAYS
from ..programs_time import programs_time, resident_programs


def least_of_problem(problem: Problem, work: ElementWork) -> float:
    """A lower bound of the seconds of a problem's kernel, by any params: those of its start and its
    end, and between them ``least_busy``."""
    c = constants_of(problem.device)
    return c.launch_s + c.kernel_s + c.start_s + c.latency_s + least_busy(problem, work)


def least_busy(problem: Problem, work: ElementWork) -> float:
    """A lower bound of the seconds without start and end of a problem's kernel, by any params.

    All resources are busy at the same time: memory moves each byte once, each instruction is issued
    once, and there are as many warps as fit.
    """
    c, device = constants_of(problem.device), problem.device
    clocks = device.sm_count * device.clock_hz
    elements = problem.parallel * max(problem.reduced, 1)
    instructions = (work.before + work.after + work.reducing) * c.element_instructions
    loads = sum(stream.accessed_share for stream in problem.full_loads)
    instructions += loads * c.load_instructions
    issue = device.rates.issue / NVIDIA_WARP_SIZE
    waits = 1 + c.latent_warps * device.warp_size / device.max_threads_per_sm
    warps = elements / device.warp_size * waits
    special = elements * (work.special_before + work.special_after) * c.sfu_clocks
    resources = {
        "memory": problem.moved_bytes / memory_rate(device, c),
        "L2 cache": problem.moved_bytes / (clocks * c.sm_bytes),
        "instructions": warps * instructions / (clocks * c.issue * issue),
        "special functions": special / (clocks * device.rates.sfu),
    }
    return float(busy_seconds(resources))


def least_time(
    n: LeastCounts, registers: Number, device: DeviceProperties, c: Constants
) -> KernelTime:
    """Lower bounds of the times of many kernels, as arrays.

    Parameters
    ----------
    n : LeastCounts
        Lower bounds of their counts.
    registers : array
        Registers of a thread that they take at least.
    """
    m = ARRAYS
    resident = resident_programs(n, registers, device, m)
    own = programs_time(n, resident, 0.0, device, c, m)
    on_sm = m.ceil(n.programs / device.sm_count)
    visits = on_sm * n.steps * n.passes
    # ``hit_lines`` may count a line of a gather twice: by the warps and by the windows.
    lines = m.maximum(n.lines - n.hit_lines * (1 - c.hit_clocks / c.line_clocks), 0.0)
    clocks = visits * lines * c.line_clocks + on_sm * n.exchange_clocks
    stores = device.sm_count * c.sm_written_bytes * device.clock_hz
    written = n.written_bytes * n.programs * n.valid * n.steps * n.passes
    busiest_sm = on_sm * device.sm_count * (n.fetched_bytes + n.stored_bytes)
    sectors = m.maximum((n.sector_bytes - n.hit_bytes) * n.programs, busiest_sm)
    crossing = sectors * n.valid * n.steps * n.passes
    resources = {
        "memory": n.moved_bytes / memory_rate(device, c),
        "L2 cache": crossing / (device.sm_count * c.sm_bytes * device.clock_hz),
        "L2 stores": written / stores,
        "L1 cache": clocks / device.clock_hz,
        **own.resources,
    }
    # An upper bound of the order, as both arguments are: with fewer registers more programs are
    # resident, with fewer instructions the loads of more steps are in flight.
    order = norm_order(n, m.minimum(resident, on_sm), own.ahead, m)
    tail = (
        own.tail_s + c.exchange_tail * m.minimum(on_sm, 1.0) * n.exchange_clocks / device.clock_hz
    )
    seconds = whole_seconds(resources, tail, c, order)
    return KernelTime(resources, seconds, registers, n.register_limit, order)
