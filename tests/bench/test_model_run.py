"""The training step's runner: every contender computes the step, and the table compares them."""

from __future__ import annotations

import contextlib

import pytest
import torch

from bench.measure.errors import max_error
from bench.measure.kernel_times import KernelTimes
from bench.model import SMALL, make_inputs, record, reference, training_step
from bench.model import run as runner
from bench.model.run import OURS, PEERS, StepJob, StepTimes, rows
from bench.processes.jobs import JobContext, Outcome


def counted(run):
    run()
    return KernelTimes(7, 1e-3)


@pytest.fixture
def one_graph(monkeypatch):
    """torch.compile without a compiler behind it."""

    def compiled(function, mode):
        return torch.compile(function, fullgraph=True, backend="aot_eager")

    monkeypatch.setattr(runner, "compiled", compiled)
    monkeypatch.setattr(runner, "STEPS", 1)
    monkeypatch.setattr(runner, "ROUNDS", 1)


@pytest.mark.parametrize("who", [OURS, *PEERS])
def test_all_take_the_same_step(one_graph, who):
    torch._dynamo.reset()
    job = StepJob(who, SMALL, torch.float32, "cpu", counted)
    job.prepare(JobContext(contextlib.nullcontext()))
    found = job.measure()
    assert found.kernels == KernelTimes(7, 1e-3)
    assert found.seconds > 0
    wanted = float(reference(SMALL, make_inputs(SMALL, torch.float32))[0])
    # One tenth of one addend is dropped, by each another.
    assert found.loss == pytest.approx(wanted, rel=1e-5 if who == OURS else 0.05)


def test_the_step_by_autograd_without_dropout(monkeypatch):
    monkeypatch.setattr("bench.model.autograd._drawn", lambda x: x)
    monkeypatch.setattr("bench.model.autograd._dropped", lambda x, seed, offset: x)
    inputs = make_inputs(SMALL, torch.float32)
    found = training_step(SMALL, inputs)()
    assert max_error(found, reference(SMALL, inputs)) < 1e-5


def test_the_table_compares_with_ours():
    def done(who, scale):
        return Outcome(StepTimes(who, KernelTimes(4, 1e-3 * scale), 2e-3 * scale, 1.5))

    outcomes = {OURS: done(OURS, 1), "eager": done("eager", 3), "compile": Outcome(error="no")}
    first, second = rows(outcomes)
    assert first["kernel time vs ours"] == "1.00x"
    assert (second["step"], second["step time"], second["step time vs ours"]) == (
        "eager",
        "6 ms",
        "3.00x",
    )
    (alone,) = rows({OURS: Outcome(error="no"), "eager": done("eager", 3)})
    assert "step time vs ours" not in alone


@pytest.mark.slow
def test_without_a_gpu_the_kernels_are_compiled():
    inputs = make_inputs(SMALL, torch.bfloat16, "meta")
    segments = record(SMALL, torch.bfloat16).segments(inputs, arch="sm_90").segments
    generated = [s.name for s in segments if s.scheduler != "expr_eval"]
    lines = runner.compiled_kernels(SMALL, "sm_90").splitlines()[2:]
    assert [line.split("_")[0] for line in lines] == generated
