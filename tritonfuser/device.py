"""Hardware facts of GPUs, present or not, that decisions about kernels depend on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import torch

from . import calibration, options
from .errors import UnsupportedDeviceError

WORD_BYTES = 4
"""Bytes of a register."""

VECTOR_BYTES = 16
"""Bytes of the widest load or store of one thread, on NVIDIA and AMD GPUs."""

SECTOR_BYTES = 32
"""Bytes of a sector, the least that a GPU moves between its L2 cache and memory."""

CACHE_LINE_BYTES = 128
"""Bytes of a line of the L1 and L2 caches: four sectors."""

L2_SLICE_BYTES = 64
"""Bytes that one slice of the L2 cache gives in a clock (H200)."""

L2_SLICE_RUN_BYTES = 512
"""Bytes of a run of memory that are in one slice of the L2 cache, as measured on an H200: reads of
one tensor of 5 to 20 KiB by all programs take as long as if every 512 bytes of it had a slice."""

MAX_BLOCK_ELEMENTS = 1 << 20
"""Most elements of one Triton block (``TRITON_MAX_TENSOR_NUMEL``)."""

MAX_REGISTERS_PER_THREAD = 255
"""32-bit registers that one thread of an NVIDIA GPU can address."""

MAX_THREADS_PER_BLOCK = 1024
"""Threads of one program, on all GPUs of NVIDIA and AMD."""

MAX_PROGRAMS_Y = 65535
"""CUDA's limit on the second and third axis of a grid; the first takes 2**31 - 1."""

MAX_PROGRAMS_PER_SM = 32
"""Programs that may be resident on a multiprocessor."""

NVIDIA_WARP_SIZE = 32
"""Threads of a warp of all NVIDIA GPUs."""

SHARED_BANKS = 32
"""Words of 4 bytes of shared memory that a multiprocessor reads or writes in a clock, each from
another bank."""

AMD_WAVEFRONT_SIZE = 64
"""Threads of a wavefront of AMD's CDNA GPUs."""

LAUNCH_S = 2e-6
"""Seconds that a plan takes longer for one more launch, without the kernel's own time (H200)."""

LEAST_KERNEL_S = 2e-6
"""Seconds of a kernel that has next to nothing to do: its programs start, load, store and end."""

MEMORY_LATENCY_S = 7e-7
"""Seconds from a load to its value in memory, where nothing else is loaded (H200)."""


COPY_SHARE = 0.9
"""Share of the data sheet's bandwidth that a copy reaches: 3.03 of 3.35 TB/s on an H100, 4.27 of
4.8 on an H200."""

PRODUCT_SHARE = 0.78
"""Share of the data sheet's floating-point operations that cuBLAS reaches: 770 of 989 TFLOP/s on an
H200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionRates:
    """Instructions of one thread that a multiprocessor finishes in a clock, by the pipe they take.

    Of NVIDIA GPUs: "Throughput of Native Arithmetic Instructions" in the CUDA C++ Programming
    Guide. That integer multiplies run beside additions is assumed.

    Attributes
    ----------
    issue : float
        Instructions of all kinds together: four schedulers with a warp of 32 each.
    fp32, fp64 : float
        Additions, multiplies, and both in one (FMA).
    integer : float
        32-bit additions, logic, comparisons, minima, selections; comparisons of floats too.
    integer_multiply : float
        32-bit multiplies, with results of 64 bits too.
    sfu : float
        Reciprocals, square roots, exponentials, logarithms, sines: MUFU.
    conversion : float
        Between floats and integers, from wider to narrower floats, and roundings to an integer.
    """

    issue: float = 128
    fp32: float = 128
    fp64: float = 64
    integer: float = 64
    integer_multiply: float = 64
    sfu: float = 16
    conversion: float = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProperties:
    """Facts of one device, the same for all devices of a kind.

    Attributes
    ----------
    name : str
        As the driver calls it.
    arch : str
        What code is compiled for: "sm_90", "gfx942", or "cpu" for the interpreter.
    sm_count : int
        Streaming multiprocessors (compute units on AMD).
    registers_per_sm : int
        32-bit registers of a multiprocessor.
    max_threads_per_sm : int
        Threads that can be resident on a multiprocessor at once.
    shared_bytes_per_sm : int
        Shared memory of a multiprocessor, in bytes.
    shared_bytes_per_block : int
        Shared memory that one program may take, in bytes.
    l2_bytes : int
        Bytes of the L2 cache that a program's multiprocessor reads through.
    warp_size : int
        Threads of a warp: 32 on NVIDIA, 64 on AMD.
    bandwidth_bytes_per_s : float
        Bytes a second that a copy reads and writes together. Measured on the H200; elsewhere
        ``COPY_SHARE`` of the data sheet's.
    clock_hz : float
        The highest clock of the multiprocessors. The FP32 rate of the data sheet is twice
        ``clock_hz * sm_count * rates.fp32``.
    product_flops_per_s : float
        Floating-point operations a second of cuBLAS's products of Half and BFloat16. Measured on
        the H200; elsewhere ``PRODUCT_SHARE`` of the data sheet's without sparsity.
    launch_s : float
        Seconds that a plan takes longer for one more launch. Other GPUs are taken to be like the
        H200 in this and in the latency.
    memory_latency_s : float
        Seconds from a load to its value in memory, where nothing else is loaded.
    flight_bytes_per_sm : int
        Bytes of loads that a multiprocessor needs in flight for its share of the bandwidth: that
        times the latency of busy memory (CUB's ``cub/device/dispatch/tuning``).
    rates : InstructionRates
        Instructions that a multiprocessor finishes in a clock.
    """

    name: str
    arch: str
    sm_count: int
    registers_per_sm: int
    max_threads_per_sm: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    l2_bytes: int
    warp_size: int
    bandwidth_bytes_per_s: float
    clock_hz: float
    product_flops_per_s: float
    launch_s: float = LAUNCH_S
    memory_latency_s: float = MEMORY_LATENCY_S
    flight_bytes_per_sm: int = 48 << 10
    rates: InstructionRates = InstructionRates()

    @property
    def limits_registers(self) -> bool:
        """Whether its assembler takes a limit on the registers of a thread (NVIDIA's does)."""
        return self.arch.startswith("sm_")

    @property
    def overlaps_launches(self) -> bool:
        """Whether a kernel can start while the one before it ends (programmatic dependents)."""
        return self.arch.startswith("sm_") and int(self.arch[3:]) >= 90

    @property
    def launch_bytes(self) -> int:
        """Bytes that are moved in the time of a launch."""
        return int(self.bandwidth_bytes_per_s * self.launch_s)

    @property
    def stage_bytes_per_sm(self) -> int:
        """Shared memory of a multiprocessor for what is loaded ahead: an eighth is left for
        reductions between lanes."""
        return self.shared_bytes_per_sm * 7 // 8

    @property
    def stage_bytes_per_block(self) -> int:
        """Shared memory of one program for what is loaded ahead; an eighth is left, as above."""
        return self.shared_bytes_per_block * 7 // 8

    @property
    def holds_large_product_tiles(self) -> bool:
        """Whether a program holds more than 128 x 128 results of a product: sm_90 and later."""
        return self.shared_bytes_per_block >= 200 * _KIB

    @property
    def max_warps_per_block(self) -> int:
        """Warps, or wavefronts, of one program at most."""
        return MAX_THREADS_PER_BLOCK // self.warp_size

    @property
    def instructions_per_s(self) -> float:
        """Instructions a second of all threads together, at most."""
        return self.sm_count * self.rates.issue * self.clock_hz

    @property
    def on_chip_bytes(self) -> int:
        """Bytes that all registers, all shared memory and the L2 cache hold together."""
        return (
            self.sm_count * (4 * self.registers_per_sm + self.shared_bytes_per_sm) + self.l2_bytes
        )

    @property
    def is_cpu(self) -> bool:
        """Whether kernels run in Triton's interpreter."""
        return self.arch == "cpu"


_KIB = 1 << 10
_MIB = 1 << 20


_A100 = DeviceProperties(
    name="NVIDIA A100-SXM4-80GB",
    arch="sm_80",
    sm_count=108,
    registers_per_sm=65536,
    max_threads_per_sm=2048,
    shared_bytes_per_sm=164 * _KIB,
    shared_bytes_per_block=163 * _KIB,
    l2_bytes=40 * _MIB,
    warp_size=NVIDIA_WARP_SIZE,
    bandwidth_bytes_per_s=COPY_SHARE * 2.04e12,
    clock_hz=1.41e9,
    product_flops_per_s=PRODUCT_SHARE * 312e12,
    flight_bytes_per_sm=16 * _KIB,
    rates=InstructionRates(fp32=64, fp64=32),
)
_H200 = replace(
    _A100,
    name="NVIDIA H200",
    arch="sm_90",
    sm_count=132,
    shared_bytes_per_sm=228 * _KIB,
    shared_bytes_per_block=227 * _KIB,
    l2_bytes=60 * _MIB,
    bandwidth_bytes_per_s=4.27e12,
    clock_hz=1.98e9,
    product_flops_per_s=770e12,
    flight_bytes_per_sm=48 * _KIB,
    rates=InstructionRates(),
)
_B200 = replace(
    _H200,
    name="NVIDIA B200",
    arch="sm_100",
    sm_count=148,
    l2_bytes=126 * _MIB,
    bandwidth_bytes_per_s=COPY_SHARE * 8.0e12,
    # Its rates are taken to be the H200's.
    clock_hz=1.98e9,
    product_flops_per_s=PRODUCT_SHARE * 2250e12,
    flight_bytes_per_sm=64 * _KIB,
)
_MI300X = DeviceProperties(
    name="AMD Instinct MI300X",
    arch="gfx942",
    sm_count=304,
    registers_per_sm=131072,
    max_threads_per_sm=2048,
    shared_bytes_per_sm=64 * _KIB,
    shared_bytes_per_block=64 * _KIB,
    # Each of the eight chiplets has 4 MiB, and a program reads through its own chiplet's.
    l2_bytes=4 * _MIB,
    warp_size=AMD_WAVEFRONT_SIZE,
    bandwidth_bytes_per_s=COPY_SHARE * 5.3e12,
    clock_hz=2.1e9,
    product_flops_per_s=PRODUCT_SHARE * 1307e12,
    # 163.4 TFLOPS of FP32 count two packed numbers an instruction; transcendental functions take
    # four times as long as an addition.
    rates=InstructionRates(conversion=64),
)
# The interpreter runs programs one after another and takes milliseconds for each. So the CPU counts
# as one multiprocessor, and small programs gain nothing.
CPU = DeviceProperties(
    name="cpu",
    arch="cpu",
    sm_count=1,
    registers_per_sm=65536,
    max_threads_per_sm=1024,
    shared_bytes_per_sm=_MIB,
    shared_bytes_per_block=_MIB,
    l2_bytes=_MIB,
    warp_size=NVIDIA_WARP_SIZE,
    bandwidth_bytes_per_s=1.0e10,
    clock_hz=1.0e9,
    product_flops_per_s=1.8e12,
)

_KNOWN = {facts.arch: facts for facts in (_A100, _H200, _B200, _MI300X, CPU)}
_SMALLER = ("sm_86", "sm_89")
"""Multiprocessors that issue float64 at a lower rate than those of sm_80, and products at half of
theirs."""
ARCHITECTURES = tuple(_KNOWN)
"""The names ``known`` takes."""


def fits_second_axis(programs: int) -> bool:
    """Whether the second axis of a grid may have so many programs."""
    return programs <= MAX_PROGRAMS_Y


def known(arch: str) -> DeviceProperties:
    """The built-in facts of a typical device of ``arch``.

    Raises
    ------
    UnsupportedDeviceError
        ``arch`` is none of ``ARCHITECTURES``.
    """
    try:
        return _KNOWN[arch]
    except (KeyError, TypeError):
        raise UnsupportedDeviceError(
            f"{arch!r} is no known architecture", hint=f"Known are {', '.join(ARCHITECTURES)}."
        ) from None


def of(device: torch.device) -> DeviceProperties:
    """The facts of a device of this machine; those that were measured on it, if an option asks.

    Raises
    ------
    UnsupportedDeviceError
        The device is neither a CPU nor a GPU of torch.cuda.
    OptionError
        Measured facts are asked for, and there are none that can be read.
    """
    if device.type == "cpu":
        return CPU
    if device.type != "cuda":
        raise UnsupportedDeviceError(
            f"Found unsupported device {device.type}, only CPU or CUDA tensors are supported"
        )
    index = torch.cuda.current_device() if device.index is None else device.index
    return _calibrated(index) if options.current().calibrated else built_in(index)


@cache
def built_in(index: int) -> DeviceProperties:
    """The facts of a GPU of this machine as its driver and the tables here have them."""
    return from_torch(torch.cuda.get_device_properties(index))


@cache
def _calibrated(index: int) -> DeviceProperties:
    facts = built_in(index)
    return replace(facts, **asdict(calibration.load(facts.name, facts.arch)))


def from_torch(found: Any) -> DeviceProperties:
    """The facts in what ``torch.cuda.get_device_properties`` returns.

    Versions of torch differ in what they report: what is missing comes from the built-in facts
    of the architecture, or of the nearest older one.
    """
    arch = arch_of(found)
    like = _like(arch)
    per_block = getattr(found, "shared_memory_per_block_optin", 0)
    facts = DeviceProperties(
        name=found.name,
        arch=arch,
        sm_count=found.multi_processor_count,
        registers_per_sm=getattr(found, "regs_per_multiprocessor", 0) or like.registers_per_sm,
        max_threads_per_sm=found.max_threads_per_multi_processor,
        shared_bytes_per_sm=getattr(found, "shared_memory_per_multiprocessor", 0)
        or like.shared_bytes_per_sm,
        shared_bytes_per_block=per_block or like.shared_bytes_per_block,
        l2_bytes=getattr(found, "L2_cache_size", 0) or like.l2_bytes,
        warp_size=getattr(found, "warp_size", 0) or like.warp_size,
        bandwidth_bytes_per_s=like.bandwidth_bytes_per_s,
        clock_hz=getattr(found, "clock_rate", 0) * 1e3 or like.clock_hz,
        product_flops_per_s=like.product_flops_per_s,
        flight_bytes_per_sm=like.flight_bytes_per_sm,
        rates=_rates(arch, like),
    )
    if found.name == like.name:
        return facts
    clocks = facts.sm_count * facts.clock_hz / (like.sm_count * like.clock_hz)
    products = clocks * like.product_flops_per_s / (2 if arch in _SMALLER else 1)
    peak = COPY_SHARE * _peak_bandwidth(found) or like.bandwidth_bytes_per_s
    return replace(facts, bandwidth_bytes_per_s=peak, product_flops_per_s=products)


def arch_of(found: Any) -> str:
    """ "sm_90" of what torch reports, or AMD's name without its feature flags."""
    name = getattr(found, "gcnArchName", "")
    if name.startswith("gfx"):
        return str(name.split(":")[0])
    return f"sm_{found.major}{found.minor}"


def _like(arch: str) -> DeviceProperties:
    if arch in _KNOWN:
        return _KNOWN[arch]
    if arch.startswith("gfx"):
        return _MI300X
    version = int(arch[3:])
    older = [f for f in (_A100, _H200, _B200) if int(f.arch[3:]) <= version]
    return older[-1] if older else _A100


def _rates(arch: str, like: DeviceProperties) -> InstructionRates:
    """Instruction rates of ``arch``: those of the nearest older data-centre GPU, ``like``."""
    return InstructionRates(fp64=2) if arch in _SMALLER else like.rates


def _peak_bandwidth(found: Any) -> float:
    """Bytes a second that the memory's clock (kHz) and bus (bits) allow; 0 where torch does not
    report them."""
    clock = getattr(found, "memory_clock_rate", 0)
    width = getattr(found, "memory_bus_width", 0)
    return float(clock) * 1e3 * 2 * width / 8
