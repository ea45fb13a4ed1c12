"""Jobs over processes: outcomes in order, two phases, errors and deaths that end nothing else."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from bench.processes import jobs, workers
from bench.processes.workers import Limits, run_jobs
from tests.bench.test_child_process import gone


@dataclass
class Timed:
    """Says when it was prepared and measured, and by whom."""

    number: int

    def prepare(self, context):
        time.sleep(0.2)
        self.prepared = time.time()
        self.is_late = context.is_late
        with context.gpu_lock:
            pass

    def measure(self):
        begun = time.time()
        time.sleep(0.1)
        return self.number, self.prepared, begun, time.time(), self.is_late, os.environ.copy()


@dataclass
class Failing:
    """Fails in a phase, once each of a crowd of jobs has a worker of its own."""

    where: str
    folder: Path | None = None
    crowd: int = 1

    def prepare(self, context):
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
        if self.where == f"exit in {here}":
            sys.exit()
        if self.where == f"hang in {here}":
            time.sleep(60)
        if self.where == f"lose the device in {here}":
            jobs.is_device_lost = lambda: True


@dataclass
class Slow:
    """Takes some seconds to be measured."""

    seconds: float

    def prepare(self, context):
        pass

    def measure(self):
        time.sleep(self.seconds)


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


@pytest.mark.parametrize("phase", ["prepare", "measure"])
@pytest.mark.parametrize("end", ["die", "lose the device", "exit"])
def test_a_job_that_ends_its_worker_is_the_only_one_lost(phase, end):
    """One worker has them all, before and behind it."""
    kinds = ["", "", f"{end} in {phase}", "", ""]
    found = run_jobs([Failing(kind) for kind in kinds], 1)
    assert [o.result for o in found] == ["done", "done", None, "done", "done"]
    assert {
        "die": "its process ended with code 7",
        "exit": "its process ended with code 0",
        "lose the device": "a kernel had a fault",
    }[end] in found[2].error


def test_a_worker_that_waits_for_others_has_not_begun():
    """The one that takes another's place waits while others measure, longer than a job may take."""
    jobs = [Failing("die in measure"), *(Slow(1.5) for _ in range(4))]
    found = run_jobs(jobs, 2, Limits(each=1))
    assert [o.error for o in found[1:]] == [None] * 4


def test_limits_end_the_run():
    begun = time.time()
    late, hung = run_jobs([Timed(0), Failing("hang in measure")], 2, Limits(prepare=0, total=8))
    assert time.time() - begun < 20
    assert late.result is None or late.result[4]
    assert hung.error == "not done in time"


@pytest.mark.parametrize(
    ("processes", "limits", "seconds"),
    [(1, Limits(each=2, total=40), 2), (2, Limits(total=24), 8)],
)
def test_a_job_that_does_not_compile_keeps_no_other_from_being_measured(processes, limits, seconds):
    """What its worker had prepared is prepared again."""
    jobs = [Failing(""), Failing("hang in prepare"), Failing(""), Failing("")]
    found = run_jobs(jobs, processes, limits)
    assert [o.result for o in found] == ["done", None, "done", "done"]
    assert found[1].error == f"did not compile in {seconds} s"


def test_a_limit_of_one_job_is_not_one_of_all():
    found = run_jobs([Timed(i) for i in range(8)], 1, Limits(each=1))
    assert all(o.error is None for o in found)


def test_no_jobs_no_outcomes():
    assert run_jobs([]) == []


def test_outcomes_are_handed_on_as_they_come(monkeypatch):
    monkeypatch.setattr(workers, "_SAVE_SECONDS", 0.0)
    kept = []
    found = run_jobs([Timed(i) for i in range(3)], 1, keep=lambda known: kept.append(dict(known)))
    assert sorted(kept[0]) == [0]
    assert all(known[0] == found[0] for known in kept)


def test_the_longest_is_prepared_first():
    found = run_jobs([Timed(i) for i in range(3)], 1, costs=[1.0, 3.0, 2.0])
    assert [o.result[0] for o in found] == [0, 1, 2]
    prepared = [o.result[1] for o in found]
    assert sorted(prepared) == [prepared[1], prepared[2], prepared[0]]


@dataclass
class Heavy:
    """Leaves objects behind, as a compiler does."""

    def prepare(self, context):
        self.kept = [[number] for number in range(100_000)]

    def measure(self):
        return gc.get_freeze_count(), len(gc.get_objects())


def test_what_is_compiled_is_left_out_of_later_collections():
    (outcome,) = run_jobs([Heavy()])
    frozen, watched = outcome.result
    assert frozen > 100_000 > watched


STARTS_WORKERS = """
from tests.bench.test_workers import Failing, run_jobs
if __name__ == "__main__":
    run_jobs([Failing("hang in prepare", pathlib.Path(sys.argv[1]))], 1)
"""


def test_workers_end_with_their_parent(tmp_path):
    """Killed, it can tell nobody."""
    path = tmp_path / "program.py"
    path.write_text(f"import pathlib, sys\n{STARTS_WORKERS}")
    folder = tmp_path / "seen"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, str(path), str(folder)], env=environment) as parent:
        while not (seen := list(folder.iterdir())):
            time.sleep(0.05)
        parent.kill()
    (worker,) = seen
    assert gone(int(worker.name))
