"""Facts of devices, present and absent."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tritonfuser import devices
from tritonfuser.errors import UnsupportedDeviceError


def reported(**changes):
    """What torch reports of an H200."""
    facts = {
        "name": "NVIDIA H200",
        "major": 9,
        "minor": 0,
        "multi_processor_count": 132,
        "regs_per_multiprocessor": 65536,
        "max_threads_per_multi_processor": 2048,
        "shared_memory_per_block": 49152,
        "shared_memory_per_block_optin": 232448,
        "shared_memory_per_multiprocessor": 233472,
        "L2_cache_size": 62914560,
        "warp_size": 32,
        "clock_rate": 1980000,
        "memory_clock_rate": 3201000,
        "memory_bus_width": 6144,
    }
    return SimpleNamespace(**{**facts, **changes})


def test_cpu_is_the_interpreters_device():
    facts = devices.of(torch.device("cpu"))
    assert facts.arch == "cpu" and facts.is_cpu and facts.sm_count == 1
    assert facts is devices.known("cpu")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "gfx942"])
def test_known_gpus(arch):
    facts = devices.known(arch)
    assert facts.arch == arch and not facts.is_cpu
    assert facts.shared_bytes_per_block <= facts.shared_bytes_per_sm
    assert facts.warp_size == (64 if arch == "gfx942" else 32)
    assert facts.sm_count > 100 and facts.bandwidth_bytes_per_s > 1e12


@pytest.mark.parametrize("arch", ["sm_75", "", None, []])
def test_unknown_arch(arch):
    with pytest.raises(UnsupportedDeviceError, match="sm_80, sm_90, sm_100, gfx942"):
        devices.known(arch)


def test_built_in_facts_are_what_torch_reports():
    assert devices.from_torch(reported()) == devices.known("sm_90")


@pytest.mark.parametrize(
    ("arch", "teraflops"), [("sm_80", 19.5), ("sm_90", 67), ("sm_100", 75), ("gfx942", 163.4)]
)
def test_clocks_and_rates_give_the_fp32_rate_of_the_data_sheet(arch, teraflops):
    facts = devices.known(arch)
    found = 2 * facts.clock_hz * facts.sm_count * facts.rates.fp32 * 1e-12
    assert found == pytest.approx(teraflops, rel=0.01)


def test_a_slower_clock_is_the_devices_own():
    facts = devices.from_torch(reported(clock_rate=1500000))
    assert facts.clock_hz == 1.5e9
    assert devices.from_torch(reported(major=8, minor=9)).rates.fp32 == 128


def test_what_a_device_can_hold():
    assert devices.known("sm_90").on_chip_bytes == 132 * (256 + 228) * 1024 + (60 << 20)


def test_what_is_loaded_ahead_leaves_shared_memory_for_reductions():
    facts = devices.known("sm_90")
    assert facts.stage_bytes_per_block == 227 * 1024 * 7 // 8 < facts.shared_bytes_per_block
    assert facts.stage_bytes_per_sm == 228 * 1024 * 7 // 8
    larger = {
        arch for arch in devices.ARCHITECTURES if devices.known(arch).holds_large_product_tiles
    }
    assert larger == {"sm_90", "sm_100", "cpu"}


def test_bytes_of_a_launch_and_in_flight():
    assert devices.known("sm_90").launch_bytes == 8_540_000
    flying = {arch: devices.known(arch).flight_bytes_per_sm >> 10 for arch in devices.ARCHITECTURES}
    assert flying == {"sm_80": 16, "sm_90": 48, "sm_100": 64, "gfx942": 48, "cpu": 48}
    assert devices.from_torch(reported(major=8)).flight_bytes_per_sm == 16 << 10


def test_old_torch_reports_less():
    found = reported()
    for name in ("regs_per_multiprocessor", "shared_memory_per_block_optin", "memory_clock_rate"):
        delattr(found, name)
    assert devices.from_torch(found) == devices.known("sm_90")


def test_another_gpu_of_a_known_arch_has_its_own_bandwidth():
    facts = devices.from_torch(
        reported(name="NVIDIA H100", memory_clock_rate=2619000, memory_bus_width=5120)
    )
    assert facts.arch == "sm_90"
    assert facts.bandwidth_bytes_per_s == pytest.approx(0.9 * 3.35e12, rel=0.01)
    assert facts.product_flops_per_s == pytest.approx(770e12, rel=0.01)


def test_products_of_another_gpu_follow_its_multiprocessors_and_clock():
    half = devices.from_torch(reported(name="NVIDIA H100 PCIe", multi_processor_count=66))
    assert half.product_flops_per_s == pytest.approx(770e12 / 2, rel=0.01)
    smaller = devices.from_torch(reported(name="NVIDIA A10", major=8, minor=6))
    like = devices.from_torch(reported(name="NVIDIA A30", major=8, minor=0))
    assert smaller.product_flops_per_s == pytest.approx(like.product_flops_per_s / 2)


def test_gpu_of_no_known_arch_borrows_what_is_missing():
    found = reported(name="NVIDIA L40S", major=8, minor=9, regs_per_multiprocessor=0)
    facts = devices.from_torch(found)
    assert facts.arch == "sm_89"
    assert facts.registers_per_sm == devices.known("sm_80").registers_per_sm


def test_amd_arch_has_no_feature_flags():
    assert devices.arch_of(reported(gcnArchName="gfx942:sramecc+:xnack-")) == "gfx942"


def test_other_devices_are_refused():
    with pytest.raises(UnsupportedDeviceError, match="Found unsupported device meta"):
        devices.of(torch.device("meta"))
