"""The runner of the recorded definitions: what it finds, and what its tables say."""

from __future__ import annotations

import contextlib
import functools

import pytest
import torch

from bench import definition_job
from bench.definition_job import SKIPPED, DefinitionJob
from bench.definition_results import COMPILED, EAGER, OURS, Result, rendered, summaries
from bench.definitions import load
from bench.definitions_run import run_on_cpu
from bench.kernel_times import KernelTimes
from bench.shrink import shrink
from bench.workers import Shop

SHOP = Shop(contextlib.nullcontext())


def entry(name):
    return shrink(next(e for e in load() if e.name == name))


def counted(run):
    run()
    return KernelTimes(3, 2e-6)


@pytest.fixture
def one_graph(monkeypatch):
    """torch.compile without a compiler behind it."""

    def compiled(function, mode):
        return torch.compile(function, fullgraph=True, backend="eager")

    monkeypatch.setattr(definition_job, "compiled", compiled)


def measured(name, shop=SHOP, clock=counted):
    job = DefinitionJob(entry(name), 1e12, True, "cpu", clock)
    job.prepare(shop)
    return job.measure()


@pytest.mark.parametrize("name", ["convnet-0", "hf-bert-12"])
def test_a_job_checks_and_times_all_three(one_graph, name):
    found = measured(name)
    assert found.failures == {}
    assert found.times == dict.fromkeys((OURS, EAGER, COMPILED), KernelTimes(3, 2e-6))
    assert found.error < 1e-5
    assert found.compiled_error < 1e-5
    assert found.kernels >= 1
    assert found.bytes >= found.least > 0


def test_random_results_are_timed_and_not_compared(one_graph):
    found = measured("nanogpt-2")
    assert set(found.times) == {OURS, EAGER, COMPILED}
    assert found.error is not None
    assert found.compiled_error is None


def test_what_fails_is_recorded(monkeypatch):
    def compiled(function, mode):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(definition_job, "compiled", compiled)
    found = measured("hf-bert-8")
    assert set(found.times) == {OURS, EAGER}
    assert found.failures == {COMPILED: "RuntimeError: no compiler"}
    assert measured("hf-bert-8", Shop(contextlib.nullcontext(), 0)).failures == {COMPILED: SKIPPED}
    calls = iter([None, MemoryError("full"), None])

    def clock(run):
        error = next(calls)
        if error:
            raise error
        return KernelTimes(1, 1e-6)

    found = measured("hf-bert-8", clock=clock)
    assert found.failures[EAGER] == "MemoryError: full"
    assert set(found.times) == {OURS}


def test_without_a_gpu_the_kernels_are_compiled():
    found = run_on_cpu(entry("nanogpt-3"), "sm_90", reduced=True)
    assert found.error < 2**-7
    assert (found.kernels, found.spilled) == (1, 0)
    assert found.registers > 0
    assert "registers" in rendered([found], {})


# --- tables --------------------------------------------------------------------------------------


def result(model, index, calls, **seconds):
    times = {who: KernelTimes(2 if who == OURS else 4, s * 1e-6) for who, s in seconds.items()}
    make = functools.partial(Result, reduced=False, ops=1, kernels=2, segments=())
    return make(
        name=f"{model}-{index}",
        model=model,
        calls=calls,
        bytes=2_000_000,
        least=1_000_000,
        bandwidth=1e12,
        times=times,
    )


def test_summaries_add_up_a_training_step():
    found = [
        result("a", 0, 2, ours=1, eager=4, compile=2),
        result("a", 1, 1, ours=2, eager=2, compile=1),
        result("a", 2, 1, ours=1, eager=9),
        result("b", 0, 3, ours=1, eager=3, compile=3),
    ]
    one, other, both = summaries(found)
    assert (one.model, one.definitions, other.model, both.model) == ("a", 2, "b", "all")
    assert one.steps[OURS] == KernelTimes(6, pytest.approx(4e-6))
    assert one.steps[COMPILED] == KernelTimes(12, pytest.approx(5e-6))
    assert one.means == {EAGER: pytest.approx(2.0), COMPILED: pytest.approx(1.0)}
    assert both.steps[OURS] == KernelTimes(12, pytest.approx(7e-6))
    assert both.means[COMPILED] == pytest.approx((2 * 0.5 * 3) ** (1 / 3))


def test_tables():
    failed = result("a", 1, 1, ours=2, eager=3)
    failed.failures[COMPILED] = "Error: no"
    text = rendered([result("a", 0, 1, ours=2, eager=8, compile=3), failed], {"device": "x"}, "```")
    first, second, *_ = [line.split() for line in text.splitlines() if line.startswith("a-")]
    assert first[-3:] == ["50", "4.00x", "1.50x"]
    assert "failed" in second
    assert "a-1, compile: Error: no" in text
    assert text.startswith("device x\n")
    assert text.count("```") == 6
