"""The facts of devices: of typical ones by architecture, present or not, and of this machine's."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache
from typing import Any

import torch

from . import calibration, options
from .device import (
    AMD_WAVEFRONT_SIZE,
    NVIDIA_WARP_SIZE,
    DeviceProperties,
    InstructionRates,
)
from .errors import UnsupportedDeviceError

COPY_SHARE = 0.9
"""Share of the data sheet's bandwidth that a copy reaches: 3.03 of 3.35 TB/s on an H100, 4.27 of
4.8 on an H200."""

PRODUCT_SHARE = 0.78
"""Share of the data sheet's floating-point operations that cuBLAS reaches: 770 of 989 TFLOP/s on an
H200."""

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
