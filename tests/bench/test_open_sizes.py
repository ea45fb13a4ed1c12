"""The bench of open sizes: sizes, what is compared, and the table."""

from __future__ import annotations

from dataclasses import replace

from bench.open_compiled import compared, report
from bench.open_sizes import BAR, RANGE, Point, Varying, is_open, random_jobs, summary
from bench.processes.gpu_lock import GpuLock
from bench.processes.jobs import JobContext
from bench.schedules.problems import Problem
from tritonfuser.cache import hot_sizes


def test_sizes_span_the_range():
    jobs = random_jobs(90, 40, seed=1)
    assert jobs == random_jobs(90, 40, seed=1)
    assert {job.varies for job in jobs} == {"rows", "columns", "both"}
    rows = [rows for job in jobs if job.varies == "rows" for rows, _ in job.sizes]
    assert 0.3 * RANGE < max(rows) / min(rows) <= RANGE * 2.1
    assert all(columns == 1024 for j in jobs if j.varies == "rows" for _, columns in j.sizes)


def test_a_definition_opens_and_is_compared_with_one_size(tmp_path):
    problem = Problem("row reduction/0.1", "float32", 0, 0)
    job = Varying(problem, "both", [(33, 70), (50, 90)], device="cpu")
    job.prepare(JobContext(GpuLock(str(tmp_path / "lock"))))
    points = job.measure()
    assert [(point.rows, point.columns) for point in points] == job.sizes
    assert all(point.is_open for point in points)
    assert not any(is_open(plans.static) for plans in job.plans)


def test_sizes_that_run_often_are_compared_too(tmp_path, monkeypatch):
    """Those of flat kernels keep them."""
    monkeypatch.setattr(hot_sizes, "fusion_seconds", lambda segmented: 1e-3)  # interpreted
    for name, stays in (("row reduction/0.1", False), ("pointwise/0.0", True)):
        job = Varying(Problem(name, "float32", 0, 0), "columns", [(16, 90), (16, 120)], "cpu")
        job.prepare(JobContext(GpuLock(str(tmp_path / "lock"))))
        assert [is_open(plans.new) for plans in job.plans] == [True, True]
        assert [is_open(plans.often) for plans in job.plans] == [stays, stays]


def test_the_table_has_the_worst_first():
    about = ("norm/0.0", "rows", "float32", 8, 8, True, False)
    points = [Point(*about, 1e-6, 1e-6, 1e-6), Point(*about, 2e-6, 1.05e-6, 1e-6)]
    text = summary(points)
    assert text.index("2.00") < text.index("1.00")
    assert f"new: 2 of them with open sizes: median 1.500, 1 above {BAR}, most 2.00" in text
    assert f"run often: 0 of them with open sizes: median 1.025, 0 above {BAR}, most 1.05" in text


def test_code_is_compared_without_a_gpu():
    """A flat kernel, and one with a loop."""
    bias = replace(problem_of("pointwise/0.2", "bfloat16"), rows=1024, columns=2016)
    (found,) = compared(bias, [(1024, 41), (1024, 73)])
    assert found.kernel.startswith("s0_pointwise") and not found.narrower
    assert found.static_instructions < found.instructions < BAR * found.static_instructions
    assert 1 < found.predicted < BAR
    assert not found.stays  # it has a quotient by a size
    columns = replace(problem_of("column reduction/0.1", "float32"), rows=3786, columns=324)
    several = list(compared(columns, [(40, 41), (72, 73)]))
    assert [one.kernel[:2] for one in several] == ["s0", "s1"]
    text = report([found, *several], BAR)
    assert "narrower accesses:" in text and "3 kernels" in text


def problem_of(name: str, dtype: str) -> Problem:
    return Problem(name, dtype, 0, 0)
