"""The runner of the recorded definitions: what it finds, and what its tables say."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import sys

import pytest
import torch

from bench import definitions_run
from bench.definitions_run import failed, run_on_cpu, run_on_gpu
from bench.measure.kernel_times import KernelTimes
from bench.processes.jobs import JobContext, Outcome
from bench.processes.workers import Limits
from bench.recorded import definition_job, selection
from bench.recorded.definition_job import DOUBLE, DefinitionJob
from bench.recorded.definition_results import COMPILED, EAGER, Result
from bench.recorded.definition_tables import rendered, summaries
from bench.recorded.definitions import load
from bench.recorded.earlier import earlier
from bench.recorded.shrink import shrink
from bench.tables.files import save_json
from bench.tables.records import OURS, SKIPPED
from tests.bench.clocks import counted
from tritonfuser import FusionDefinition

CONTEXT = JobContext(contextlib.nullcontext())


def entry(name):
    return shrink(next(e for e in load() if e.name == name))


def measured(name, context=CONTEXT, clock=counted):
    job = DefinitionJob(entry(name), 1e12, True, "cpu", clock)
    job.prepare(context)
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
    assert set(found.first_calls) == {OURS, COMPILED}
    assert min(found.first_calls.values()) > 0
    assert found.bound >= found.least / 1e12
    assert found.share_of_bound == pytest.approx(found.bound / 2e-6)
    assert found.row()["limited by"] == found.limit != "launch"


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
    assert measured("hf-bert-8", JobContext(contextlib.nullcontext(), 0)).failures == {
        COMPILED: SKIPPED
    }


def test_who_cannot_run_is_not_timed(one_graph, monkeypatch):
    class Broken(DefinitionJob):
        def _arguments(self, who, inputs):
            return [] if who == EAGER else super()._arguments(who, inputs)

    job = Broken(entry("hf-bert-8"), 1e12, True, "cpu", counted)
    job.prepare(CONTEXT)
    found = job.measure()
    assert set(found.times) == {OURS, COMPILED}
    assert found.failures[EAGER].startswith("TypeError: ")


@pytest.mark.parametrize("who", [OURS, COMPILED])
def test_results_of_another_shape_are_the_failure_of_whose_they_are(one_graph, who):
    job = DefinitionJob(entry("hf-bert-8"), 1e12, True, "cpu", counted)
    job.prepare(CONTEXT)
    run = job._runs[who]
    job._runs[who] = lambda *inputs: [x.reshape(1, -1) for x in run(*inputs)]
    found = job.measure()
    assert found.failures[who].startswith("ValueError: shape (1, ")
    assert set(found.failures) == {who}
    assert set(found.times) == {OURS, EAGER, COMPILED} - {who}


def test_peers_and_checks_can_be_left_out():
    job = DefinitionJob(entry("hf-bert-8"), 1e12, True, "cpu", counted, (), False)
    job.prepare(CONTEXT)
    found = job.measure()
    assert set(found.times) == {OURS}
    assert (found.error, found.failures) == (None, {})


def test_what_does_not_fit_in_float64_is_timed_and_not_compared(one_graph, monkeypatch):
    def full(*args, **options):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(definition_job, "Evaluation", full)
    found = measured("hf-bert-8")
    assert set(found.times) == {OURS, EAGER, COMPILED}
    assert found.failures == {DOUBLE: "OutOfMemoryError: full"}


def test_without_a_gpu_the_kernels_are_compiled():
    (found,) = run_on_cpu([entry("nanogpt-3")], reduced=True)
    assert found.error < 2**-7
    assert (found.kernels, found.spilled) == (1, 0)
    assert found.registers > 0
    assert "registers" in rendered([found], {})


# --- a run that fails, or is short of time -------------------------------------------------------


def test_on_a_cpu_a_failure_is_a_result_and_none_is_begun_too_late(monkeypatch):
    def broken(entry, arch, *, reduced):
        raise RuntimeError("boom")

    monkeypatch.setattr(definitions_run, "_interpreted", broken)
    entries = [entry("nanogpt-3"), entry("hf-bert-8")]
    kept = []
    found = run_on_cpu(entries, reduced=True, keep=lambda known: kept.append(len(known)))
    assert [r.failures for r in found] == [{OURS: "RuntimeError: boom"}] * 2
    assert [r.kernels for r in found] == [1, 1]
    assert kept == [1, 2]
    assert "nanogpt-3, ours: RuntimeError: boom" in rendered(found, {})
    assert run_on_cpu(entries, stop=-1.0, reduced=True) == []


def test_what_cannot_be_lowered_has_no_segments(monkeypatch):
    def refuse(*args, **options):
        raise RuntimeError("refused")

    monkeypatch.setattr(FusionDefinition, "segments", refuse)
    found = failed(entry("nanogpt-3"), "refused", "sm_90", reduced=True)
    assert (found.kernels, found.segments, found.failures) == (0, (), {OURS: "refused"})
    assert found.ops == 11


@pytest.fixture
def half_done(monkeypatch):
    """A run on a GPU of which only the last job is done in time; what is prepared first."""
    seen = {}

    def run_jobs(jobs, processes, limits, *, keep, costs):
        seen.update(limits=limits, costs=costs, names=[job.entry.name for job in jobs])
        last = len(jobs) - 1
        keep({last: Outcome(result("nanogpt", 3, 1, ours=1, eager=2, compile=3))})
        seen["kept"] = json.loads(seen["path"].read_text()) if "path" in seen else None
        late = [Outcome(error="not done in time")] * last
        return [*late, Outcome(result("nanogpt", 3, 1, ours=1, eager=2, compile=3))]

    monkeypatch.setattr(definitions_run, "run_jobs", run_jobs)
    return seen


def test_a_killed_run_leaves_what_it_has(half_done, tmp_path, monkeypatch, capsys):
    half_done["path"] = path = tmp_path / "found.json"
    page = tmp_path / "found.md"
    words = ["--device", "cuda", "--reduced", "--names", "nanogpt-3", "hf-bert-8"]
    words += ["--deadline", "240", "--limit", "540", "--commit", "abc", "--json", str(path)]
    monkeypatch.setattr(definitions_run, "copy_bandwidth", lambda: 1e12)
    monkeypatch.setattr(sys, "argv", ["definitions_run", *words, "--markdown", str(page)])
    definitions_run.main()
    assert half_done["limits"] == Limits(240, 540)
    kept, final = half_done["kept"], json.loads(path.read_text())
    assert [d["name"] for d in kept["definitions"]] == ["nanogpt-3"]
    assert [d["name"] for d in final["definitions"]] == ["hf-bert-8", "nanogpt-3"]
    assert final["definitions"][0]["failures"] == {OURS: "not done in time"}
    assert final["run"]["commit"] == "abc"
    assert final["models"][0]["definitions"] == 1
    assert "hf-bert-8, ours: not done in time" in page.read_text()
    assert "hf-bert-8, ours: not done in time" in capsys.readouterr().out


def test_the_longest_programs_are_compiled_first(half_done):
    entries = [entry("nanogpt-3"), entry("hf-bert-8")]
    run_on_gpu(entries, 1e12, 2, Limits(), reduced=True)
    assert half_done["costs"] == [e.text.count("\n") for e in entries]


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


def test_held_out_models_have_a_step_and_no_line_of_a_definition():
    found = [
        result("a", 0, 1, ours=20, compile=30),
        dataclasses.replace(result("b", 0, 1, ours=20, compile=10), held_out=True),
        dataclasses.replace(result("b", 1, 1, ours=20, compile=50), held_out=True),
    ]
    found[0].first_calls.update({OURS: 2.0, COMPILED: 5.0})
    text = rendered(found, {})
    assert "first calls: 2 s, compile's 5 s, 2.50x as long" in text
    assert "a-0" in text
    assert "b-0" not in text
    assert [s.model for s in summaries(found)] == ["a", "b", "all"]
    assert summaries(found)[-1].definitions == 1
    assert "1 families, 1 definitions:\n  steps vs compile: geometric mean 1.50x" in text
    assert "1 held-out families, 2 definitions:\n  steps vs compile: geometric mean 1.50x" in text
    assert "kernels 4, compile's 8" in text


def test_a_definition_of_views_has_no_kernel_and_no_ratio():
    views = result("a", 0, 1, ours=0, compile=0)
    assert (views.ratio(COMPILED), views.share, views.share_of_bound) == (None, None, None)
    assert "a-0" in rendered([views], {})
    both = [views, result("a", 1, 1, ours=20, compile=30)]
    assert summaries(both)[0].means == {COMPILED: pytest.approx(1.5)}
    assert "geometric mean 1.50x" in rendered(both, {})


def test_sentences_over_families_count_what_is_large_enough():
    made = functools.partial(dataclasses.replace, bandwidth=1e11)  # 10 us of traffic
    found = [
        made(result("a", 0, 1, ours=20, compile=19)),
        made(result("a", 1, 1, ours=20, compile=20)),
        result("a", 2, 1, ours=20, compile=2),
        made(result("a", 3, 1, ours=40, compile=80), least=2_000_000),
        made(result("a", 4, 1, ours=50, compile=80), least=2_000_000),
    ]
    text = rendered(found, {})
    assert "5 us of traffic or more: 1 of 4 below 0.97x of compile, worst 0.95x" in text
    assert "15 us of traffic or more: 1 of 2 at half of their bound or more" in text


def test_a_run_goes_on_where_another_ended(half_done, tmp_path, monkeypatch, capsys):
    first = tmp_path / "first.json"
    before = [result("hf-bert", 8, 1, ours=1, eager=2), result("hf-bert", 9, 1, eager=2)]
    save_json(first, {"definitions": [dataclasses.asdict(r) for r in before]})
    assert [r.name for r in earlier([first])] == ["hf-bert-8"]
    assert earlier([first])[0] == before[0]
    last = tmp_path / "last.json"
    words = ["--device", "cuda", "--names", "nanogpt-3", "hf-bert-8", "--resume", str(first)]
    monkeypatch.setattr(definitions_run, "copy_bandwidth", lambda: 1e12)
    monkeypatch.setattr(sys, "argv", ["definitions_run", *words, "--json", str(last)])
    definitions_run.main()
    assert half_done["names"] == ["nanogpt-3"]
    names = [item["name"] for item in json.loads(last.read_text())["definitions"]]
    assert names == ["hf-bert-8", "nanogpt-3"]
    capsys.readouterr()
    whole = tmp_path / "whole.json"
    words = ["--render", str(last), str(first), "--json", str(whole)]
    monkeypatch.setattr(sys, "argv", ["definitions_run", *words])
    definitions_run.main()
    text = capsys.readouterr().out
    assert text.index("hf-bert-8 ") < text.index("nanogpt-3 ")
    assert len(json.loads(whole.read_text())["definitions"]) == 2


def chosen(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["definitions_run", *words])
    return selection.chosen(definitions_run._parse())


def test_what_is_chosen(monkeypatch):
    every = chosen(monkeypatch)
    assert {"nanogpt-3", "llama-filling-0"} <= {e.name for e in every}
    apart = [chosen(monkeypatch, "--held-out", which) for which in ("without", "only")]
    assert not any(e.held_out for e in apart[0])
    assert all(e.held_out for e in apart[1])
    assert len(apart[0]) + len(apart[1]) == len(every)
    decode = chosen(monkeypatch, "--family", "llama", "--sizes", "decode")
    assert {(e.model, e.size) for e in decode} == {("llama", "decode")}
    one, again, other = (
        chosen(monkeypatch, "--sample", "7", "--seed", seed) for seed in ("1", "1", "2")
    )
    assert one == again != other
    assert len(one) == 7
    with pytest.raises(SystemExit, match="expected models, names or sizes"):
        chosen(monkeypatch, "--family", "nobody")


def test_parts_are_whole_steps_and_about_as_long(monkeypatch):
    parts = [chosen(monkeypatch, "--sizes", "filling", "--part", f"{i}/3") for i in (1, 2, 3)]
    steps = [{(e.model, e.size) for e in part} for part in parts]
    assert sum(map(len, parts)) == len(chosen(monkeypatch, "--sizes", "filling"))
    assert sum(map(len, steps)) == len(set().union(*steps))
    lengths = [sum(e.text.count("\n") for e in part) for part in parts]
    assert max(lengths) < 1.1 * min(lengths)
