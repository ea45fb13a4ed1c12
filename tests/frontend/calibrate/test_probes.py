"""What ``calibrate`` times: the calls, what their seconds say, the kernels as they are compiled."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tritonfuser import devices
from tritonfuser.calibration import Calibration
from tritonfuser.frontend.calibrate import probes
from tritonfuser.frontend.calibrate.kernels import UNROLLED, chase_pointers, multiply_add
from tritonfuser.frontend.tune.timing import Times

H200 = devices.known("sm_90")


def assembly(kernel, signature, constants, warps):
    source = ASTSource(kernel, signature, {(n,): v for n, v in constants.items()})
    return triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": warps}).asm["ptx"]


def test_links_are_one_circle_through_all_lines():
    found = probes.pointer_ring(64)
    seen, place = [], 0
    for _ in range(64):
        seen.append(place)
        place = int(found[place])
    assert place == 0 and sorted(seen) == [16 * line for line in range(64)]
    assert seen != sorted(seen)


def test_a_link_is_loaded_after_the_last_one():
    signature = {"links": "*i64", "end": "*i64", "steps": "i32"}
    text = assembly(chase_pointers, signature, {}, 1)
    assert len(re.findall(r"ld\.global", text)) >= 2 and re.search(r"\bbra", text)


def test_all_multiplications_are_in_the_kernel():
    signature = {"out": "*fp32", "steps": "i32", "BLOCK": "constexpr"}
    text = assembly(multiply_add, signature, {2: probes.MULTIPLY_BLOCK}, probes.MULTIPLY_WARPS)
    each = probes.MULTIPLY_BLOCK // (32 * probes.MULTIPLY_WARPS)
    assert len(re.findall(r"fma\.rn\.f32", text)) == each * UNROLLED.value


@pytest.fixture
def small(monkeypatch):
    """Probes of a few elements, on the CPU, whose every call takes 1 ms; kernels are not run."""
    for name, value in {"COPY_BYTES": 1 << 10, "LINK_BYTES": 1 << 12, "PRODUCT_SIDE": 16}.items():
        monkeypatch.setattr(probes, name, value)
    ran = []

    class Kernel:
        def __getitem__(self, grid):
            return lambda *args, **options: ran.append((grid, args, options))

    monkeypatch.setattr(probes, "chase_pointers", Kernel())
    monkeypatch.setattr(probes, "multiply_add", Kernel())
    left = [1e-3] * 4 + [1.1e-3]

    def interleaved(runs, where):
        assert where == "cpu"
        for run in runs.values():
            run()
        seconds = left[len(ran) % 5]
        ran.append(None)
        return {name: Times(seconds, seconds, seconds) for name in runs}

    monkeypatch.setattr(probes, "interleaved", interleaved)
    return ran


def test_facts_from_seconds(small):
    found = {fact.name: fact.value for fact in probes.measured(H200, "cpu")}
    assert found["bandwidth_bytes_per_s"] == pytest.approx(2 * 1024 / 1e-3)
    assert found["launch_s"] == pytest.approx(1e-3 / probes.LAUNCHES)
    assert found["memory_latency_s"] == pytest.approx(1e-3 / probes.LINKS)
    assert found["product_flops_per_s"] == pytest.approx(2 * 16**3 / 1e-3)
    # 16 programs of 128 threads are on each of 132 multiprocessors, 8 elements a thread.
    assert found["clock_hz"] == pytest.approx(16 * 1024 * probes.MULTIPLY_STEPS * 64 / 1e-3 / 128)
    grids = {call[0] for call in small if call is not None}
    assert grids == {(1,), (132 * 16,)}
    assert set(found) == set(Calibration.__slots__)


def test_what_varies_is_said(small):
    found = [*probes.measured(H200, "cpu")]
    assert all(0 <= fact.varied < 0.11 for fact in found)
    assert any(fact.varied > 0.09 for fact in found)
    assert asdict(probes.joined(found)) == {fact.name: fact.value for fact in found}
