"""What decisions about kernels need of a GPU: limits that all have, and the facts of one kind."""

from __future__ import annotations

from dataclasses import dataclass

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
        ``devices.COPY_SHARE`` of the data sheet's.
    clock_hz : float
        The highest clock of the multiprocessors. The FP32 rate of the data sheet is twice
        ``clock_hz * sm_count * rates.fp32``.
    product_flops_per_s : float
        Floating-point operations a second of cuBLAS's products of Half and BFloat16. Measured on
        the H200; elsewhere ``devices.PRODUCT_SHARE`` of the data sheet's without sparsity.
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
        return self.shared_bytes_per_block >= 200 << 10

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


def fits_second_axis(programs: int) -> bool:
    """Whether the second axis of a grid may have so many programs."""
    return programs <= MAX_PROGRAMS_Y
