"""The cost model: counts of a kernel -> seconds, resource by resource.

The resources of a device work at the same time: memory, the paths from the L2 cache to the
multiprocessors, the L1 caches, the issue of instructions, the pipe of special functions, the start
of programs. A kernel takes about as long as the one that is busy for longest, and some more where
several are busy for nearly as long: the norm of order ``SHARPNESS``. What nothing hides is a
resource too: the time that programs, one after another, wait for memory, for one another, and for
their own last instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...device import L2_SLICE_BYTES, MAX_PROGRAMS_PER_SM, NVIDIA_WARP_SIZE, DeviceProperties
from .constants import Constants, cache_room, constants_of, share_lost
from .counts import Counts, Held, Number
from .numbers import PLAIN, Numbers

SHARPNESS = 4.0
"""Order of the norm that joins the times of resources: infinite for the longest alone."""

CODE_INSTRUCTIONS = 4000
"""Instructions of a step that the instruction cache of a multiprocessor holds: some 64 KiB."""

MAX_UNROLLED = 4.0
"""Steps of a loop without a pipeline whose loads the compiler begins together, at most."""

FILLED = 0.9
"""Share of the register limit from which on a kernel counts as one that may spill."""


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The time of a kernel.

    Attributes
    ----------
    resources : dict of str to float
        Seconds that each resource is busy.
    seconds : float
        All of the kernel: what is busy for longest, its start and its end.
    registers, register_limit : float
        Of a thread, those that are wanted and those that there are. More are spilled.
    """

    resources: dict[str, Number]
    seconds: Number
    registers: Number
    register_limit: Number

    @property
    def limit(self) -> str:
        """The resource that is busy for longest."""
        return max(self.resources, key=lambda name: float(self.resources[name]))

    @property
    def busy(self) -> Number:
        """Seconds without those of its start and end."""
        return busy_seconds(self.resources)

    @property
    def may_spill(self) -> bool:
        """Whether it may spill registers: their number is an estimate."""
        return may_exceed(self.registers, self.register_limit)

    def with_instructions(self, share: float) -> KernelTime:
        """The time of a kernel with a share of its instructions, also of those that programs wait
        for one after another. The same for a product."""
        fewer = (1 - share) * self.resources.get("instructions", 0.0)
        if not fewer:
            return self
        resources = dict(self.resources)
        resources["instructions"] -= fewer
        resources["latency"] = max(resources["latency"] - fewer, 0.0)
        seconds = self.seconds - self.busy + busy_seconds(resources)
        return KernelTime(resources, seconds, self.registers, self.register_limit)

    def with_more_bytes(self, moved: Number, device: DeviceProperties) -> KernelTime:
        """The time of a kernel that moves more bytes, or fewer, and is the same otherwise."""
        more = moved / memory_rate(device, constants_of(device))
        resources = self.resources | {"memory": self.resources["memory"] + more}
        seconds = self.seconds - self.busy + busy_seconds(resources)
        return KernelTime(resources, seconds, self.registers, self.register_limit)


def memory_rate(device: DeviceProperties, c: Constants) -> float:
    """Bytes that memory moves in a second."""
    return device.bandwidth_bytes_per_s * c.bandwidth


def may_exceed(registers: Number, limit: Number) -> bool:
    """Whether an estimated number of registers may exceed the limit."""
    return bool(registers > FILLED * limit)


def busy_seconds(resources: dict[str, Number]) -> Number:
    """The time of resources that work at the same time."""
    return sum(seconds**SHARPNESS for seconds in resources.values()) ** (1 / SHARPNESS)


def wanted_registers(n: Counts | Held, c: Constants, m: Numbers = PLAIN) -> Number:
    """Registers of a thread as the compiler would use them without a limit."""
    element = (
        c.registers_element
        + c.registers_flat * n.is_flat
        + c.registers_kept * n.kept_tensors
        + c.registers_accumulator * n.accumulators
        + c.registers_column * n.columns
        + c.registers_word * n.words
    )
    return (
        c.registers
        + n.elements * element
        + c.registers_address * n.addresses * (1 + n.held / n.elements)
        + c.registers_result * n.results
        + c.registers_op * m.log2(1 + n.instructions)
        + c.registers_pipeline * (n.stages > 1)
        + c.registers_load * n.loads
    )


def resident_programs(n: Counts, registers: Number, device: DeviceProperties, m: Numbers) -> Number:
    """Resident programs of a multiprocessor, by threads, registers and shared memory."""
    given = m.minimum(m.maximum(m.ceil(registers / 8) * 8, 24.0), n.register_limit)
    by_threads = device.max_threads_per_sm / n.threads
    by_registers = device.registers_per_sm / (given * n.threads)
    shared = (n.stages - 1) * n.loaded_bytes
    by_memory = device.shared_bytes_per_sm / m.maximum(shared, 1024.0)
    found = m.minimum(m.minimum(by_threads, by_registers), by_memory)
    return m.maximum(m.floor(m.minimum(found, MAX_PROGRAMS_PER_SM)), 1.0)


def kernel_time(
    n: Counts, device: DeviceProperties, given: Constants | None = None, m: Numbers = PLAIN
) -> KernelTime:
    """The time of a kernel with these counts.

    Parameters
    ----------
    given : Constants, optional
        By default those of the device.
    m : module
        Functions of numbers: ``numbers.PLAIN``, or the same of arrays.
    """
    c = constants_of(device) if given is None else given
    registers = wanted_registers(n, c, m)
    spilled = m.maximum(registers - n.register_limit, 0.0)
    resident = resident_programs(n, registers, device, m)
    on_sm = m.ceil(n.programs / device.sm_count)
    visits = n.steps * n.passes
    clock = device.clock_hz

    moved = c.spill_traffic * spilled
    instructions = _instructions(n, c, moved, m)
    # Warps wait for their own last instruction, so that few of them do not fill the pipes.
    busy_warps = m.maximum(m.minimum(resident, on_sm), 1.0) * n.warps
    waits = 1 + c.latent_warps / busy_warps
    slower = 1 + c.code_misses * m.maximum(m.log2(instructions / n.steps / CODE_INSTRUCTIONS), 0.0)
    warps = on_sm * n.warps
    spill_bytes = 4 * moved * n.threads * visits * n.programs
    memory_bytes = _memory_bytes(n, c, resident, visits, device, m) + spill_bytes / 2
    fabric = device.sm_count * c.sm_bytes * clock
    busiest = on_sm * device.sm_count * (n.fetched_bytes + n.stored_bytes)
    # Windows of reads at indices, which the L1 cache keeps while it has room for all that are open.
    kept = 1 - share_lost(resident * n.opened_bytes, c.l1_share * device.shared_bytes_per_sm)
    lines = n.lines - kept * n.hit_lines * (1 - c.hit_clocks / c.line_clocks)
    crossing = m.maximum((n.sector_bytes - kept * n.hit_bytes) * n.programs, busiest)
    start = c.start_s + c.latency_s
    issue = device.rates.issue / NVIDIA_WARP_SIZE
    computing = _computing(n, c, instructions * slower, issue, m) / clock
    program = c.start_s + _waiting(n, c, visits, m) + computing + n.waiting_s
    exchanged = on_sm * n.exchange_clocks
    special = device.rates.sfu / NVIDIA_WARP_SIZE
    elements = warps * n.steps * n.elements * (device.warp_size / NVIDIA_WARP_SIZE)
    resources = {
        "memory": memory_bytes / memory_rate(device, c),
        "L2 cache": (crossing * n.valid * visits + spill_bytes) / fabric,
        "L2 slice": n.slice_bytes * n.programs * visits / (L2_SLICE_BYTES * clock),
        "L1 cache": ((on_sm * lines + warps * moved) * visits * c.line_clocks + exchanged) / clock,
        "instructions": warps * instructions * slower * waits / (issue * c.issue) / clock,
        "special functions": elements * n.special * c.sfu_clocks / special / clock,
        "programs": on_sm * (c.program_clocks + n.warps * c.warp_clocks) / clock,
        "latency": m.maximum(m.ceil(on_sm / resident) * program - start, 0.0),
    }
    busy = busy_seconds(resources)
    last = m.minimum(resident, on_sm) * n.exchange_clocks / clock
    tail = c.tail * computing / visits + c.exchange_tail * last
    return KernelTime(resources, busy + start + c.kernel_s + tail, registers, n.register_limit)


def _instructions(n: Counts, c: Constants, moved: Number, m: Numbers) -> Number:
    """Instructions of one warp, from its start to its end, where a step moves spilled registers."""
    apart = c.draw_instructions * n.draws * m.maximum(4 / n.elements, 1.0)
    element = (
        n.instructions * c.element_instructions + c.load_instructions * n.loaded * n.passes + apart
    )
    accesses = n.accesses / n.warps * c.access_instructions
    there = n.valid + c.masked * (1 - n.valid)
    step = n.elements * there * element + n.passes * (accesses + c.step_instructions + moved)
    step = step + c.row_exchange_instructions * n.row_values
    exchange = 1 + m.log2(m.minimum(n.lanes, 1.0 * NVIDIA_WARP_SIZE))
    reduced = c.exchange_instructions * n.reductions * n.results * exchange
    return n.steps * step + n.reduced_steps * reduced + c.program_instructions


def _memory_bytes(
    n: Counts, c: Constants, resident: Number, visits: Number, device: DeviceProperties, m: Numbers
) -> Number:
    """Bytes from and to memory: rows that the L2 cache has lost are read in every pass."""
    running = m.minimum(n.programs, resident * device.sm_count)
    at_once = running * n.steps
    flight = at_once * n.fetched_bytes
    room = cache_room(device, c)
    lost = share_lost(at_once * n.again_bytes, room)
    read = m.minimum(n.again_bytes * n.steps * n.programs, n.moved_bytes)
    apart = m.where(n.steps > 1, flight * c.drift, flight)
    refetched = c.refetched * share_lost(apart, room) * n.extra_bytes * visits * n.programs
    gathered = share_lost(running * n.window_bytes, room) * n.requested_again
    return n.moved_bytes + lost * (n.passes - 1) * read + refetched + gathered


def _waiting(n: Counts, c: Constants, visits: Number, m: Numbers) -> Number:
    """Seconds that a program waits for memory, if it had the multiprocessor for itself."""
    ahead = m.maximum(c.unrolled / n.elements, 1.0)
    ahead = m.where(n.stages > 1, m.maximum(n.stages - 1.0, 1.0), m.minimum(ahead, MAX_UNROLLED))
    later = c.second_latency * (n.passes - 1)
    return c.latency_s * (1 + later + (visits - n.passes) / ahead)


def _computing(n: Counts, c: Constants, instructions: Number, issue: float, m: Numbers) -> Number:
    """Clocks of a program without waiting for memory, if it had the multiprocessor for itself.

    Its warps wait for their own last instruction, or for one another's.
    """
    across = m.log2(m.maximum(n.lanes / NVIDIA_WARP_SIZE, 1.0))
    reduction = c.reduction_clocks * (n.lanes > 1) + c.barrier_clocks * across
    columns = 2 * c.reduction_clocks * n.columns * (n.row_lanes > 1)
    each = m.maximum(n.warps / (issue * c.issue), c.serial_clocks)
    return instructions * each + n.reduced_steps * (n.reductions * reduction + columns)
