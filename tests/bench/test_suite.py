"""A row from its inputs to its record, in the interpreter; which rows are run."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import sys
import weakref
from dataclasses import replace
from functools import partial

import pytest
import torch

from bench.__main__ import main
from bench.cases import CASES, Case
from bench.measure.inductor import BENCHMARKING, compiled, tune_exclusively
from bench.measure.timing import Times, interleaved
from bench.processes.jobs import JobContext, Outcome
from bench.suite.compile_only import static_changes
from bench.suite.contenders import Contender
from bench.suite.measurement import Measurement
from bench.suite.selection import DTYPES, Row, part_of, rows, selected, size_of
from bench.suite.suite_run import recorded
from bench.tables.provenance import commit_here
from bench.tables.records import SKIPPED, Record, Results

ALONE = JobContext(contextlib.nullcontext())


def options(**given):
    chosen = {"suite": None, "cases": None, "sizes": None, "dtype": None, "part": (1, 1)}
    return argparse.Namespace(**{**chosen, **given})


def measured(row, vs=("eager",), context=ALONE, **given):
    job = Measurement(row, 1e12, vs, device="cpu", **given)
    job.prepare(context)
    return job.measure()


@pytest.mark.parametrize(
    "row",
    [
        Row("rmsnorm_bwd", (8, 48), "bfloat16"),
        Row("dropout_rmsnorm_bwd", (8, 48), "float32"),
        Row("cross_entropy", (8, 48), "bfloat16"),
    ],
    ids=lambda row: row.case,
)
def test_a_row_is_checked_and_timed(row):
    record = measured(row)
    assert isinstance(record, Record)
    assert (record.case, record.size, record.dtype) == (row.case, "8x48", row.dtype)
    assert record.failures == {}
    assert set(record.times) == {"ours", "eager"}
    assert record.launches in (1, 2)
    assert record.least >= record.bytes / record.bandwidth
    assert record.limit
    assert record.deterministic is True
    assert record.error <= 2**-8
    # A dropout of torch draws other numbers, so that eager has no error.
    assert (record.eager_error is None) == row.case.startswith("dropout")
    assert record.bytes > 8 * 48 * 2


def test_a_row_unchecked():
    assert measured(Row("softmax", (4, 16), "bfloat16"), check=False).error is None


def test_whoever_fails_drops_out(monkeypatch):
    def boom(inputs):
        raise RuntimeError("boom\nand more")

    made = [Contender("ours", boom), Contender("eager", lambda x: lambda: x[0] * 2)]
    monkeypatch.setattr("bench.suite.measurement.contenders", lambda case, fd, vs: made)
    record = measured(Row("softmax", (4, 16), "bfloat16"))
    assert record.failures == {"ours": "RuntimeError: boom"}
    assert set(record.times) == {"eager"}
    assert record.error is None


def test_a_reference_that_does_not_fit_is_said_so():
    row = Row("softmax", (4, 16), "bfloat16")
    job = Measurement(row, 1e12, ("eager",), device="cpu")
    job.prepare(ALONE)

    def too_large(*inputs):
        raise torch.OutOfMemoryError("out of memory")

    case = replace(row.of, oracle=too_large)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Row, "of", case)
        record = job.measure()
    assert record.failures == {"reference": "OutOfMemoryError: out of memory"}
    assert record.error is None
    assert set(record.times) == {"ours", "eager"}


def test_peers_are_skipped_when_it_is_late():
    late = JobContext(contextlib.nullcontext(), deadline=0.0)
    record = measured(Row("softmax", (4, 16), "bfloat16"), ("eager", "compile"), late)
    assert record.failures == {"compile": SKIPPED}
    assert set(record.times) == {"ours", "eager"}


def test_a_job_that_died_has_a_record():
    job = Measurement(Row("softmax", (4, 16), "bfloat16"), 1e12)
    record = recorded(job, Outcome(error="its process ended with code 7"))
    assert record.failures == {"ours": "its process ended with code 7"}
    assert record.bytes == 2 * 4 * 16 * 2


def test_memory_is_given_back_with_the_inputs_in_it(monkeypatch):
    """All workers share a GPU: what one keeps, nobody else has."""
    made, alive = [], []
    draw = Case.inputs

    def inputs(self, *given):
        found = draw(self, *given)
        made.extend(map(weakref.ref, found))
        return found

    def free(device):
        gc.collect()
        alive.append(sum(ref() is not None for ref in made))

    monkeypatch.setattr(Case, "inputs", inputs)
    monkeypatch.setattr("bench.suite.measurement.free", free)
    measured(Row("softmax", (4, 16), "bfloat16"))
    # Behind preparing, behind the check, behind measuring.
    assert alive == [0, 1, 0]


def test_functions_are_compiled_apart():
    """One limit of recompilations would hold for all sizes of a case otherwise."""

    def double(x):
        return x * 2

    first, second = (compiled(double, None)._torchdynamo_orig_callable for _ in range(2))
    assert first.__code__ is not second.__code__
    assert first(3) == second(3) == 6


def test_the_compiler_times_kernels_under_the_lock(monkeypatch):
    held = []

    class Lock:
        def __enter__(self):
            held.append(self)

        def __exit__(self, *error):
            pass

    class Benchmarker:
        def benchmark(self):
            return self.benchmark_gpu()

        def benchmark_gpu(self):
            return 1.0

    benchmarking = importlib.import_module(BENCHMARKING)
    monkeypatch.delattr(benchmarking, "set_gpu_benchmark_lock_context", raising=False)
    monkeypatch.setattr(benchmarking, "benchmarker", Benchmarker())
    lock = Lock()
    tune_exclusively(lock)
    tune_exclusively(lock)
    assert benchmarking.benchmarker.benchmark() == 1.0
    # Both methods, and each wrapped once.
    assert held == [lock, lock]


def test_times_of_nobody():
    assert interleaved({}, "cpu") == {}


@pytest.mark.gpu
def test_times_on_the_gpu():
    """A copy twice as large takes about twice as long; a slow host does not count."""
    runs = {}
    for name, mib in (("one", 256), ("two", 512)):
        source = torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
        runs[name] = partial(torch.empty_like(source).copy_, source)
    runs["late"] = lambda: (sum(range(20000)), runs["one"]())
    found = interleaved(runs, "cuda")
    assert 1.6 < found["two"].median / found["one"].median < 2.4
    assert found["late"].median < 1.3 * found["one"].median


# --- which rows ----------------------------------------------------------------------------------


def test_all_rows():
    found = rows(options())
    assert len(found) == len(set(found))
    assert {row.case for row in found} == {case.name for case in CASES}
    assert {row.dtype for row in found} == set(DTYPES)


def test_rows_by_suite_size_dtype_and_part():
    chosen = options(suite=["norm"], sizes=[(8192, 8192)], dtype=["bfloat16"])
    found = rows(chosen)
    assert {row.of.suite for row in found} == {"norm"}
    assert {row.size for row in found} == {(8192, 8192)}
    parts = [rows(options(suite=["norm"], part=(k, 3))) for k in (1, 2, 3)]
    assert sorted(r.name for p in parts for r in p) == sorted(
        r.name for r in rows(options(suite=["norm"]))
    )


def test_a_named_case_runs_at_any_size():
    (row,) = rows(options(cases=["softmax"], sizes=[(3, 5)], dtype=["float32"]))
    assert row == Row("softmax", (3, 5), "float32")
    with pytest.raises(SystemExit, match="give a case by --cases"):
        rows(options(sizes=[(3, 5)]))


def test_stored_rows_are_selected_alike():
    chosen = options(cases=["softmax"], sizes=[(8192, 8192)])
    assert selected(("softmax", "8192x8192", "float32"), chosen)
    assert not selected(("softmax", "512x1024", "float32"), chosen)
    assert not selected(("rmsnorm", "8192x8192", "float32"), chosen)
    assert selected(("a case of old", "8192x8192", "float32"), chosen)


@pytest.mark.parametrize("text", ["8192", "2x3x4"])
def test_sizes(text):
    assert "x".join(map(str, size_of(text))) == text


@pytest.mark.parametrize(("read", "text"), [(size_of, "big"), (part_of, "3/2"), (part_of, "x")])
def test_what_is_no_size_or_part(read, text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected"):
        read(text)


def test_the_commit_is_named_or_unknown():
    assert commit_here()


# --- the command ---------------------------------------------------------------------------------


def test_compiling_for_a_gpu_that_is_not_here(tmp_path, monkeypatch, capsys):
    path = tmp_path / "kernels.json"
    words = ["--cases", "softmax", "layernorm_bwd", "--sizes", "8192x768", "--dtype", "bfloat16"]
    words += ["--compile-for", "sm_90", "--jobs", "1", "--json", str(path)]
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    assert main() == 0
    assert "registers" in capsys.readouterr().out
    lines = json.loads(path.read_text())["kernels"]
    assert [line["case"] for line in lines] == ["softmax", "layernorm_bwd", "layernorm_bwd"]
    assert lines[0]["of_minimum"] == 1.0
    assert lines[0]["load"] == 16
    assert static_changes(lines, lines) == []
    assert static_changes(lines, [{**lines[0], "registers": 7}, *lines[1:]]) == [
        {
            "row": "softmax 8192x768 bfloat16",
            "what": "registers",
            "before": str(lines[0]["registers"]),
            "now": "7",
        }
    ]


def test_stored_results_are_compared(tmp_path, monkeypatch, capsys):
    """Exit code 1 where a ratio got worse."""
    for name, seconds in (("before", 1e-3), ("now", 1.2e-3)):
        times = {"ours": Times(seconds, seconds, seconds), "eager": Times(2e-3, 2e-3, 2e-3)}
        record = Record("softmax", "softmax", "8x8", "bfloat16", 1 << 27, 1e12, times=times)
        Results(({"commit": name},), (record,)).save(tmp_path / name)
    before, now = str(tmp_path / "before"), str(tmp_path / "now")
    for words, code in (
        ([now, "--against", before], 1),
        ([before, "--against", now], 0),
        ([now, "--against", before, "--tolerated", "30"], 0),
    ):
        monkeypatch.setattr(sys, "argv", ["bench", "--render", *words])
        assert main() == code
    assert "worse by more than 30%" in capsys.readouterr().out
