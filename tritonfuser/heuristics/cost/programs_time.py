"""The time of programs apart from memory traffic: they start, compute and wait."""

from __future__ import annotations

from typing import NamedTuple

from ...device import MAX_PROGRAMS_PER_SM, NVIDIA_WARP_SIZE, DeviceProperties
from .constants import Constants
from .counts import Counts, Number
from .draws import RANDOM_WORDS
from .numbers import Numbers

CODE_INSTRUCTIONS = 4000
"""Instructions of a step that fit in the instruction cache of a multiprocessor: some 64 KiB."""

UNROLLED_INSTRUCTIONS = 290
"""ptxas unrolls a loop until its body has about so many instructions, if loads have no masks. The
loads of the unrolled steps are issued together. Loops of 7 kernels of random definitions, sm_90:
steps of 22 to 47 instructions, 4 to 11 of them in bodies of 153 to 282. No loop with masked loads
was unrolled."""

OF_OTHER_WARPS = 0.5
"""Cost of a result of a scan for each other warp along the row, in exchanges: Triton reads the
partial results of these warps from shared memory, one after another. H200, 24 random scans with 9
schedules each: the order of 0.893 of the pairs that are 10% apart is right, of 0.876 without; of 20
others, not fitted to, 0.916 and 0.908."""


class ProgramsTime(NamedTuple):
    """The time of programs apart from memory traffic.

    Attributes
    ----------
    resources : dict of str to float
        Seconds that each resource is busy.
    tail_s : float
        Seconds at the end of the last programs, which no others hide.
    ahead : float
        Number of steps of a program whose loads are in flight at a time, about; at least 1.
    """

    resources: dict[str, Number]
    tail_s: Number
    ahead: Number


def resident_programs(n: Counts, registers: Number, device: DeviceProperties, m: Numbers) -> Number:
    """Programs that a multiprocessor runs at a time, by threads, registers and shared memory."""
    given = m.minimum(m.maximum(m.ceil(registers / 8) * 8, 24.0), n.register_limit)
    by_threads = device.max_threads_per_sm / n.threads
    by_registers = device.registers_per_sm / (given * n.threads)
    shared = (n.stages - 1) * n.loaded_bytes
    by_memory = device.shared_bytes_per_sm / m.maximum(shared, 1024.0)
    found = m.minimum(m.minimum(by_threads, by_registers), by_memory)
    return m.maximum(m.floor(m.minimum(found, MAX_PROGRAMS_PER_SM)), 1.0)


def programs_time(
    n: Counts,
    resident: Number,
    moved: Number,
    device: DeviceProperties,
    c: Constants,
    m: Numbers,
) -> ProgramsTime:
    """The time of programs apart from memory traffic.

    Parameters
    ----------
    resident : float
        Programs that a multiprocessor runs at a time.
    moved : float
        Stores and loads of spilled registers by a thread, in a step.
    """
    on_sm, visits, clock = m.ceil(n.programs / device.sm_count), n.steps * n.passes, device.clock_hz
    instructions = _instructions(n, c, moved, m)
    # Few warps do not fill the pipes: each waits for its own last instruction.
    busy_warps = m.maximum(m.minimum(resident, on_sm), 1.0) * n.warps
    latency_factor = 1 + c.latent_warps / busy_warps
    code = m.log2(instructions / n.steps / CODE_INSTRUCTIONS)
    slowdown = 1 + c.code_misses * m.maximum(code, 0.0)
    warps = on_sm * n.warps
    issued = warps * instructions * slowdown
    issue = device.rates.issue / NVIDIA_WARP_SIZE
    computing = _computing(n, c, instructions * slowdown, issue, m) / clock
    ahead = _steps_ahead(n, instructions / n.steps, m)
    program = c.start_s + _waiting(n, c, ahead) + computing + n.waiting_s
    start_and_end = c.start_s + c.latency_s  # counted for the kernel, in ``whole_seconds``
    special = device.rates.sfu / NVIDIA_WARP_SIZE
    elements = warps * n.steps * n.elements * (device.warp_size / NVIDIA_WARP_SIZE)
    resources = {
        "instructions": issued * latency_factor / (issue * c.issue) / clock,
        "special functions": elements * n.special * c.sfu_clocks / special / clock,
        "programs": on_sm * (c.program_clocks + n.warps * c.warp_clocks) / clock,
        "latency": m.maximum(m.ceil(on_sm / resident) * program - start_and_end, 0.0),
    }
    return ProgramsTime(resources, c.tail * computing / visits, ahead)


def _instructions(n: Counts, c: Constants, moved: Number, m: Numbers) -> Number:
    """Instructions of one warp from its start to its end."""
    drawing = c.draw_instructions * n.draws * m.maximum(RANDOM_WORDS / n.elements, 1.0)
    loading = c.load_instructions * n.loaded * n.passes
    element = n.instructions * c.element_instructions + loading + drawing
    accesses = n.accesses * c.access_instructions + n.index_instructions * c.index_instructions
    accesses = accesses / n.warps
    valid = m.minimum(n.valid / n.computed, 1.0)
    weight = valid + c.masked * (1 - valid)
    step = n.elements * weight * element + n.passes * (accesses + c.step_instructions + moved)
    step = step + c.row_exchange_instructions * n.row_values
    exchange = 1 + m.log2(m.minimum(n.lanes, 1.0 * NVIDIA_WARP_SIZE))
    # In a loop, a scan also carries a sum along the row, which is added to each element.
    carried = m.where(n.steps > 1, n.results * exchange + n.elements, 0.0)
    others = m.maximum(n.lanes / NVIDIA_WARP_SIZE, 1.0) - 1
    scanned = n.elements + carried + OF_OTHER_WARPS * n.results * others
    reduced = n.reductions * n.results * exchange + n.scans * scanned
    reduced = n.reduced_steps * c.exchange_instructions * reduced
    return n.steps * step + reduced + c.program_instructions


def _steps_ahead(n: Counts, step: Number, m: Numbers) -> Number:
    """Number of steps of a program whose loads are in flight at a time, about.

    Parameters
    ----------
    step : float
        Instructions of a warp in a step, in all passes.
    """
    unrolled = m.maximum(UNROLLED_INSTRUCTIONS * n.passes / step, 1.0)
    # Compilers move no loads across a barrier.
    ahead = m.where(n.serial_steps > 0, 1.0, unrolled)
    return m.where(n.stages > 1, m.maximum(n.stages - 1.0, 1.0), ahead + n.prefetches)


def _waiting(n: Counts, c: Constants, ahead: Number) -> Number:
    """Seconds that a program waits for memory, if it has a multiprocessor for itself."""
    later = c.second_latency * (n.passes - 1)
    return c.latency_s * (1 + later + n.passes * (n.steps - 1) / ahead)


def _computing(n: Counts, c: Constants, instructions: Number, issue: float, m: Numbers) -> Number:
    """Clocks of a program apart from waiting for memory, if it has a multiprocessor for itself.

    They are limited by the issue rate, or by the latency of each warp's instructions.
    """
    across = m.log2(m.maximum(n.lanes / NVIDIA_WARP_SIZE, 1.0))
    reduction = c.reduction_clocks * (n.lanes > 1) + c.barrier_clocks * across
    columns = 2 * c.reduction_clocks * n.columns * (n.row_lanes > 1)
    each = m.maximum(n.warps / (issue * c.issue), c.serial_clocks)
    return instructions * each + n.reduced_steps * (n.reductions * reduction + columns)
