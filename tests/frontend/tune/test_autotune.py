"""``fd.autotune`` refuses what it cannot do."""

from __future__ import annotations

import pytest
import torch

from tests.frontend.tune.fakes import softmax
from tritonfuser import ArgumentError, InputError, UnsupportedDeviceError
from tritonfuser.frontend.tune import autotune
from tritonfuser.frontend.tune.child_process import ChildProcess
from tritonfuser.frontend.tune.worker_pipe import TunerError


def test_without_a_gpu_it_says_what_works():
    fd, inputs = softmax()
    with pytest.raises(UnsupportedDeviceError, match=r"needs a CUDA device, .* on cpu") as error:
        fd.autotune(inputs)
    assert "interpreter" in str(error.value) and "fd.compile_for" in str(error.value)
    assert "test_autotune.py" in str(error.value)


@pytest.mark.parametrize("budget", [0, -1.0, float("inf"), float("nan"), True, "5"])
def test_a_budget_is_a_positive_number(budget):
    fd, inputs = softmax()
    with pytest.raises(ArgumentError, match="budget_s must be a positive number of seconds"):
        fd.autotune(inputs, budget_s=budget)


def test_other_arguments_are_checked():
    fd, inputs = softmax()
    with pytest.raises(ArgumentError, match="level must be one of 'params', 'schedule'"):
        fd.autotune(inputs, level="all")
    with pytest.raises(ArgumentError, match="seed must be an int"):
        fd.autotune(inputs, seed="x")
    with pytest.raises(InputError):
        fd.autotune([1.0])


class _Broken(ChildProcess):
    """A process that is ready at once, and fails at the first schedule."""

    def open(self, *about):
        pass

    def is_ready(self, seconds):
        return True

    def measure(self, schedules, rounds):
        raise TunerError("it fails")


class _Forgetful:
    """Processes that compile nothing, and count how often nobody waits for them any more."""

    works, count, forgotten = False, 1, 0

    def forget(self):
        self.forgotten += 1


def test_a_search_that_fails_waits_for_no_process(monkeypatch):
    """Python waits for the threads of the search when it ends, and they for what is compiled."""
    pool = _Forgetful()
    monkeypatch.setattr(autotune, "_started_pool", lambda device: pool)
    fd, inputs = softmax()
    ir = fd._ready().ir
    task = autotune.Task(ir, fd.to_dict(), inputs, torch.device("cpu"), 5.0, shown=False)
    with pytest.raises(TunerError):
        autotune.tuned(task, _Broken())
    assert pool.forgotten == 1
