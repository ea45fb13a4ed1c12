"""Random problems and the table of how far the heuristics are from the best schedule."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import pytest

from bench.processes.jobs import JobContext
from bench.schedules.graphs import GraphProblem, graph_problems
from bench.schedules.problems import FAMILIES, random_problems
from bench.schedules.summary import problems, regret, summary
from bench.schedules.trial import Trial

STORED = Path(__file__).parents[3] / "bench" / "results" / "schedules_h200.jsonl.gz"


def test_problems_are_the_same_each_time():
    assert random_problems(20, seed=3) == random_problems(20, seed=3)
    assert {problem.family for problem in random_problems(20)} == FAMILIES.keys()


def test_regret_is_against_the_fastest(tmp_path):
    lines = [
        {"commit": "a"},
        {"name": "norm/0.0", "candidates": [{"seconds": s} for s in (3.0, 2.0, None, 4.0)]},
        {"name": "norm/0.1", "candidates": [{"seconds": s} for s in (1.0, 2.0)]},
        {"name": "softmax/0.0", "candidates": [{"seconds": None}, {"seconds": 2.0}]},
    ]
    path = tmp_path / "found.jsonl.gz"
    with gzip.open(path, "wt") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    assert [regret(problem) for problem in problems(path)] == [1.5, 1.0]
    assert "norm" in summary([path])
    assert "softmax" not in summary([path])


def test_the_stored_file_is_read():
    stored = list(problems(STORED))
    assert len(stored) == 220
    assert sum(len(problem["candidates"]) for problem in stored) > 9000


def test_random_definitions_are_problems_but_for_those_that_are_for_judging():
    assert graph_problems(2, seed=3) == [GraphProblem(3, 0), GraphProblem(3, 1)]
    assert graph_problems(0, seed=0) == []
    with pytest.raises(ValueError, match="choose another seed"):
        graph_problems(1, seed=0)
    problem = GraphProblem(3, 1)
    one, other = (problem.tensors("cpu") for _ in range(2))
    assert all(a.equal(b) for a, b in zip(one, other, strict=True))
    assert len(one) == len(problem.recorded().fusion.ir.inputs)


@pytest.mark.gpu
def test_a_trial_times_each_kernel():
    trial = Trial(random_problems(8, seed=1)[6], count=3, seed=1)
    trial.prepare(JobContext(contextlib.nullcontext()))
    found = trial.measure()
    assert 2 <= len(found["candidates"]) <= 4
    for row in found["candidates"]:
        assert 0 < sum(row["kernels"]) <= 1.001 * row["seconds"]
        assert len(row["kernels"]) == len(row["facts"]) == len(row["works"])
