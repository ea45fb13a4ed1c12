"""Points of nearly one length, timed and compared; the interpreter in the place of a GPU."""

from __future__ import annotations

import contextlib
import json
import sys

import pytest

from bench.cases import BY_NAME
from bench.processes.jobs import JobContext, Outcome
from bench.smoothness import __main__ as command
from bench.smoothness.points import (
    LEAST_BYTES,
    LONGEST,
    MOST_BYTES,
    NEAR,
    OPS,
    SHORTEST,
    Point,
    alignment,
    random_points,
)
from bench.smoothness.predicted import Predicted, predicted, predicted_report
from bench.smoothness.report import report
from bench.smoothness.results import Found, is_suspect
from bench.smoothness.trial import Trial
from bench.tables.records import SKIPPED

ALONE = JobContext(contextlib.nullcontext())


def found(ours=1.0, shorter=1.0, longer=1.0, compiled=1.0, **given):
    """A point of a microsecond or so; bytes and bounds are the same for all sizes."""
    given = {"least": {"ours": 0.9e-6, "shorter": 0.9e-6, "longer": 0.9e-6}, **given}
    times = {"ours": ours, "shorter": shorter, "longer": longer, "compile": compiled}
    return Found(
        op="softmax",
        dtype="float32",
        sizes=[[8, 64], [8, 63], [8, 65]],
        bytes={"ours": 1000, "shorter": 1000, "longer": 1000},
        seconds={name: 1e-6 * time for name, time in times.items() if time},
        **given,
    )


# --- points --------------------------------------------------------------------------------------


def test_points_are_the_same_each_time_and_of_all_ops():
    points = random_points(100)
    assert points == random_points(100) and points[:30] == random_points(30)
    assert points != random_points(100, seed=1)
    assert len({point.name for point in points}) == 100
    assert {point.op for point in points} == set(OPS) <= set(BY_NAME)


@pytest.mark.parametrize("seed", range(3))
def test_partners_are_near_and_aligned_alike(seed):
    for point in random_points(70, seed):
        item = point.torch_dtype.itemsize
        place = 0 if point.op == "sum_outer" else 1
        length, shorter, longer = (size[place] for size in point.sizes)
        assert SHORTEST <= length <= LONGEST + 256
        assert length * (1 - NEAR) <= shorter < length < longer <= length * (1 + NEAR)
        assert len({alignment(n, item) for n in (length, shorter, longer)}) == 1
        assert len({size[1 - place] for size in point.sizes}) == 1
        fd = point.case.record(point.sizes[0], point.torch_dtype)
        moved = point.case.bytes(fd, point.sizes[0], point.torch_dtype)
        assert 0.8 * LEAST_BYTES < moved < 1.2 * MOST_BYTES


def test_points_are_of_all_alignments():
    points = random_points(100)
    seen = {alignment(p.sizes[0][1], p.torch_dtype.itemsize) for p in points}
    assert seen >= {2, 4, 8, 16}


# --- figures -------------------------------------------------------------------------------------


def test_a_jump_is_the_larger_factor_of_both_partners():
    assert found(1.0, 1.1, 0.8).jump == (pytest.approx(1.25), "longer")
    assert found(1.0, 1.6, 0.8).jump == (pytest.approx(1.6), "shorter")
    assert found(1.0, 0, 0).jump == (1.0, "")


def test_a_jump_of_the_bound_is_none():
    bounds = {"ours": 0.9e-6, "shorter": 0.9e-6, "longer": 1.8e-6}
    assert found(1.0, 1.0, 2.0, least=bounds).jump[0] == 1.0
    assert found(1.0, 1.0, 3.0, least=bounds).jump == (pytest.approx(1.5), "longer")


@pytest.mark.parametrize(
    ("point", "suspect"),
    [
        (found(), False),
        (found(1.0, 1.29, 1.0, 0.96), False),
        (found(1.0, 1.31, 1.0), True),
        (found(1.0, compiled=0.94), True),
        (found(1.0, compiled=0), False),
    ],
)
def test_what_misses_a_figure_is_timed_again(point, suspect):
    assert is_suspect(point) == suspect


def test_the_report():
    points = [found(), found(1.0, 1.5, 1.0), found(1.0, compiled=0.9), found(1.0, compiled=0.8)]
    text = report([*points, found(0, 1.0, failures={"ours": "RuntimeError: boom"})])
    assert [line.split()[:2] for line in text.splitlines()[2:4]] == [["softmax", "4"], ["all", "4"]]
    assert "time per byte within 1.3x of the partners': missed, 1 are not" in text
    assert "2% of points at most below 0.95x torch.compile: missed, 2 of 4 are" in text
    assert "none below 0.85x: missed, 1 are" in text
    assert "8x63" in text and "1.50x" in text
    assert text.endswith("softmax 8x64 float32, ours: RuntimeError: boom")
    good = report([found()] * 50)
    assert good.count("holds") == 3 and "missed" not in good
    assert report([]) == "nothing was measured"


def test_points_are_predicted_without_a_gpu():
    points = predicted(random_points(7))
    text = predicted_report(points)
    assert text.count("sum_outer") == 1 and "of 14 partners have other params" in text
    for each in points:
        assert set(each.found.seconds) == set(each.kernels) == {"ours", "shorter", "longer"}
        assert all(0 < each.found.least[n] < each.found.seconds[n] < 1 for n in each.kernels)
        assert 1 <= each.found.jump[0] < 2


def test_what_is_listed_of_predicted_points():
    jumped = found(1.0, 1.0, 1.2, 0)
    kernels = {"ours": ["a", "c"], "shorter": ["a", "c"], "longer": ["b", "c"]}
    even = Predicted(found(compiled=0), {name: ["a"] for name in kernels})
    text = predicted_report([even] * 3 + [Predicted(jumped, kernels)])
    assert "1 of 8 partners have other params than their point" in text
    assert text.splitlines()[-1].split()[-3:] == ["a", "->", "b"] and "1.20x" in text
    assert Predicted(jumped, {**kernels, "longer": ["b"]}).differences == "2 kernels, 1"
    assert "8x65" not in predicted_report([even])


# --- a point -------------------------------------------------------------------------------------

POINT = Point("rmsnorm_bwd", "float32", ((4, 24), (4, 23), (4, 25)))


@pytest.fixture
def eager(monkeypatch):
    """torch.compile without a compiler."""
    monkeypatch.setattr("bench.suite.contenders.compiled", lambda function, mode: function)


def measured(context=ALONE, **given):
    job = Trial(POINT, 1e9, device="cpu", **given)
    job.prepare(context)
    return Found(**json.loads(json.dumps(job.measure())))


def test_a_point_is_timed_with_its_partners(eager):
    point = measured()
    assert point.name == "rmsnorm_bwd 4x24 float32" and point.failures == {}
    assert set(point.seconds) == {"ours", "shorter", "longer", "compile"}
    assert point.bytes["longer"] > point.bytes["ours"] > point.bytes["shorter"]
    assert point.least["ours"] >= point.bytes["ours"] / 1e9
    assert point.is_complete
    # The interpreter is slower than eager torch: it was timed twice.
    assert point.against_peer < 0.95 and set(point.first) == set(point.seconds)


def test_without_the_peer():
    assert set(measured(peer=False).seconds) == {"ours", "shorter", "longer"}


def test_what_is_late_is_measured_another_time(eager):
    point = measured(JobContext(contextlib.nullcontext(), deadline=0.0))
    assert point.failures == {"compile": SKIPPED} and not point.is_complete


def test_what_fails_is_said(monkeypatch):
    def boom(function, mode):
        raise RuntimeError("boom\nand more")

    monkeypatch.setattr("bench.suite.contenders.compiled", lambda f, m: lambda *x: boom(f, m))
    point = measured()
    assert point.failures == {"compile": "RuntimeError: boom"} and point.is_complete
    assert point.against_peer is None


# --- the command ---------------------------------------------------------------------------------


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["bench.smoothness", *map(str, words)])
    command.main()


@pytest.fixture
def jobs(monkeypatch):
    """What is measured, in the place of a GPU: every point but the third of each batch."""
    seen = []

    def run_jobs(jobs, processes, limits, *, keep):
        seen.append([job.point.name for job in jobs])
        point = found()
        outcomes = [
            Outcome(error="it died")
            if place == 2
            else Outcome(
                {
                    **vars(point),
                    "op": job.point.op,
                    "dtype": job.point.dtype,
                    "sizes": [[*size] for size in job.point.sizes],
                }
            )
            for place, job in enumerate(jobs)
        ]
        keep({0: outcomes[0]})
        return outcomes

    monkeypatch.setattr(command, "run_jobs", run_jobs)
    monkeypatch.setattr(command, "copy_bandwidth", lambda: 1e12)
    monkeypatch.setattr(command, "described", lambda commit: {})
    monkeypatch.setattr(command.torch.cuda, "is_available", lambda: True)
    return seen


def test_a_run_is_continued(jobs, monkeypatch, tmp_path, capsys):
    path = tmp_path / "points.json"
    names = [point.name for point in random_points(60)]
    run(monkeypatch, "--points", 60, "--json", path)
    assert jobs == [names[:50], names[50:]]
    out = capsys.readouterr().out
    assert f"{names[2]}: it died" in out and "2 of 60 points are not measured yet" in out
    run(monkeypatch, "--points", 60, "--json", path)
    assert jobs[2:] == [[names[2], names[52]]]
    run(monkeypatch, "--points", 60, "--json", path, "--show")
    assert len(jobs) == 3 and "not measured" not in capsys.readouterr().out.split("yet")[-1]


def test_no_time_no_batch(jobs, monkeypatch, tmp_path):
    run(monkeypatch, "--points", 5, "--limit", 0)
    assert jobs == []


def test_without_a_gpu(monkeypatch, capsys):
    run(monkeypatch, "--points", 3, "--list")
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setattr(command.torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="needs a CUDA device"):
        run(monkeypatch, "--points", 3)


@pytest.mark.parametrize("text", ["", "[]", '{"points": [1]}', '{"points": [{"op": 3}]}'])
def test_a_file_of_something_else(monkeypatch, tmp_path, text):
    path = tmp_path / "points.json"
    path.write_text(text)
    with pytest.raises(SystemExit, match="expected a file that --json wrote"):
        run(monkeypatch, "--json", path, "--show")
