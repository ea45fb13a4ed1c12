"""The least time that work can take on a device: its bytes, its instructions, its launches.

Every figure here is a lower bound: bytes and instructions that no kernel for the work can do
without, at the highest rate that the device has for them. So the share of the bound that a kernel
reaches says how much is left to gain, whatever limits it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..device import DeviceProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """Instructions of threads, by the pipe that they take.

    Attributes
    ----------
    multiplies, adds : float
        Of float32. A multiply and an add may be one instruction (FMA).
    fp64 : float
        Arithmetic of float64.
    integer : float
        32-bit additions, logic, comparisons, minima, selections.
    integer_multiplies : float
        32-bit multiplies.
    sfu : float
        Reciprocals, roots, exponentials, logarithms, sines.
    conversions : float
        Between floats and integers, and to narrower floats.
    others : float
        Those of no pipe in particular: they are issued, and that is all that is known.
    """

    multiplies: float = 0.0
    adds: float = 0.0
    fp64: float = 0.0
    integer: float = 0.0
    integer_multiplies: float = 0.0
    sfu: float = 0.0
    conversions: float = 0.0
    others: float = 0.0

    @property
    def fp32(self) -> float:
        """Instructions of float32, if as many as can be are multiply and add in one."""
        return max(self.multiplies, self.adds)

    @property
    def issued(self) -> float:
        """All of them."""
        rest = (self.fp64, self.integer, self.integer_multiplies, self.sfu, self.conversions)
        return self.fp32 + sum(rest) + self.others

    @property
    def full_rate(self) -> float:
        """Those that the pipe of float32 starts at the rate of the issue, and those of the SFU,
        whose pipe is counted by itself."""
        return self.fp32 + self.sfu

    def __add__(self, other: Instructions) -> Instructions:
        return Instructions(**{n: getattr(self, n) + getattr(other, n) for n in _KINDS})

    def __mul__(self, count: float) -> Instructions:
        return Instructions(**{n: getattr(self, n) * count for n in _KINDS})


_KINDS = tuple(row.name for row in fields(Instructions))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsReadAgain:
    """Rows that are needed again when a reduction over them has ended.

    Attributes
    ----------
    rows : int
        Results of the reduction.
    row_bytes : float
        Bytes of one row, of all tensors that both the reduction and what depends on it read.
    """

    rows: int
    row_bytes: float

    def bytes_again(self, device: DeviceProperties) -> float:
        """Bytes that have to be read twice: what of a row all of the device cannot hold."""
        return self.rows * max(0.0, self.row_bytes - device.on_chip_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a kernel, or a whole definition, cannot do without.

    Attributes
    ----------
    read_bytes, written_bytes : float
        Bytes of memory, each counted once.
    again : tuple of RowsReadAgain
        The reductions whose rows are needed again.
    instructions : Instructions
        Of all threads.
    product_flops : float
        Floating-point operations of matrix products, two for a multiply and an add.
    launches : int
        Kernels.
    """

    read_bytes: float = 0.0
    written_bytes: float = 0.0
    again: tuple[RowsReadAgain, ...] = ()
    instructions: Instructions = Instructions()
    product_flops: float = 0.0
    launches: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The least time that work can take.

    Attributes
    ----------
    resources : tuple of (str, float)
        Seconds that each resource is busy at least, the longest first. They work at the same time.
    bytes_again : float
        Bytes that are read twice because they do not fit on the chip; in the time of the memory.
    """

    resources: tuple[tuple[str, float], ...]
    bytes_again: float = 0.0

    @property
    def seconds(self) -> float:
        """The time of the resource that is busy for longest."""
        return self.resources[0][1]

    @property
    def limit(self) -> str:
        """The resource that is busy for longest; empty where there is no work."""
        return self.resources[0][0] if self.seconds else ""

    def share(self, seconds: float | None) -> float | None:
        """How much of the bound a time reaches: 1.0 cannot be beaten. None without a time."""
        return self.seconds / seconds if seconds else None


def bound(work: Work, device: DeviceProperties) -> Bound:
    """The least time that work can take on a device.

    The memory moves ``bandwidth_bytes_per_s``, as in a copy, and nothing of it is in the L2 cache
    when the work begins. A kernel that finds there what another one has left can be faster.
    """
    again = max((rows.bytes_again(device) for rows in work.again), default=0.0)
    moved = work.read_bytes + again + work.written_bytes
    found = work.instructions
    rates = device.rates
    pipes = {
        "FP32": found.fp32 / rates.fp32,
        "FP64": found.fp64 / rates.fp64,
        "integer": found.integer / rates.integer,
        "integer multiply": found.integer_multiplies / rates.integer_multiply,
        "SFU": found.sfu / rates.sfu,
        "conversion": found.conversions / rates.conversion,
        "issue": found.issued / rates.issue,
    }
    clocks = device.sm_count * device.clock_hz
    seconds = {
        "memory": moved / device.bandwidth_bytes_per_s,
        **{name: count / clocks for name, count in pipes.items()},
        "tensor cores": work.product_flops / device.product_flops_per_s,
        "launch": work.launches * device.launch_s,
    }
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    return Bound(resources=tuple(ranked), bytes_again=again)
