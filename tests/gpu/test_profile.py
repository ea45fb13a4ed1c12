"""Times on a device: explain, the profilers, the timers."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import FusionDefinition, Profiler, PythonProfiler
from tritonfuser.compat.nvfuser_direct import benchmark_utils

pytestmark = pytest.mark.gpu


def added():
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1], contiguity=True)
        b = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.add(a, b))
    return fd


def total():
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.sum(a, [0]))
    return fd


def test_a_large_sum_of_two_runs_near_the_speed_of_light():
    a, b = torch.randn(2, 1 << 27, device="cuda")
    found = added().explain([a, b])
    (segment,) = found.segments
    assert segment.bytes_read + segment.bytes_written == 3 * 4 << 27
    assert 0.6 < segment.speed_of_light < 1.2
    assert segment.bound.limit == "memory"
    assert 0.6 < segment.share_of_bound < 1.2
    assert found.measured_seconds == segment.measured_seconds
    assert "of speed of light" in str(found)


def test_a_short_kernel_is_not_timed_by_its_launch():
    a, b = torch.randn(2, 1024, device="cuda")
    (segment,) = added().explain([a, b]).segments
    assert 0 < segment.measured_seconds < 8e-6
    assert segment.bound.limit == "launch"


def test_explaining_leaves_inputs_and_random_numbers_alone():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.add(x, fd.ops.uniform(0.0, 1.0, [64])), x)
    x = torch.zeros(64, device="cuda")
    state = torch.cuda.get_rng_state()
    fd.explain([x])
    assert torch.equal(torch.cuda.get_rng_state(), state)
    assert not x.any()


def test_a_profile_of_two_steps():
    x = torch.randn(1 << 24, device="cuda")
    fd = total()
    with PythonProfiler() as prof:
        fd.run([x])
    found = prof.profile
    assert found.segments == len(found.kernel_profiles) == 2
    first = found.kernel_profiles[0]
    assert first.device == torch.cuda.current_device()
    assert first.stream == 7
    assert first.registers > 0
    assert first.block_str.endswith(", 1, 1]")
    assert first.cluster_str == "[1, 1, 1]"
    assert first.compile_time_ms > 0
    assert 0 < first.time_ms <= found.kernel_time_ms <= found.cuda_evt_time_ms
    assert 20 < first.percentage_peak_bandwidth < 130
    assert found.host_time_ms > 0
    plan = fd.fec.core.newest()
    assert plan.run is plan.plain


def test_profiles_on_a_stream_of_its_own(capsys):
    x = torch.randn(1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    fd = total()
    with torch.cuda.stream(stream), Profiler() as profiler:
        (out,) = fd.run([x])
    torch.testing.assert_close(out, x.sum(), atol=1e-2, rtol=1e-4)
    assert profiler.profiles[0].kernel_profiles[0].stream == stream.cuda_stream
    assert "s0_reduction_sum" in capsys.readouterr().out


def test_a_graph_is_recorded_as_it_would_be_without_a_profiler():
    a, b = torch.randn(2, 1024, device="cuda")
    fd = added()
    fd.run([a, b])
    graph = torch.cuda.CUDAGraph()
    with Profiler(show=False) as profiler, torch.cuda.graph(graph):
        (out,) = fd.run([a, b])
    graph.replay()
    assert torch.equal(out, a + b)
    assert profiler.profiles == []


def test_the_timer_of_kernels_counts_their_time():
    a, b = torch.randn(2, 1 << 26, device="cuda")
    fd = added()
    fd.run([a, b])
    timer = benchmark_utils.CuptiTimer()
    timer()
    for _ in range(10):
        fd.run([a, b])
    took = timer()
    timer.cleanup()
    expected = 10 * fd.explain([a, b]).measured_seconds
    assert took == pytest.approx(expected, rel=0.3)


def test_run_kernel_sums_in_one_kernel():
    x = torch.randn(1 << 20, device="cuda")
    (out,) = total().manual_validate([x])
    assert out.dim() == 0
