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

from ...device import L2_SLICE_BYTES, DeviceProperties
from .constants import Constants, cache_room, constants_of, share_lost, share_missed
from .counts import Counts, HeldOfElement, LeastCounts, Number
from .numbers import PLAIN, Numbers
from .programs_time import programs_time, resident_programs

SHARPNESS = 4.0
"""Order of the norm that joins the times of resources: infinite for the longest alone."""

IN_TURN = 2.5
"""That order where loads, instructions and stores follow one another, and nothing else hides them.

In a loop that begins no loads of the next step before this one ends: programs start together, and
stay together, unless they read rows twice. H200, sums over columns of two tensors with a result
along them, 8192 x 8192 in bfloat16: 144 us by such a loop, 105 by a pipeline; by ``SHARPNESS`` 114
and 122. 52 norms, softmax and sums, by estimated registers: 0.72 of the pairs that are 10% apart
are in order, 0.67 by ``SHARPNESS``.

And where one program runs at a time on a multiprocessor, as far as registers are known; the order
grows with the root of the programs. H200, 2,846 schedules of random definitions with their
registers, 230 kernels: 0.860 and 0.855 of the pairs of two files are in order, 0.858 and 0.850 by
``SHARPNESS`` alone. By estimated registers it tells no more, but for flat kernels of which one
program runs at a time: of 15 random definitions the choice over the fastest is 1.12 at the 90th
percentile, 1.50 without."""

SAME = 1.001
"""Factor within which predicted times are the same: they differ by what a program's start takes."""

SPARED = 16
"""Registers that a kernel is predicted to take and gives up before it spills: those of what it
begins early. H200, 606 kernels of random definitions that are predicted to take more than their
limit: they spill 41 registers in the mean, 63 are predicted beyond it. Of 66 kernels of norms,
softmax and sums with a limit of at most 64, predicted to take up to twice as many, one spills. An
address that each element has for itself is not given up, nor is anything where the registers are
known, and of a limit below twice as many no more than half of it is."""

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
    order : float
        Of the norm that joins the times of the resources.
    """

    resources: dict[str, Number]
    seconds: Number
    registers: Number
    register_limit: Number
    order: Number = SHARPNESS

    @property
    def limit(self) -> str:
        """The resource that is busy for longest."""
        return max(self.resources, key=lambda name: float(self.resources[name]))

    @property
    def busy(self) -> Number:
        """Seconds without those of its start and end."""
        return busy_seconds(self.resources, self.order)

    @property
    def may_spill(self) -> bool:
        """Whether it may spill registers: their number is an estimate."""
        return bool(may_exceed(self.registers, self.register_limit))

    def with_instructions(self, share: float) -> KernelTime:
        """The time of a kernel with a share of its instructions, also of those that programs wait
        for one after another. The same for a product."""
        fewer = (1 - share) * self.resources.get("instructions", 0.0)
        if not fewer:
            return self
        resources = dict(self.resources)
        resources["instructions"] -= fewer
        resources["latency"] = max(resources["latency"] - fewer, 0.0)
        return self._with_resources(resources)

    def without(self, resource: str) -> KernelTime:
        """The time of a kernel that does not need one of its resources. The same for a product."""
        return self._with_resources({**self.resources, resource: 0.0})

    def with_more_bytes(self, moved: Number, device: DeviceProperties) -> KernelTime:
        """The time of a kernel that moves more bytes, or fewer, and is the same otherwise."""
        more = moved / memory_rate(device, constants_of(device))
        return self._with_resources(self.resources | {"memory": self.resources["memory"] + more})

    def _with_resources(self, resources: dict[str, Number]) -> KernelTime:
        """The time of a kernel that is the same but for what its resources do."""
        seconds = self.seconds - self.busy + busy_seconds(resources, self.order)
        return KernelTime(resources, seconds, self.registers, self.register_limit, self.order)


def memory_rate(device: DeviceProperties, c: Constants) -> float:
    """Bytes that memory moves in a second."""
    return device.bandwidth_bytes_per_s * c.bandwidth


def may_exceed(registers: Number, limit: Number) -> Number:
    """Whether an estimated number of registers may exceed the limit."""
    return registers > FILLED * limit


def is_as_short(seconds: float, least: float) -> bool:
    """Whether a time is the least one, as far as the model tells times apart."""
    return seconds <= SAME * least


def busy_seconds(resources: dict[str, Number], order: Number = SHARPNESS) -> Number:
    """The time of resources that work at the same time."""
    return sum(seconds**order for seconds in resources.values()) ** (1 / order)


def order_of(n: Counts | LeastCounts, running: Number, ahead: Number, m: Numbers) -> Number:
    """The order of the norm for a kernel of which so many programs run at a time, each with the
    loads of so many steps under way."""
    known = m.minimum(IN_TURN * running**0.5, SHARPNESS)
    found = m.where(n.taken == 1.0, SHARPNESS, known)
    follow = (n.steps > 1) * (n.passes <= 1) * (ahead <= 1)
    alone = n.is_flat * (running <= 1)
    return m.where(follow + alone > 0, m.minimum(found, IN_TURN), found)


def wanted_registers(n: Counts | LeastCounts, c: Constants, m: Numbers = PLAIN) -> Number:
    """Registers of a thread as the compiler would use them without a limit."""
    return n.taken * (
        c.registers
        + n.elements * registers_each(n, c)
        + c.registers_address * n.addresses * (1 + n.held / n.elements)
        + c.registers_row_word * n.row_words
        + c.registers_result * n.results
        + c.registers_op * m.log2(1 + n.instructions)
        + c.registers_pipeline * m.maximum(1.0 * (n.stages > 1), n.prefetches)
        + c.registers_load * n.loads
        + n.prefetches * n.elements * n.words
    )


def registers_each(n: Counts | LeastCounts | HeldOfElement, c: Constants) -> Number:
    """Those of them for each of its elements."""
    return (
        c.registers_element
        + c.registers_flat * n.is_flat
        + c.registers_kept * n.kept_tensors
        + c.registers_accumulator * n.accumulators
        + c.registers_column * n.columns
        + c.registers_word * n.words
        + n.staged * (c.registers_staged + c.registers_staged_column * n.columns)
    )


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
    exact = (n.addresses > 0) | (n.taken != 1.0)
    spared = m.where(exact, 0.0, m.minimum(SPARED, 0.5 * n.register_limit))
    spilled = m.maximum(registers - spared - n.register_limit, 0.0)
    resident = resident_programs(n, registers, device, m)
    on_sm = m.ceil(n.programs / device.sm_count)
    visits = n.steps * n.passes
    clock = device.clock_hz

    moved = c.spill_traffic * spilled
    warps = on_sm * n.warps
    spill_bytes = 4 * moved * n.threads * visits * n.programs
    memory_bytes = _memory_bytes(n, c, resident, visits, device, m) + spill_bytes / 2
    fabric = device.sm_count * c.sm_bytes * clock
    stores = device.sm_count * c.sm_written_bytes * clock
    busiest = on_sm * device.sm_count * (n.fetched_bytes + n.stored_bytes)
    # Windows of reads at indices: of the programs that threads have room for. The compiler gives up
    # registers that would leave room for fewer.
    opened = m.minimum(m.floor(device.max_threads_per_sm / n.threads), on_sm) * n.opened_bytes
    kept = 1 - share_missed(opened, c.l1_share * device.shared_bytes_per_sm, m)
    lines = n.lines - kept * n.hit_lines * (1 - c.hit_clocks / c.line_clocks)
    crossing = m.maximum((n.sector_bytes - kept * n.hit_bytes) * n.programs, busiest)
    exchanged = on_sm * n.exchange_clocks
    own = programs_time(n, resident, moved, device, c, m)
    resources = {
        "memory": memory_bytes / memory_rate(device, c),
        "L2 cache": (crossing * n.valid * visits + spill_bytes) / fabric,
        "L2 stores": n.written_bytes * n.programs * n.valid * visits / stores,
        "L2 slice": n.slice_bytes * n.programs * visits / (L2_SLICE_BYTES * clock),
        "L1 cache": ((on_sm * lines + warps * moved) * visits * c.line_clocks + exchanged) / clock,
        **own.resources,
    }
    running = m.minimum(resident, on_sm)
    tail = own.tail_s + c.exchange_tail * running * n.exchange_clocks / clock
    order = order_of(n, running, own.ahead, m)
    seconds = whole_seconds(resources, tail, c, order)
    return KernelTime(resources, seconds, registers, n.register_limit, order)


def whole_seconds(
    resources: dict[str, Number], tail: Number, c: Constants, order: Number = SHARPNESS
) -> Number:
    """The time of resources with the start and the end of the kernel."""
    return busy_seconds(resources, order) + (c.start_s + c.latency_s) + c.kernel_s + tail


def _memory_bytes(
    n: Counts, c: Constants, resident: Number, visits: Number, device: DeviceProperties, m: Numbers
) -> Number:
    """Bytes from and to memory: rows that the L2 cache has lost are read in every pass, and sectors
    that are written in part are moved again."""
    running = m.minimum(n.programs, resident * device.sm_count)
    at_once = running * n.steps
    flight = at_once * n.fetched_bytes
    room = cache_room(device, c)
    lost = share_lost(at_once * n.again_bytes, room)
    read = m.minimum(n.again_bytes * n.steps * n.programs, n.moved_bytes)
    apart = m.where(n.steps > 1, flight * c.drift, flight)
    refetched = c.refetched * share_lost(apart, room) * n.extra_bytes * visits * n.programs
    gathered = share_missed(running * n.window_bytes, room, m) * n.requested_again
    in_part = c.written_in_part * n.partly_bytes * n.programs * n.valid
    return n.moved_bytes + lost * (n.passes - 1) * read + refetched + gathered + in_part
