"""explain: segments, reasons, bytes and times as data and as a report."""

from __future__ import annotations

import inspect

import pytest
import torch

from tests.lowering.harness import H200
from tritonfuser import DataType, FusionDefinition, ReductionParams
from tritonfuser.cache import executor
from tritonfuser.cache.calls import profiling
from tritonfuser.devices import CPU
from tritonfuser.frontend.inspect.explain import explain_lowered
from tritonfuser.heuristics.schedulers import SCHEDULERS
from tritonfuser.lowering.run_options import RunOptions

LEAST = "7.86 us, memory; issue 2.01 us; SFU 2.01 us; launch 2 us; FP32 1.5 us"
"""What ``two_sums`` of 512 x 16384 takes at least on an H200."""


def softmax(dtype=DataType.BFloat16):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=dtype)
        wide = fd.ops.cast(x, DataType.Float)
        top = fd.ops.broadcast(fd.ops.max(wide, [1]), [False, True])
        exps = fd.ops.exp(fd.ops.sub(wide, top))
        total = fd.ops.broadcast(fd.ops.sum(exps, [1]), [False, True])
        fd.add_output(fd.ops.cast(fd.ops.div(exps, total), dtype))
    return fd


def two_sums():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.sum(fd.ops.exp(x), [1]), [0]))
    return fd


def test_what_is_known_of_a_segment():
    x = torch.empty(4096, 1000, dtype=torch.bfloat16, device="meta")
    found = softmax().explain([x], arch="sm_90")
    (segment,) = found.segments
    assert found.device == H200
    assert segment.name == "s0"
    assert segment.scheduler == "inner_persistent"
    assert segment.kernel == "s0_inner_persistent_max_sub_exp_nonpositive_sum"
    names = [scheduler.name for scheduler in SCHEDULERS]
    before = names[: names.index("inner_persistent")]
    assert [refusal.split(":")[0] for refusal in segment.refusals] == before
    assert segment.cut == ""
    assert segment.ops == (
        *(
            "cast",
            "max",
            "broadcast",
            "sub",
            "exp_nonpositive",
            "sum",
            "broadcast",
            "div_by_sum",
            "cast",
        ),
    )
    rows = 4096 // segment.params.block_x
    assert segment.grid == (rows, 1, 1)
    assert segment.bytes_read == segment.bytes_written == 4096 * 1000 * 2
    assert segment.predicted_seconds == pytest.approx(4 * 4096 * 1000 / 4.27e12)
    assert segment.measured_seconds is None
    assert segment.speed_of_light is None
    assert segment.bound.limit == "memory"
    assert segment.bound.seconds == pytest.approx(segment.predicted_seconds)
    assert segment.share_of_bound == segment.bound.seconds / segment.model.seconds < 1
    assert found.bytes == 4 * 4096 * 1000
    assert found.predicted_seconds == segment.predicted_seconds
    assert found.measured_seconds is None


def test_lines_are_the_users():
    first = inspect.getsourcelines(two_sums)[1]
    segments = two_sums().explain([torch.ones(3, 4)]).segments
    assert {loc.file for s in segments for loc in s.lines} == {__file__}
    assert {loc.line for s in segments for loc in s.lines} == {first + 3}


def test_a_cut_is_told_by_the_segment_it_starts():
    first, second = two_sums().explain([torch.ones(3, 4)]).segments
    assert first.cut == ""
    assert second.cut == "tv3 starts s1; not in s0: it runs over other axes"


def test_nothing_to_launch_takes_no_time():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.exp(x))
    found = fd.explain([torch.ones(0, 4)])
    assert found.bound.seconds == 0
    heading, *_ = str(found).split("\n\n")
    assert heading == "0 kernels for cpu (cpu, 10 GB/s)"


def test_the_report_shows_all_of_it():
    x = torch.empty(512, 1 << 14, device="meta")
    text = str(two_sums().explain([x], arch="sm_90"))
    lines = text.splitlines()
    assert lines[0] == "2 kernels for NVIDIA H200 (sm_90, 4270 GB/s)"
    assert lines[1] == f"at least, in one kernel: {LEAST}"
    header, row = lines[3], lines[5]
    columns = "segment scheduler ops grid read written predicted at least limited by model of bound"
    assert " ".join(header.split()) == columns
    assert lines[6].split()[-6:-3] == ["2", "us", "launch"]
    assert row.split()[:3] == ["s0", "reduction", "2"]
    assert "33.6 MB" in row
    assert "7.86 us" in row
    assert "s0: s0_reduction_exp_sum" in text
    assert "  params: ReductionParams(" in text
    assert "  at least: 7.86 us, memory; " in text
    assert "  model: " in text and "; memory 7." in text
    assert "  ops: exp, sum" in text
    assert f"  recorded at: {__file__}:" in text
    assert "  cut: tv3 starts s1; not in s0: it runs over other axes" in text
    assert "  not scan: it has no scan" in text
    assert "measured" not in text


def test_decisions_that_belong_to_no_segment_are_at_the_end():
    x = torch.empty(1 << 22, device="meta")
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.sum(t, [0]))
    found = fd.explain([x], arch="sm_90")
    assert len(found.segments) == 2
    told = "tv1 is done in two steps, to share it out over programs"
    assert told in found.cuts
    assert str(found).endswith(f"\n\ncut: {told}")


def test_what_torch_runs_has_no_grid():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.argsort(x, 1))
    (segment,) = fd.explain([torch.ones(8, 4)]).segments
    assert (segment.scheduler, segment.kernel, segment.grid) == ("expr_eval", "", None)
    assert segment.bytes_read == 8 * 4 * 4
    assert segment.bytes_written == 8 * 4 * 8
    assert "torch runs argsort" in str(fd.explain([torch.ones(8, 4)]))


def test_looking_chooses_no_way_and_changes_nothing():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.neg(x), x)
    x = torch.arange(4.0)
    found = fd.explain([x], measure=True)
    assert found.device == CPU
    assert found.measured_seconds is None
    assert torch.equal(x, torch.arange(4.0))
    assert not hasattr(fd, "fec")
    assert fd.run_kernel([x]) == []


def test_inputs_are_checked():
    with pytest.raises(RuntimeError, match="Expected 1 inputs but got 2"):
        softmax().explain([torch.ones(2, 2), 1])
    with pytest.raises(NotImplementedError, match="Fusion does not exist!"):
        FusionDefinition().explain([])


def test_measured_times_are_shown_beside_the_predicted_ones():
    x = torch.empty(512, 1 << 14, device="meta")
    core = executor.FusionExecutorCache(two_sums().fusion.ir)
    lowered, facts = core.lowered([x], RunOptions(arch="sm_90"))
    found = explain_lowered(lowered, facts, {"s0": 16e-6, "s1": 2e-6})
    first, second = found.segments
    assert first.measured_seconds == 16e-6
    assert first.speed_of_light == pytest.approx(first.predicted_seconds / 16e-6)
    assert found.measured_seconds == pytest.approx(18e-6)
    assert isinstance(second.params, ReductionParams)
    lines = str(found).splitlines()
    assert lines[1] == f"at least, in one kernel: {LEAST}; 44% of it reached"
    assert lines[3].endswith("measured    of speed of light    of bound")
    assert lines[5].split()[-4:] == ["16", "us", "49%", "49%"]
    assert lines[6].split()[-2:] == ["0%", "100%"]


@pytest.fixture
def gpu(monkeypatch):
    """CPU tensors taken for a GPU's; what would be timed there is counted."""
    seen = []

    def measured(plan, inputs):
        seen.append((plan, inputs))
        plan.plain(inputs)
        return {step.segment.name: 1e-6 for step in plan.steps}

    monkeypatch.setattr("tritonfuser.frontend.run.explaining.measured", measured)
    monkeypatch.setattr(
        "tritonfuser.frontend.run.explaining.device_of", lambda inputs: torch.device("cuda", 0)
    )
    return seen


def test_on_a_gpu_the_plan_that_would_run_is_measured(gpu):
    fd = two_sums()
    x = torch.ones(3, 4)
    found = fd.explain([x])
    assert [s.measured_seconds for s in found.segments] == [1e-6, 1e-6]
    ((plan, inputs),) = gpu
    assert inputs[0] is x
    assert fd._core().is_compiled([x])
    assert fd._core().plan([x]) is plan
    assert fd.explain([x], False).measured_seconds is None
    assert fd.explain([x], measure=False).measured_seconds is None
    assert fd.explain([x], arch="sm_90").measured_seconds is None
    assert len(gpu) == 1


def test_inputs_that_a_run_writes_to_are_copied_first(gpu):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.neg(x), x)
    x = torch.arange(4.0)
    fd.explain([x])
    ((_, inputs),) = gpu
    assert inputs[0] is not x
    assert torch.equal(x, torch.arange(4.0))


def test_medians_by_segment(monkeypatch):
    """Of what a clock said, run by run."""
    fd = two_sums()
    x = torch.ones(3, 4)
    plan = fd._core().plan([x])
    runs = iter([(5.0, 1.0), (3.0, 9.0), (4.0, 2.0)])

    def timed(plan, inputs):
        return [], profiling.Timing(plan, 0, 0.0, 0.0, next(runs), 0)

    monkeypatch.setattr(profiling, "REPEATS", 3)
    monkeypatch.setattr(profiling, "FLUSHED_BYTES", 8)
    monkeypatch.setattr(profiling, "timed", timed)
    monkeypatch.setattr(torch.random, "fork_rng", lambda **kwargs: torch.no_grad())
    assert profiling.measured(plan, [x]) == {"s0": 4.0, "s1": 2.0}
