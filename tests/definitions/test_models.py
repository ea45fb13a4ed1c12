"""Whole steps of models: what a job measures, kinds of kernels, and the table."""

from __future__ import annotations

import contextlib
import json
import sys

import pytest
import torch

from bench.families.index import FAMILIES
from bench.measure.kernel_times import KernelTimes, Ran
from bench.models import __main__ as command
from bench.models.materialize import materialized
from bench.models.step_job import ModelStep
from bench.models.step_times import StepTimes, by_kind, is_library
from bench.processes.jobs import JobContext, Outcome
from bench.tables.records import OURS


def seen(run, steps):
    run()
    return [Ran("s0_pointwise_add", 0.0, 1e-6), Ran("sm90_xmma_gemm_bf16", 1e-6, 3e-6)] * steps


@pytest.mark.parametrize("name", ["llama", "graphsage", "resnet", "ema"])
def test_a_job_runs_and_measures_a_step(name):
    job = ModelStep(name, "filling", "eager", True, "cpu", seen)
    job.prepare(JobContext(contextlib.nullcontext()))
    step = job._step
    found = job.measure()
    assert (found.fused.count, found.torch.count, found.library.count) == (1, 0, 1)
    assert found.first > 0
    assert found.seconds >= found.gaps >= 0
    assert job._step is None
    assert step is not None


def test_random_weights_keep_layout_and_integers_their_limits():
    family = FAMILIES["resnet"]
    with torch.device("meta"):
        built = family.build(**family.reduced["filling"])
    step = materialized(built, "cpu")
    image, labels = step.inputs
    assert image.is_contiguous(memory_format=torch.channels_last)
    assert image.requires_grad
    assert labels.max() < 10
    assert {p.device.type for p in step.run.parameters()} == {"cpu"}
    weights = [p for p in step.run.parameters() if p.ndim == 4 and p.shape[2] > 1]
    assert all(p.is_contiguous(memory_format=torch.channels_last) for p in weights)
    found = step.run(*step.inputs)
    found.backward()
    assert found.isfinite()
    assert all(p.grad is not None for p in step.run.parameters())


def test_kinds_of_kernels():
    assert not is_library("s0_inner_persistent_sum_scatter_conv")
    assert not is_library("triton_poi_fused_convolution_0")
    assert not is_library("void at::native::vectorized_elementwise_kernel<4>")
    for name in ("nvjet_tst_192x192", "sm80_xmma_fprop", "cudnn_generated_flash_fwd", "Cutlass3x"):
        assert is_library(name)
    names = ["s0_pointwise", "nvjet_a", "Memset (Device)", "Memcpy HtoD (Pageable)"]
    found = [Ran(name, at, at + 0.5) for at, name in enumerate(names)] * 2
    assert by_kind(found, 2) == {
        "fused": KernelTimes(1, 0.25),
        "torch": KernelTimes(1, 0.25),
        "library": KernelTimes(1, 0.25),
    }


def times(fused):
    kernels = KernelTimes(3, fused), KernelTimes(2, 1e-3), KernelTimes(4, 2e-3)
    return StepTimes(*kernels, seconds=3e-3 + fused, gaps=1e-3, peak=1 << 30, first=2.0)


def test_a_failure_of_one_ends_no_other(monkeypatch, tmp_path, capsys):
    asked = []

    def run_jobs(jobs, processes, limits):
        asked.append([(job.family, job.size, job.who) for job in jobs])
        return [
            Outcome(times(1e-3)) if job.who == OURS else Outcome(error="MemoryError: full")
            for job in jobs[:2]
        ] + [Outcome(times(2e-3))] * len(jobs[2:])

    path = tmp_path / "steps.json"
    monkeypatch.setattr(command, "run_jobs", run_jobs)
    words = ["models", "llama", "dit", "--sizes", "decode", "small", "--json", str(path)]
    monkeypatch.setattr(sys, "argv", words)
    command.main()
    text = capsys.readouterr().out
    assert [jobs[0][:2] for jobs in asked] == [
        ("llama", "decode"),
        ("llama", "small"),
        ("dit", "small"),
    ]
    assert "llama small, compile: MemoryError: full" in text
    (line,) = [row for row in text.splitlines() if row.split()[:3] == ["dit", "small", "eager"]]
    assert line.split()[-3:] == ["2.00x", "1.50x", "1.25x"]
    assert json.loads(path.read_text())["steps"]["dit small"]["ours"]["fused"]["count"] == 3
    monkeypatch.setattr(sys, "argv", ["models", "nobody"])
    with pytest.raises(SystemExit):
        command.main()
