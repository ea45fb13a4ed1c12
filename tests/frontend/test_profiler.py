"""Profiler and PythonProfiler: what they record, how it prints, and that they leave no trace."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import tritonfuser
from tests.lowering.harness import H200
from tritonfuser import (
    DataType,
    FusionDefinition,
    FusionExecutorCache,
    FusionProfile,
    KernelProfile,
    Profiler,
    ProfilerError,
    PythonProfiler,
    get_fusion_profile,
    reset_profiler,
)
from tritonfuser.cache.plan import steps
from tritonfuser.compat.nvfuser_direct import benchmark_utils
from tritonfuser.frontend.inspect import profiles
from tritonfuser.frontend.vocabulary.units import bytes_text, seconds_text
from tritonfuser.lowering.run_options import RunOptions


def sums_of_sums():
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1, -1], contiguity=True)
        b = fd.define_tensor([-1, -1], contiguity=True)
        rows = fd.ops.sum(fd.ops.add(a, b), -1)
        fd.add_output(fd.ops.sum(rows, -1))
    return fd


@pytest.fixture
def x():
    return torch.randn(8, 16)


@pytest.fixture(autouse=True)
def fresh():
    reset_profiler()
    yield
    reset_profiler()


# --- nvFuser's face ------------------------------------------------------------------------------


def test_the_members_are_nvfusers():
    assert [f.name for f in dataclasses.fields(FusionProfile)] == [
        "fusion_id",
        "segments",
        "cuda_evt_time_ms",
        "host_time_ms",
        "compile_time_ms",
        "kernel_time_ms",
        "effective_bandwidth_gbs",
        "percentage_peak_bandwith",
        "input_bytes",
        "output_bytes",
        "kernel_profiles",
    ]
    assert [f.name for f in dataclasses.fields(KernelProfile)] == [
        "name",
        "segment_id",
        "device",
        "stream",
        "compile_time_ms",
        "time_ms",
        "effective_bandwidth_gbs",
        "percentage_peak_bandwidth",
        "grid_str",
        "block_str",
        "cluster_str",
        "shared_mem_str",
        "registers",
        "input_bytes",
        "output_bytes",
        "scheduler",
    ]


def test_kernels_scheduled_by_hand_are_the_users(x):
    with PythonProfiler(auto_scheduled=False) as prof:
        sums_of_sums().run([x, x])
    assert {kernel.scheduler for kernel in prof.profile.kernel_profiles} == {"user"}
    assert get_fusion_profile() is prof.profile


def test_a_profile_of_one_run(x):
    fd = sums_of_sums()
    with PythonProfiler(auto_scheduled=True) as prof:
        (out,) = fd.run([x, x])
    torch.testing.assert_close(out, (2 * x).sum())
    found = prof.profile
    assert found is get_fusion_profile()
    assert found.segments == len(found.kernel_profiles) == 2
    assert found.fusion_id == 0
    assert found.cuda_evt_time_ms > 0
    assert found.host_time_ms >= 0.9 * found.cuda_evt_time_ms  # by two clocks
    assert found.compile_time_ms > 0
    assert found.input_bytes == 2 * 8 * 16 * 4
    assert found.output_bytes == 4
    first, second = found.kernel_profiles
    assert found.kernel_time_ms == pytest.approx(first.time_ms + second.time_ms)
    moved = found.input_bytes + found.output_bytes
    assert found.effective_bandwidth_gbs == pytest.approx(moved / found.kernel_time_ms * 1e-6)
    assert found.percentage_peak_bandwith == pytest.approx(found.effective_bandwidth_gbs / 10 * 100)
    assert [k.segment_id for k in found.kernel_profiles] == [0, 1]
    assert first.name == "s0_reduction_add_sum"
    assert first.scheduler == "reduction"
    assert (first.device, first.stream) == (-1, 0)
    assert (first.input_bytes, first.output_bytes) == (1024, 32)
    assert (second.input_bytes, second.output_bytes) == (32, 4)
    assert first.effective_bandwidth_gbs == pytest.approx(1056 / first.time_ms * 1e-6)
    assert first.grid_str == "[1, 1, 1]"
    assert first.block_str == first.cluster_str == "[0, 0, 0]"
    assert first.shared_mem_str == "[0, 0]"
    assert first.registers == 0


def test_the_profile_is_that_of_the_last_run(x):
    fd = sums_of_sums()
    with PythonProfiler() as prof:
        fd.run([x, x])
        fd.run([x[:4], x[:4]])
    assert prof.profile.input_bytes == 2 * 4 * 16 * 4
    assert len(prof.profiles) == 2


def test_without_a_run_there_is_no_profile(x):
    fd = sums_of_sums()
    fd.run([x, x])
    with PythonProfiler() as prof:
        pass
    for look in (lambda: prof.profile, get_fusion_profile):
        with pytest.raises(ProfilerError, match="nothing was") as error:
            look()
        assert isinstance(error.value, RuntimeError)
        assert "`with" in str(error.value)


def test_resetting_forgets(x):
    with PythonProfiler():
        sums_of_sums().run([x, x])
    assert get_fusion_profile().segments == 2
    reset_profiler()
    with pytest.raises(ProfilerError):
        get_fusion_profile()


def test_every_way_to_run_is_recorded(x):
    one = FusionDefinition()
    with one as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1, -1], contiguity=True)))
    cache = FusionExecutorCache(one.fusion, fusion_id=5)
    with PythonProfiler() as prof:
        one.run_kernel([x])
        cache.execute([x])
        one.fusion.execute([x])
    names = [p.kernel_profiles[0].name for p in prof.profiles]
    assert names == ["s0_pointwise_neg"] * 3
    assert [p.fusion_id for p in prof.profiles] == [0, 5, 0]


def test_calls_into_torch_and_views_are_profiled_as_what_they_are(x):
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.argsort(t, 1))
    with FusionDefinition() as view:
        t = view.define_tensor([-1, -1], contiguity=True)
        view.add_output(view.ops.reshape(t, [-1]))
    with PythonProfiler() as prof:
        fd.run([x])
        view.run([x])
    sort, nothing = prof.profiles
    (kernel,) = sort.kernel_profiles
    assert (kernel.name, kernel.scheduler) == ("s0_expr_eval_argsort", "expr_eval")
    assert kernel.grid_str == "[0, 0, 0]"
    assert kernel.time_ms > 0
    assert (nothing.segments, nothing.kernel_profiles, nothing.kernel_time_ms) == (0, (), 0)
    assert nothing.effective_bandwidth_gbs == 0


def test_complex_inputs_count_once():
    with FusionDefinition() as fd:
        z = fd.define_tensor([-1], contiguity=True, dtype=DataType.ComplexFloat)
        fd.add_output(fd.ops.mul(z, z))
    with PythonProfiler() as prof:
        fd.run([torch.randn(10, dtype=torch.complex64)])
    assert (prof.profile.input_bytes, prof.profile.output_bytes) == (80, 80)


def test_what_a_kernel_takes_of_a_gpu_is_in_its_profile(x, monkeypatch):
    taken = steps.Resources(threads=128, shared_bytes=1024, registers=40, cluster=(1, 1, 1))
    monkeypatch.setattr(profiles, "resources", lambda step, device, properties: taken)
    with PythonProfiler() as prof:
        sums_of_sums().run([x, x])
    kernel = prof.profile.kernel_profiles[0]
    assert kernel.block_str == "[128, 1, 1]"
    assert kernel.cluster_str == "[1, 1, 1]"
    assert kernel.shared_mem_str == "[1024, 0]"
    assert kernel.registers == 40


def test_a_gpus_resources_are_looked_up_in_the_binary(x, monkeypatch):
    """Compiled here, loaded nowhere."""
    fd = sums_of_sums()
    core = fd._core()
    meta = [torch.empty(64, 64, device="meta")] * 2
    lowered, facts = core.lowered(meta, RunOptions(arch="sm_90"))
    source = lowered.sources[0]
    step = steps.Step(lowered.segmented.segments[0], source, (True,) * len(source.args))
    launcher = type("Launcher", (), {"registers": 33})
    monkeypatch.setattr(
        steps.compiled(source, "sm_90", step.aligned).__class__,
        "launcher",
        lambda self, index: launcher,
    )
    found = steps.resources(step, torch.device("cuda", 0), H200)
    assert facts == H200
    assert found.threads == 32 * source.num_warps
    assert found.registers == 33
    assert found.cluster == (1, 1, 1)
    assert found.shared_bytes == steps.compiled(source, "sm_90", step.aligned).shared_bytes


# --- our own face --------------------------------------------------------------------------------


def test_the_table_is_printed_when_the_block_ends(x, capsys):
    fd = sums_of_sums()
    with Profiler() as profiler:
        for _ in range(3):
            fd.run([x, x])
        assert capsys.readouterr().out == ""
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["kernel", "scheduler", "runs"]
    assert [line.split()[:3] for line in lines[2:]] == [
        ["s0_reduction_add_sum", "reduction", "3"],
        ["s1_reduction_sum", "reduction", "3"],
    ]
    assert str(profiler).splitlines() == lines
    assert len(profiler.profiles) == 3


def test_other_sizes_have_lines_of_their_own(x):
    with Profiler(show=False) as profiler:
        fd = sums_of_sums()
        fd.run([x, x])
        fd.run([x[:4], x[:4]])
    assert len(str(profiler).splitlines()) == 2 + 4


def test_nothing_is_printed_where_it_is_not_wanted(x, capsys):
    with Profiler(show=False):
        sums_of_sums().run([x, x])
    with PythonProfiler():
        sums_of_sums().run([x, x])
    with pytest.raises(ZeroDivisionError), Profiler():
        1 / 0  # noqa: B018
    assert capsys.readouterr().out == ""
    with Profiler():
        pass
    assert capsys.readouterr().out == "nothing was run\n"


def test_an_error_ends_the_profiling(x):
    fd = sums_of_sums()
    fd.run([x, x])
    plan = fd.fec.core.newest()
    with pytest.raises(RuntimeError), Profiler():
        fd.run([x])
    assert plan.run is plan.plain
    reset_profiler()
    fd.run([x, x])
    with pytest.raises(ProfilerError):
        get_fusion_profile()


def test_a_call_without_a_profiler_is_what_it_was(x):
    """The function that a repeated call runs is the generated one, before and after."""
    fd = sums_of_sums()
    fd.run([x, x])
    hot, plan = fd._fast_path, fd.fec.core.newest()
    before = plan.run
    with Profiler(show=False):
        fd.run([x, x])
        assert plan.run is not before
    assert fd._fast_path is hot
    assert plan.run is before is plan.plain


# --- timers --------------------------------------------------------------------------------------


def test_the_timer_of_calls_counts_the_time_on_the_host(x):
    fd = sums_of_sums()
    fd.run([x, x])
    timer = benchmark_utils.FusionProfileTimer()
    timer.set_fd(fd)
    assert timer() == 0.0
    assert timer() == 0.0
    fd.run([x, x])
    one = timer()
    assert one > 0
    assert timer() == timer.current_time == one
    fd.run([x, x])
    fd.run([x, x])
    assert timer() > one
    timer.cleanup()
    plan = fd.fec.core.newest()
    assert plan.run is plan.plain
    timer.cleanup()


def test_the_timer_of_kernels_never_goes_back(x):
    timer = benchmark_utils.CuptiTimer()
    assert timer() == 0.0
    sums_of_sums().run([x, x])
    first = timer()
    second = timer()
    assert 0 < first <= second
    timer.cleanup()
    assert timer() == second
    timer.cleanup()


# --- units ---------------------------------------------------------------------------------------


def test_bytes_and_seconds_are_written_with_units():
    assert [bytes_text(n) for n in (0, 999, 1000, 33554432, 4.27e12)] == [
        "0 B",
        "999 B",
        "1 kB",
        "33.6 MB",
        "4.27e+03 GB",
    ]
    assert [seconds_text(s) for s in (0, 2e-9, 12.3e-6, 1.5e-3, 2.0)] == [
        "0 s",
        "0.002 us",
        "12.3 us",
        "1.5 ms",
        "2 s",
    ]


def test_names_are_exported():
    for name in ("Profiler", "PythonProfiler", "ProfilerError", "FusionProfile", "KernelProfile"):
        assert name in tritonfuser.__all__
