"""Random problems and the table of how far the heuristics are from the best schedule."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from bench.schedules.problems import FAMILIES, random_problems
from bench.schedules.summary import problems, regret, summary

STORED = Path(__file__).parents[2] / "bench" / "results" / "schedules_h200.jsonl.gz"


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
    assert "norm" in summary(path)
    assert "softmax" not in summary(path)


def test_the_stored_file_is_read():
    stored = list(problems(STORED))
    assert len(stored) == 220
    assert sum(len(problem["candidates"]) for problem in stored) > 9000
