"""Jobs over processes: outcomes in order, two phases, errors and deaths that end nothing else."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.workers import Limits, run_jobs


@dataclass
class Timed:
    """Says when it was prepared and measured, and by whom."""

    number: int

    def prepare(self, shop):
        time.sleep(0.2)
        self.prepared = time.time()
        self.late = shop.late
        with shop.alone:
            pass

    def measure(self):
        begun = time.time()
        time.sleep(0.1)
        return self.number, self.prepared, begun, time.time(), self.late, os.environ.copy()


@dataclass
class Failing:
    """Fails in a phase, once each of a crowd of jobs has a worker of its own."""

    where: str
    folder: Path | None = None
    crowd: int = 1

    def prepare(self, shop):
        if self.folder is not None:
            (self.folder / str(os.getpid())).touch()
            while len(list(self.folder.iterdir())) < self.crowd:
                time.sleep(0.01)
        self.fail("prepare")

    def measure(self):
        self.fail("measure")
        return "done"

    def fail(self, here):
        if self.where == here:
            raise ValueError(f"no {here}")
        if self.where == f"die in {here}":
            os._exit(7)
        if self.where == f"hang in {here}":
            time.sleep(60)


def test_all_is_prepared_before_anything_is_measured_and_that_one_at_a_time():
    found = run_jobs([Timed(i) for i in range(6)], 3)
    assert [o.result[0] for o in found] == list(range(6))
    spans = sorted((begun, end) for _, _, begun, end, _, _ in (o.result for o in found))
    assert max(o.result[1] for o in found) <= spans[0][0]
    assert all(end <= begun for (_, end), (begun, _) in pairwise(spans))
    assert not any(o.result[4] for o in found)


def test_workers_have_caches_of_their_own_and_leave_the_environment_alone(monkeypatch):
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "here")
    before = dict(os.environ)
    (outcome,) = run_jobs([Timed(0)])
    theirs = outcome.result[-1]
    assert theirs["TRITON_CACHE_DIR"]
    assert theirs["TORCHINDUCTOR_CACHE_DIR"] == "here"
    assert dict(os.environ) == before


def test_errors_are_outcomes(tmp_path):
    kinds = ["", "prepare", "measure", "die in prepare", "die in measure", ""]
    found = run_jobs([Failing(kind, tmp_path, len(kinds)) for kind in kinds], len(kinds))
    assert [o.result for o in found] == ["done", None, None, None, None, "done"]
    assert [o.error for o in found] == [
        None,
        "ValueError: no prepare",
        "ValueError: no measure",
        "its process ended with code 7",
        "its process ended with code 7",
        None,
    ]


def test_limits_end_the_run():
    begun = time.time()
    late, hung = run_jobs([Timed(0), Failing("hang in measure")], 2, Limits(prepare=0, total=8))
    assert time.time() - begun < 20
    assert late.result is None or late.result[4]
    assert hung.error == "not done in time"


def test_no_jobs_no_outcomes():
    assert run_jobs([]) == []
