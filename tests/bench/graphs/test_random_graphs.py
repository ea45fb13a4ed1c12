"""The bench of random definitions: what they are, their jobs, and the report."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from math import prod

import pytest
import torch

from bench.measure.kernel_times import KernelTimes
from bench.processes.jobs import JobContext
from bench.processes.workers import Limits
from bench.random_graphs.__main__ import main, shown
from bench.random_graphs.families import FAMILIES, RARE
from bench.random_graphs.growing import BANDWIDTH, INPUT_ELEMENTS, TRAFFIC, entry
from bench.random_graphs.job import LATE, Compiled, GraphJob, run
from bench.random_graphs.moves_views import TABLE_ELEMENTS
from bench.random_graphs.report import percentile, rendered
from bench.recorded.definition_results import COMPILED
from bench.recorded.definitions import make_inputs, record
from bench.tables.records import OURS
from tests.bench.clocks import counted
from tritonfuser.frontend.inspect.oracle import Evaluation

SMALL = 1 << 14
EXACT = ("add", "cat", "pad", "rsqrt", "sigmoid", "tanh", "where")


def test_a_number_is_one_program_at_any_size():
    for number in range(0, 40, 3):
        large, small = entry(7, number), entry(7, number, bytes=SMALL)
        assert entry(7, number) == large
        assert large.held_out is (number % 2 == 1)
        fusions = [record(e).fusion.ir for e in (large, small)]
        assert len(fusions[0].inputs) == len(fusions[1].inputs)
        assert len(fusions[0].outputs) == len(fusions[1].outputs)
        # What is done to dims of size 1 may not be recorded.
        ops = [[node.op for node in ir.nodes if node.op in EXACT] for ir in fusions]
        assert ops[0] == ops[1]
    assert entry(7, 0).text != entry(8, 0).text


def test_sizes_fill_a_gpu():
    low, high = (seconds * BANDWIDTH for seconds in TRAFFIC)
    found = []
    for number in range(0, 60, 2):
        e = entry(1, number)
        fd = record(e)
        tensors = [t for t in make_inputs(e, fd.fusion.ir, "meta") if isinstance(t, torch.Tensor)]
        outputs = [out.value.tensor for out in fd.fusion.ir.outputs]
        moved = sum(t.numel() * t.itemsize for t in tensors) + 2 * sum(t.numel for t in outputs)
        found.append(moved)
    inside = [low / 4 < moved < 4 * high for moved in found]
    assert sum(inside) >= 0.9 * len(found)
    assert max(found) > 20 * min(found)


def test_a_table_of_long_rows_has_few_of_them():
    """50,000 rows of 2,416,128 halves would be 225 GiB."""
    shapes = [given.shape for given in entry(47, 62).inputs]
    rows, columns = max(shapes, key=prod)
    assert columns == 2416128
    assert rows * columns <= TABLE_ELEMENTS


def test_a_dim_of_which_one_is_selected_is_not_grown_beyond_memory():
    """18,617,425 matrices of 14 MB would be 241 TiB."""
    shapes = [given.shape for given in entry(7, 36, family="rare").inputs]
    assert max(map(prod, shapes)) < 2 * INPUT_ELEMENTS


def test_what_reads_few_elements_grows_to_an_end():
    found = entry(10, 78, family="rare")
    assert all(prod(x.shape) <= 2 * INPUT_ELEMENTS for x in found.inputs)


def test_numbers_are_finite_and_not_all_alike():
    for number in range(0, 30, 2):
        e = entry(2, number, bytes=SMALL)
        ir = record(e).fusion.ir
        for out in Evaluation(ir, make_inputs(e, ir), double=True).outputs:
            assert out.isfinite().all(), e.name
            assert out.abs().max() < 1e3, e.name


def test_rare_ops_begin_definitions_in_turn():
    """Each step of them, so that none is left out; what the op table lacks a sample of, fails."""
    family = FAMILIES["rare"]
    assert family.begun_by == tuple(RARE)
    recorded = set()
    for number in range(0, 2 * len(RARE), 2):
        e = entry(3, number, bytes=SMALL, family="rare")
        assert e.name == f"rare-3-{number}"
        ir = record(e).fusion.ir
        recorded |= {node.op for node in ir.nodes}
        outputs = Evaluation(ir, make_inputs(e, ir), double=True).outputs
        assert all(out.isfinite().all() for out in outputs if out.is_floating_point()), e.name
    assert recorded >= {"argsort", "gather", "index_put_accumulate", "scatter", "topk", "triu"}
    assert entry(3, 0).text != entry(3, 0, family="rare").text


def test_a_job_compares_and_times_both(one_graph):
    e = entry(0, 4, bytes=SMALL)
    job = GraphJob(e, 1e12, True, "cpu", counted, (COMPILED,))
    job.prepare(JobContext(contextlib.nullcontext()))
    found = job.measure()
    assert found.times == dict.fromkeys((OURS, COMPILED), KernelTimes(3, 2e-6))
    assert found.error < 2e-2
    assert not found.failures


def test_what_is_late_is_left_for_a_resumed_run():
    with pytest.raises(TimeoutError, match=LATE):
        GraphJob(entry(0, 0, bytes=SMALL), 1e12).prepare(JobContext(contextlib.nullcontext(), 0))
    assert run([Compiled(entry(0, 0), "sm_90")], 1, Limits(prepare=-1.0), print, "sm_90") == []


def test_kernels_are_compiled_and_a_run_goes_on(tmp_path, capsys):
    path = tmp_path / "run.json"
    main(["--names", "graph-0-0", "--json", str(path), "--jobs", "1"])
    (found,) = json.loads(path.read_text())["definitions"]
    assert found["name"] == "graph-0-0"
    assert found["registers"] > 0
    assert "1 definitions, 0 failed" in capsys.readouterr().out


def timed(number, ours, theirs, **more):
    job = Compiled(entry(0, number, bytes=SMALL), "sm_90")
    job.prepare(JobContext(contextlib.nullcontext()))
    times = {OURS: KernelTimes(1, ours), COMPILED: KernelTimes(2, theirs)}
    return dataclasses.replace(job.measure(), times=times, bound=1e-6, **more)


def test_the_report_names_no_held_out_definition():
    results = [timed(0, 1e-6, 2e-6), timed(1, 2e-6, 1e-6), timed(2, 1e-6, 1e-6, error=0.5)]
    text = rendered(results)
    assert "graph-0-1" not in text
    assert text.index("graph-0-2") < text.index("graph-0-0")
    assert "graph-0-2: error 5.0e-01, torch.compile's not compared" in text
    assert "geometric mean 1.00x" in text.split("all: ")[1]
    assert "p1 0.50x" in text
    assert shown("graph-0-1") == "graph-0-1 is held out"
    assert "nvfuser_fusion" in shown("graph-0-0", reduced=True)


def test_percentiles():
    assert [percentile(range(1, 251), p) for p in (1, 50, 100)] == [3, 125, 250]
