"""First runs that are tuned: where that is asked for, on a GPU."""

from __future__ import annotations

import pytest
import torch

from tests.frontend.tune.fakes import softmax
from tritonfuser import FusionDefinition, options
from tritonfuser.cache import stored_schedules
from tritonfuser.errors import CaptureError
from tritonfuser.frontend.tune import stored_tuning
from tritonfuser.lowering.run_options import DEFAULT


@pytest.fixture
def asked(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITONFUSER_AUTOTUNE", "3")
    monkeypatch.setenv("TRITONFUSER_TUNED", "1")
    monkeypatch.setenv("TRITONFUSER_CACHE_DIR", str(tmp_path))
    options.refresh()
    found = []
    monkeypatch.setattr(stored_tuning, "autotune", found.append)
    yield found
    monkeypatch.undo()
    options.refresh()


def test_the_interpreter_is_not_tuned(asked):
    fd, (x,) = softmax()
    (made,) = fd.run([x])
    torch.testing.assert_close(made, x.softmax(1))
    assert not asked


def test_what_needs_no_compiling_may_be_captured(asked, monkeypatch):
    """Kernels with open sizes serve it; else a first run in a capture is refused, tuned or not."""

    def refused(where):
        raise CaptureError("a first run", hint="Run once before.")

    fd, inputs = softmax()
    core = fd._core()
    request, _ = core._request(inputs, DEFAULT)
    monkeypatch.setattr(stored_schedules, "checked_device", lambda *given: torch.device("cuda", 0))
    monkeypatch.setattr(stored_schedules, "refuse_first_run", refused)
    with pytest.raises(CaptureError):
        core._tunes_first(request, inputs, DEFAULT)
    monkeypatch.setattr(core._variants, "peek", lambda request: object())
    assert not core._tunes_first(request, inputs, DEFAULT)


def test_a_tuning_that_fails_is_a_warning(asked, monkeypatch):
    """The run goes on without: here there is no GPU to tune on."""

    def fails(task):
        raise RuntimeError(f"no memory in {task.budget} s")

    monkeypatch.setattr(stored_tuning, "autotune", fails)
    fd, inputs = softmax()
    core = fd._core()
    with pytest.warns(UserWarning, match="is not tuned: RuntimeError: no memory in 3.0 s"):
        core._tune(core, inputs, None)


def test_ops_that_are_added_later_are_not_tuned(asked):
    """An executor runs what was there when it was made."""
    fd, inputs = softmax()
    core = fd._core()
    with FusionDefinition() as longer:
        longer.add_output(longer.ops.exp(longer.from_pytorch(inputs[0])))
    stored_tuning.first_tuning(longer.fusion)(core, inputs, None)
    assert not asked
