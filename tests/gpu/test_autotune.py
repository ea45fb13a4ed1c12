"""``fd.autotune`` on a real device: right, not slower, found again by another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import tritonfuser
from tritonfuser import FusionDefinition, options
from tritonfuser.cache.stored_schedules import MOST_TUNINGS
from tritonfuser.cache.tuned import store
from tritonfuser.frontend.tune import stored_tuning
from tritonfuser.frontend.tune.autotune import autotune
from tritonfuser.frontend.tune.child_process import ChildProcess
from tritonfuser.frontend.tune.messages import TensorLayout, packed, unpacked

pytestmark = pytest.mark.gpu

ROOT = Path(tritonfuser.__file__).parents[1]
SIZE = (4096, 5120)
BUDGET_S = 8 * min(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), 4)
"""Seconds of a tuning: more where other tests use the GPU and the cores at the same time."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty store that runs use."""
    monkeypatch.setenv("TRITONFUSER_CACHE_DIR", os.fspath(tmp_path))
    monkeypatch.setenv("TRITONFUSER_TUNED", "1")
    options.refresh()
    yield tmp_path
    monkeypatch.undo()
    options.refresh()


def softmax(fd, x):
    powers = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
    return fd.ops.div(powers, fd.ops.sum(powers, [1], keepdim=True))


def layernorm(fd, x):
    var, mean = fd.ops.var_mean(x, [1], 0, keepdim=True)
    return fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))


def column_sum(fd, x):
    return fd.ops.sum(x, [0])


def run_first(name, sizes=SIZE):
    """A first run of a new definition, beside its reference."""
    x = torch.randn(sizes, device="cuda")
    fd = recorded(name)
    (made,) = fd.run([x])
    return fd, x, made


@pytest.fixture
def first_runs(monkeypatch):
    """First runs are tuned for two seconds; counts how often."""
    monkeypatch.setenv("TRITONFUSER_AUTOTUNE", "2")
    options.refresh()
    asked = []

    def counted(task):
        asked.append(task)
        return autotune(task)

    monkeypatch.setattr(stored_tuning, "autotune", counted)
    return asked


def test_first_runs_are_tuned_once(first_runs, folder):
    """What is found is stored, the heuristics' own schedule too, for definitions like this one."""
    fd, x, made = run_first("softmax")
    torch.testing.assert_close(made, x.softmax(1))
    fd.run([x])
    again, _, _ = run_first("softmax")
    assert len(first_runs) == 1 and len(list((folder / "schedules").iterdir())) == 1
    assert "tuned on" in str(again.explain([x]))


def test_sizes_that_vary_are_not_tuned_forever(first_runs, monkeypatch):
    def fails(task):
        first_runs.append(task)
        raise RuntimeError("out of memory")

    monkeypatch.setattr(stored_tuning, "autotune", fails)
    fd = recorded("layernorm")
    for columns in range(100, 130):
        x = torch.randn(64, columns, device="cuda")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            (made,) = fd.run([x])
        assert all("a definition is not tuned: RuntimeError" in str(w.message) for w in told)
        torch.testing.assert_close(made, torch.nn.functional.layer_norm(x, [columns]))
    assert 0 < len(first_runs) <= MOST_TUNINGS


CASES = {"softmax": softmax, "layernorm": layernorm, "column_sum": column_sum}


def recorded(name):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(CASES[name](fd, x))
    return fd


def given():
    torch.manual_seed(0)
    return [torch.randn(*SIZE, device="cuda")]


@pytest.mark.parametrize("name", CASES)
def test_what_is_found_is_right_and_not_slower(name):
    fd, inputs = recorded(name), given()
    before = inputs[0].clone()
    report = fd.autotune(inputs, budget_s=BUDGET_S, level="schedule", progress=False)
    assert report.seconds <= report.heuristic_seconds
    assert sum(trial.seconds is not None for trial in report.trials) > 3
    assert torch.equal(inputs[0], before)
    assert bool(report.stored) is report.is_better
    (out,) = fd.run(inputs)
    torch.testing.assert_close(out, fd.run(inputs, schedule=report.schedule)[0])
    fd.validate(inputs)
    assert fd.schedule(inputs) == report.schedule
    assert fd.explain(inputs).origin.startswith("tuned on") is report.is_better


def test_another_process_uses_what_is_stored():
    fd, inputs = recorded("softmax"), given()
    schedule = fd.schedule(inputs).to_dict()
    params = schedule["segments"][0]["params"]
    params["num_warps"] = 2 * params["num_warps"] if params["num_warps"] < 16 else 8
    chosen = tritonfuser.Schedule.from_dict(schedule)
    key = fd._core().store_key(inputs)
    store.save(key, store.Stored(chosen, 1e-5, 2e-5, key.device))
    text = (
        "import json; from tests.gpu.test_autotune import given, recorded\n"
        "fd, inputs = recorded('softmax'), given()\n"
        "fd.run(inputs); print(json.dumps(fd.schedule(inputs).to_dict()))\n"
    )
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == schedule


def test_a_fault_costs_the_other_process_alone():
    """The caller's CUDA context works on."""
    fd, inputs = recorded("softmax"), given()
    schedule = fd.schedule(inputs)
    child = ChildProcess(30.0)
    child.open(fd.to_dict(), inputs, "cuda:0", schedule)
    try:
        child.hooks[schedule] = "fault"
        assert child.measure([schedule], 5)[0].startswith("it faults: ")
        child.hooks.clear()
        (seconds,) = child.measure([schedule], 5)
        assert 0 < seconds < 1e-2
        assert child.judge([schedule]) == [""]
    finally:
        child.stop()
    torch.testing.assert_close(fd.run(inputs)[0], torch.softmax(inputs[0], 1))


@pytest.mark.parametrize("share", [True, False])
def test_inputs_arrive_as_they_were(share):
    tensors = [
        torch.randn(5, 3, device="cuda").t(),
        torch.randn(7, device="cuda")[1:],
        torch.randn(4, device="cuda").expand(3, 4),
        torch.randn(0, 3, device="cuda"),
        torch.tensor(2.5),
    ]
    for tensor, again in zip(tensors, unpacked(packed(tensors, share)), strict=True):
        assert torch.equal(tensor, again) and TensorLayout.of(again) == TensorLayout.of(tensor)
