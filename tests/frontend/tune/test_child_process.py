"""The process that times: it faults and hangs alone, and what it is sent arrives as it was."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.frontend.tune.fakes import compiler_for, softmax
from tritonfuser import FusionDefinition
from tritonfuser.frontend.tune import worker_pipe
from tritonfuser.frontend.tune.autotune import Task, tuned
from tritonfuser.frontend.tune.candidates import candidates, neighbours
from tritonfuser.frontend.tune.child_process import ChildProcess
from tritonfuser.frontend.tune.messages import TensorLayout, packed, unpacked
from tritonfuser.frontend.tune.output_check import Judge
from tritonfuser.frontend.tune.report import difference
from tritonfuser.frontend.tune.worker_pipe import TunerError
from tritonfuser.lowering.schedules import schedule_of

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def child():
    made = ChildProcess(patience=60.0)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def problem():
    fd, inputs = softmax()
    compiler = compiler_for(fd, [inputs[0][:8]])
    first = compiler.prepared(compiler.heuristics())
    drawn = candidates(first.segmented, random.Random(0))
    others = {next(drawn): None for _ in range(40)}
    legal = [s for s in others if s.segments[0].params.persistent and s != first.schedule]
    return fd, [inputs[0][:8]], [first.schedule, *legal[:3]]


def opened(child, problem, inputs=None):
    fd, given, schedules = problem
    child.hooks.clear()
    child.open(fd.to_dict(), inputs or given, "cpu", schedules[0])
    return schedules


@pytest.mark.slow
def test_a_fault_costs_the_child_alone(child, problem):
    schedules = opened(child, problem)
    child.hooks[schedules[2]] = "abort"
    before = child.link.starts
    found = child.measure(schedules, 3)
    assert found[2] == "it ends the process: signal 6"
    assert all(isinstance(found[n], float) for n in (0, 1, 3))
    assert child.link.starts == before + 1
    child.hooks.clear()
    assert (
        isinstance(child.measure([schedules[2]], 3)[0], float) and child.link.starts == before + 1
    )


@pytest.mark.slow
def test_a_hang_costs_the_child_alone(child, problem):
    schedules = opened(child, problem)
    assert child.judge(schedules[:1]) == [""]
    child.hooks[schedules[1]] = "hang"
    child.patience = 3.0
    try:
        found = child.measure(schedules[:2], 3)
    finally:
        child.patience = 60.0
    assert found[1] == "it hangs: no word for 3 s" and isinstance(found[0], float)


@pytest.mark.slow
def test_what_is_not_legal_is_told_and_the_child_lives(child, problem):
    schedules = opened(child, problem)
    before = child.link.starts
    wrong = replace(schedules[0], segments=())
    found = child.measure([schedules[0], wrong], 3)
    assert found[1].startswith("ParamsError: ") and isinstance(found[0], float)
    assert child.link.starts == before


@pytest.mark.slow
def test_a_process_that_somebody_ended_is_started_again(child, problem):
    schedules = opened(child, problem)
    assert isinstance(child.measure(schedules[:1], 3)[0], float)
    process = child.link._process
    process.kill()
    process.join()
    assert isinstance(child.measure(schedules[:1], 3)[0], float)


@pytest.mark.slow
def test_another_definition_and_its_inputs(child, problem):
    opened(child, problem)
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        index = fd.define_tensor([-1], contiguity=True, dtype=torch.int64)
        c = fd.define_scalar(dtype=torch.float64)
        fd.add_output(fd.ops.mul(fd.ops.index_select(x, index, 0), c))
    inputs = [torch.arange(5.0), torch.tensor([4, 0, 2]), 3.0]
    schedule = fd.schedule(inputs)
    child.open(fd.to_dict(), inputs, "cpu", schedule)
    # A wrong index would be refused: CPU kernels check them.
    assert child.judge([schedule]) == [""]
    bad = [inputs[0], torch.tensor([4, 0, 5]), 3.0]
    child.open(fd.to_dict(), bad, "cpu", schedule)
    assert "IndexRangeError" in child.measure([schedule], 3)[0]
    child.close()
    with pytest.raises(TunerError, match="fails"):
        child.measure([schedule], 3)


@pytest.mark.slow
def test_a_search_survives_a_fault(child):
    fd, inputs = softmax()
    task = Task(fd._ready().ir, fd.to_dict(), [inputs[0][:4]], CPU, 1.5, shown=False)
    compiler = compiler_for(fd, task.inputs)
    (near, *_) = neighbours(compiler.prepared(compiler.heuristics()).segmented)
    child.hooks[near] = "abort"
    report = tuned(replace(task, known=(near,)), child)
    child.hooks.clear()
    (aborted,) = [trial for trial in report.trials if trial.schedule == near]
    assert aborted.failure == "it ends the process: signal 6" and report.schedule != near
    assert report.seconds <= report.heuristic_seconds


@pytest.mark.slow
def test_a_daemonic_process_is_told_that_it_cannot(monkeypatch):
    """A worker of a pool, for example; what is made is not half a process."""
    monkeypatch.setattr(worker_pipe.current_process(), "_config", {"daemon": True})
    fd, inputs = softmax()
    child = ChildProcess()
    for _ in range(2):
        with pytest.raises(TunerError, match="is a daemonic process") as error:
            child.open(fd.to_dict(), inputs, "cpu", fd.schedule(inputs))
        assert "daemon=False" in str(error.value)
        child.stop()


def test_a_program_without_a_guard_is_not_run_again(tmp_path):
    """As a spawned process does with the module ``__main__``."""
    text = (
        "import torch\n"
        "from tests.frontend.tune.fakes import softmax\n"
        "from tritonfuser.frontend.tune.child_process import ChildProcess\n"
        "print('here')\n"
        "fd, inputs = softmax()\n"
        "child = ChildProcess(60.0)\n"
        "schedule = fd.schedule([inputs[0][:2]])\n"
        "child.open(fd.to_dict(), [inputs[0][:2]], 'cpu', schedule)\n"
        "print(child.judge([schedule]))\n"
    )
    script = tmp_path / "program.py"
    script.write_text(text)
    root = os.fspath(Path(__file__).parents[3])  # of the package and its tests
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout == "here\n['']\n", done.stderr


# --- what is sent --------------------------------------------------------------------------------


TENSORS = {
    "whole": torch.randn(3, 5),
    "transposed": torch.randn(5, 3).t(),
    "expanded": torch.randn(4).expand(3, 4),
    "strided": torch.randn(8, 8)[::2, 1::3],
    "not aligned": torch.randn(7)[1:],
    "0-dim": torch.tensor(2.5, dtype=torch.float64),
    "empty": torch.randn(0, 3),
    "complex": torch.randn(3, dtype=torch.complex64),
    "bool": torch.tensor([True, False]),
    "bfloat16": torch.randn(6).to(torch.bfloat16)[3:],
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_a_tensor_arrives_as_it_was(tensor):
    (again,) = unpacked(packed([tensor], share=True))
    assert torch.equal(again, tensor) and again.dtype == tensor.dtype
    assert TensorLayout.of(again) == TensorLayout.of(tensor)
    assert not tensor.numel() or again.data_ptr() != tensor.data_ptr()


def test_numbers_arrive_as_they_were():
    numbers = [True, 3, 2.5, float("inf"), 1 + 2j]
    again = unpacked(packed(numbers, share=False))
    assert again == numbers and [*map(type, again)] == [*map(type, numbers)]


# --- wrong outputs -------------------------------------------------------------------------------


class Wrong:
    """A plan whose outputs are off by a little."""

    def __init__(self, plan, off):
        self._plan, self._off = plan, off

    def plain(self, inputs):
        return [out + self._off for out in self._plan.plain(inputs)]


def judged(fd, inputs, off):
    plan = fd._core().plan(inputs)
    judge = Judge(fd._ready().ir, inputs, CPU, plan)
    return judge.fault(plan), judge.fault(Wrong(plan, off))


def test_wrong_outputs_are_found():
    fd, inputs = softmax()
    right, wrong = judged(fd, [inputs[0][:4]], 1e-3)
    assert right == "" and wrong.startswith("wrong: output 0: 1200 of 1200 elements differ")


def test_random_numbers_are_drawn_again():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.add(x, fd.ops.rand_like(x)))
    right, wrong = judged(fd, [torch.zeros(4, 8)], 0.5)
    assert right == "" and wrong.startswith("wrong: ")


def test_inputs_are_not_written_to():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.add(x, 1.0), x)
    given = torch.zeros(5)
    plan = fd._core().plan([given])
    judge = Judge(fd._ready().ir, [given], CPU, plan)
    assert judge.fault(plan) == "" and judge.fault(plan) == "" and not given.any()


def test_without_a_reference_outputs_are_those_of_the_heuristics(monkeypatch):
    def lacking(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("tritonfuser.frontend.tune.output_check.expected", lacking)
    fd, inputs = softmax()
    right, wrong = judged(fd, [inputs[0][:4]], 1e-1)
    assert right == "" and "differs from that of the heuristics' schedule" in wrong


# --- candidates ----------------------------------------------------------------------------------


def test_neighbours_differ_in_one_choice():
    fd, _ = softmax()
    inputs = [torch.empty(4096, 3000, device="meta")]
    found = fd.segments(inputs, arch="sm_90")
    first = schedule_of(found)
    near = list(neighbours(found))
    assert len(near) == len({*near}) >= 4 and first not in near
    changes = {difference(schedule, first).split()[0] for schedule in near}
    assert {"s0.block_x", "s0.num_warps"} <= changes
    for schedule in near:
        assert fd.kernels(inputs, arch="sm_90", schedule=schedule)


def test_splits_change_only_where_that_is_asked_for():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(x, [0]))
    found = fd.segments([torch.empty(1 << 16, 64, device="meta")], arch="sm_90")
    assert found.rewrites.splits
    for splits in (True, False):
        near = list(neighbours(found, splits))
        drawn = candidates(found, random.Random(0), splits)
        near += [next(drawn) for _ in range(20)]
        assert any(s.rewrites != found.rewrites for s in near) is splits
