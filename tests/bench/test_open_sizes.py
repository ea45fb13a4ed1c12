"""The bench of open sizes: sizes, what is compared, and the table."""

from __future__ import annotations

from dataclasses import replace

from bench.open_compiled import compared, report
from bench.open_sizes import BAR, RANGE, Point, Varying, random_jobs, summary
from bench.processes.gpu_lock import GpuLock
from bench.processes.jobs import JobContext
from bench.schedules.problems import Problem


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
    assert not any(s.source.sizes for _, _, alone in job.plans for s in alone.steps)


def test_the_table_has_the_worst_first():
    about = ("norm/0.0", "rows", "float32", 8, 8, True)
    points = [Point(*about, 1e-6, 1e-6), Point(*about, 2e-6, 1e-6)]
    text = summary(points)
    assert text.index("2.00") < text.index("1.00")
    assert f"1 above {BAR}" in text and "most 2.00" in text


def test_code_is_compared_without_a_gpu():
    """A flat kernel, and one with a loop."""
    bias = replace(problem_of("pointwise/0.2", "bfloat16"), rows=1024, columns=2016)
    (found,) = compared(bias, [(1024, 41), (1024, 73)])
    assert found.kernel.startswith("s0_pointwise") and not found.narrower
    assert found.static_instructions < found.instructions < BAR * found.static_instructions
    assert 1 < found.predicted < BAR
    columns = replace(problem_of("column reduction/0.1", "float32"), rows=3786, columns=324)
    several = list(compared(columns, [(40, 41), (72, 73)]))
    assert [one.kernel[:2] for one in several] == ["s0", "s1"]
    text = report([found, *several], BAR)
    assert "narrower accesses:" in text and "3 kernels" in text


def problem_of(name: str, dtype: str) -> Problem:
    return Problem(name, dtype, 0, 0)
