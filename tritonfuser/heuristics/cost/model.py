"""The cost model: ``Counts`` of a kernel -> seconds, resource by resource.

The resources of a device work at the same time: memory, the paths from the L2 cache to the
multiprocessors, the L1 caches, the issue of instructions, the special function units, the start of
programs. A kernel takes about as long as the resource that is busy for longest, and somewhat longer
if others are busy for nearly as long: the p-norm of their seconds, with p = ``SHARPNESS``. Latency
that nothing hides is one of the resources: the time that successive programs wait for memory, for
one another, and for their own last instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...device import L2_SLICE_BYTES, DeviceProperties
from .constants import Constants, constants_of, evicted_share, l2_retention_bytes, miss_rate
from .counts import Counts, ElementCounts, Number
from .numbers import PLAIN, Numbers
from .programs_time import programs_time, resident_programs

SHARPNESS = 4.0
"""Order p of the norm that combines the times of resources; infinite would be their maximum."""

SERIAL_SHARPNESS = 2.5
"""Order of the norm for kernels whose loads, instructions and stores hardly overlap.

This is so in a loop that begins no loads of the next step before a step ends: all programs start
together and stay in phase, unless they read rows twice. H200, sums over columns of two tensors with
a result along them, 8192 x 8192 in bfloat16: 144 us by such a loop, 105 by a pipeline; by
``SHARPNESS`` 114 and 122. 52 norms, softmax and sums, by estimated registers: 0.72 of the pairs
that are 10% apart are in order, 0.67 by ``SHARPNESS``.

It is also so where a multiprocessor runs one program with rows at a time, if the registers of the
kernel are known; the order grows with the square root of the programs that run at a time. H200,
2,846 schedules of random definitions with their registers, 230 kernels: 0.860 and 0.855 of the
pairs of two files are in order, 0.858 and 0.850 by ``SHARPNESS`` alone. By estimated registers it
tells no more."""

FLAT_WARPS, FLAT_POWER = 40, 0.3
"""The order of the norm for a flat kernel is ``SHARPNESS`` from so many running warps of a
multiprocessor on, and falls with this power of their number: a program loads, converts layouts,
computes and stores in turn, and only other warps use what it leaves idle. By ``SHARPNESS`` alone,
kernels of 16 warps or fewer take 1.2 times the prediction (H200, 250 with known registers), those
of 33 or more 1.01 times. Of the pairs of schedules that are 10% apart (H200 and H100, four files)
0.859, 0.863, 0.917 and 0.885 are in order by it, 0.854, 0.856, 0.915 and 0.880 by ``SHARPNESS``
with ``SERIAL_SHARPNESS`` for one program."""

SAME = 1.001
"""Ratio up to which two predicted times count as equal: about the start of a program."""

REGISTER_SLACK = 16
"""Predicted registers beyond the limit that do not lead to spills: near its limit the compiler
schedules fewer instructions early. It is half of the limit at most, and none for kernels with an
address for each element or with known registers. H200, 606 kernels of random definitions that are
predicted to exceed their limit: by 63 registers in the mean, and they spill 41. Of 66 kernels of
norms, softmax and sums with a limit of at most 64, predicted to take up to twice as many, one
spills."""

FILLED = 0.9
"""A kernel may spill if its predicted registers exceed this share of its limit."""


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
        Registers that a thread would take without a limit, and its limit.
    order : float
        Order of the norm that combines the times of the resources.
    """

    resources: dict[str, Number]
    seconds: Number
    registers: Number
    register_limit: Number
    order: Number = SHARPNESS

    @property
    def limit(self) -> str:
        """The name of the resource that is busy for longest."""
        return max(self.resources, key=lambda name: float(self.resources[name]))

    @property
    def busy(self) -> Number:
        """Seconds without the start and the end of the kernel."""
        return busy_seconds(self.resources, self.order)

    @property
    def may_spill(self) -> bool:
        """Whether it may spill registers, as far as their estimate tells."""
        return bool(may_exceed(self.registers, self.register_limit))

    def with_instructions(self, share: float) -> KernelTime:
        """The time if the kernel had only a share of its instructions. Also for matrix products.

        The latency of programs falls with their instructions too.
        """
        fewer = (1 - share) * self.resources.get("instructions", 0.0)
        if not fewer:
            return self
        resources = dict(self.resources)
        resources["instructions"] -= fewer
        resources["latency"] = max(resources["latency"] - fewer, 0.0)
        return self._with_resources(resources)

    def without(self, resource: str) -> KernelTime:
        """The time if one of the resources were free. Also for matrix products."""
        return self._with_resources({**self.resources, resource: 0.0})

    def with_more_bytes(self, moved: Number, device: DeviceProperties) -> KernelTime:
        """The time if the kernel moved more bytes from or to memory (fewer where negative)."""
        more = moved / memory_rate(device, constants_of(device))
        return self._with_resources(self.resources | {"memory": self.resources["memory"] + more})

    def _with_resources(self, resources: dict[str, Number]) -> KernelTime:
        """The time with other seconds of its resources, and the same start and end."""
        seconds = self.seconds - self.busy + busy_seconds(resources, self.order)
        return KernelTime(resources, seconds, self.registers, self.register_limit, self.order)


def memory_rate(device: DeviceProperties, c: Constants) -> float:
    """Bytes that memory moves in a second."""
    return device.bandwidth_bytes_per_s * c.bandwidth


def may_exceed(registers: Number, limit: Number) -> Number:
    """Whether an estimated number of registers may exceed the limit."""
    return registers > FILLED * limit


def is_as_short(seconds: float, least: float) -> bool:
    """Whether a time equals the least one, within ``SAME``."""
    return seconds <= SAME * least


def busy_seconds(resources: dict[str, Number], order: Number = SHARPNESS) -> Number:
    """Seconds of resources that work at the same time: the norm of their seconds."""
    found: Number = 0.0
    for seconds in resources.values():
        found = found + seconds**order
    return found ** (1 / order)


def norm_order(n: Counts, running: Number, ahead: Number, m: Numbers) -> Number:
    """The order of the norm for a kernel.

    Parameters
    ----------
    running : float
        Programs that run at a time on a multiprocessor.
    ahead : float
        Steps of a program whose loads are in flight at a time.
    """
    warps = m.maximum(running * n.warps, 1.0)
    of_flat = SHARPNESS * m.minimum(warps / FLAT_WARPS, 1.0) ** FLAT_POWER
    with_known_registers = m.minimum(SERIAL_SHARPNESS * running**0.5, SHARPNESS)
    order = m.where(n.register_factor == 1.0, SHARPNESS, with_known_registers)
    is_serial_loop = (n.steps > 1) * (n.passes <= 1) * (ahead <= 1)
    of_rows = m.where(is_serial_loop, m.minimum(order, SERIAL_SHARPNESS), order)
    return m.where(n.is_flat > 0, of_flat, of_rows)


def wanted_registers(n: Counts, c: Constants, m: Numbers = PLAIN) -> Number:
    """Registers of a thread as the compiler would use them without a limit."""
    return n.register_factor * (
        c.registers
        + n.elements * registers_per_element(n, c)
        + c.registers_address * n.addresses * (1 + n.tail_elements / n.elements)
        + c.registers_row_word * n.row_words
        + c.registers_result * n.results
        + c.registers_op * m.log2(1 + n.instructions)
        + c.registers_pipeline * m.maximum(1.0 * (n.stages > 1), n.prefetches)
        + c.registers_load * n.loads
        + n.prefetches * n.elements * n.loaded_words
    )


def registers_per_element(n: Counts | ElementCounts, c: Constants) -> Number:
    """The part of ``wanted_registers`` that each element of a thread takes."""
    return (
        c.registers_element
        + c.registers_flat * n.is_flat
        + c.registers_kept * n.kept_tensors
        + c.registers_accumulator * n.accumulators
        + c.registers_column * n.columns
        + c.registers_word * n.loaded_words
        + n.staged * (c.registers_staged + c.registers_staged_column * n.columns)
    )


def kernel_time(
    n: Counts, device: DeviceProperties, given: Constants | None = None, m: Numbers = PLAIN
) -> KernelTime:
    """The predicted time of a kernel.

    Parameters
    ----------
    n : Counts
        What the model knows of the kernel.
    given : Constants, optional
        By default those of the device.
    m : Numbers
        Arithmetic of floats (``numbers.PLAIN``) or of arrays.
    """
    c = constants_of(device) if given is None else given
    registers = wanted_registers(n, c, m)
    has_no_slack = (n.addresses > 0) | (n.register_factor != 1.0)
    slack = m.where(has_no_slack, 0.0, m.minimum(REGISTER_SLACK, 0.5 * n.register_limit))
    spilled = m.maximum(registers - slack - n.register_limit, 0.0)
    resident = resident_programs(n, registers, device, m)
    moved = c.spill_traffic * spilled
    spill_bytes = 4 * moved * n.threads * n.steps * n.passes * n.programs
    memory_bytes = _memory_bytes(n, c, resident, device, m) + spill_bytes / 2
    own = programs_time(n, resident, moved, device, c, m)
    resources = {
        "memory": memory_bytes / memory_rate(device, c),
        **_cache_seconds(n, c, moved, spill_bytes, device, m),
        **own.resources,
    }
    running = m.minimum(resident, m.ceil(n.programs / device.sm_count))
    tail = own.tail_s + c.exchange_tail * running * n.exchange_clocks / device.clock_hz
    order = norm_order(n, running, own.ahead, m)
    seconds = whole_seconds(resources, tail, c, order)
    return KernelTime(resources, seconds, registers, n.register_limit, order)


def whole_seconds(
    resources: dict[str, Number], tail: Number, c: Constants, order: Number = SHARPNESS
) -> Number:
    """Seconds of a kernel: those of its resources, and of its start and end."""
    return busy_seconds(resources, order) + (c.start_s + c.latency_s) + c.kernel_s + tail


def _memory_bytes(
    n: Counts, c: Constants, resident: Number, device: DeviceProperties, m: Numbers
) -> Number:
    """Bytes from and to memory: the tensors, and what is moved again. That is rows in later passes
    and the rest of sectors, if the L2 cache evicted them; gathers that miss it; and sectors that
    are written in part."""
    running = m.minimum(n.programs, resident * device.sm_count)
    running_steps = running * n.steps
    capacity = l2_retention_bytes(device, c)
    rows_evicted = evicted_share(running_steps * n.reloaded_bytes, capacity)
    rows = m.minimum(n.reloaded_bytes * n.steps * n.programs, n.moved_bytes)
    in_flight = running_steps * n.fetched_bytes
    reuse_distance = m.where(n.steps > 1, in_flight * c.drift, in_flight)
    evicted = evicted_share(reuse_distance, capacity)
    rest_of_sectors = c.refetched * evicted * n.extra_bytes * (n.steps * n.passes) * n.programs
    gathered = miss_rate(running * n.window_bytes, capacity, m) * n.repeat_request_bytes
    in_part = c.written_in_part * n.partial_sector_bytes * n.programs * n.valid
    later_passes = rows_evicted * (n.passes - 1) * rows
    return n.moved_bytes + later_passes + rest_of_sectors + gathered + in_part


def _cache_seconds(
    n: Counts,
    c: Constants,
    moved: Number,
    spill_bytes: Number,
    device: DeviceProperties,
    m: Numbers,
) -> dict[str, Number]:
    """Seconds that the L2 cache, its busiest slice, and the L1 caches are busy.

    Parameters
    ----------
    moved : float
        Spilled registers that a thread stores and loads in a step.
    spill_bytes : float
        Bytes of these, of the whole kernel.
    """
    clock, visits = device.clock_hz, n.steps * n.passes
    on_sm = m.ceil(n.programs / device.sm_count)
    busiest_sm = on_sm * device.sm_count * (n.fetched_bytes + n.stored_bytes)
    # Windows of the programs that run at a time by their threads alone: the compiler gives up
    # registers rather than run fewer.
    running = m.minimum(m.floor(device.max_threads_per_sm / n.threads), on_sm)
    open_bytes = running * n.opened_bytes
    hit_rate = 1 - miss_rate(open_bytes, c.l1_share * device.shared_bytes_per_sm, m)
    lines = n.lines - hit_rate * n.hit_lines * (1 - c.hit_clocks / c.line_clocks)
    l2_bytes = m.maximum((n.sector_bytes - hit_rate * n.hit_bytes) * n.programs, busiest_sm)
    l1_lines = (on_sm * lines + on_sm * n.warps * moved) * visits
    exchange = on_sm * n.exchange_clocks
    sm_rate = device.sm_count * c.sm_bytes * clock
    store_rate = device.sm_count * c.sm_written_bytes * clock
    return {
        "L2 cache": (l2_bytes * n.valid * visits + spill_bytes) / sm_rate,
        "L2 stores": n.written_bytes * n.programs * n.valid * visits / store_rate,
        "L2 slice": n.slice_bytes * n.programs * visits / (L2_SLICE_BYTES * clock),
        "L1 cache": (l1_lines * c.line_clocks + exchange) / clock,
    }
