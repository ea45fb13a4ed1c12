"""The examples of searches run, and so does the page on tuning."""

from __future__ import annotations

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tritonfuser import DataType, FusionDefinition, Schedule

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def example(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def softmax():
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1], contiguity=True)
        e = fd.ops.exp(fd.ops.sub(t, fd.ops.max(t, [1], keepdim=True)))
        fd.add_output(fd.ops.div(e, fd.ops.sum(e, [1], keepdim=True)))
    return fd


def check(found, ratio):
    x = torch.randn(8, 24)
    assert Schedule.from_dict(found).segments and 0 < ratio <= 1
    torch.testing.assert_close(softmax().run([x], schedule=found), [torch.softmax(x, 1)])


def test_random_search(monkeypatch):
    check(*example("random_search", monkeypatch).search(softmax(), [torch.randn(8, 24)], 1.0))


def test_random_search_as_a_program(monkeypatch, tmp_path, capsys):
    """From any folder, with the seconds that it is given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["random_search.py", "0.2"])
    runpy.run_path(str(EXAMPLES / "random_search.py"), run_name="__main__")
    assert "of the heuristics' time" in capsys.readouterr().out
    assert not [*tmp_path.iterdir()]


def test_optuna_search(monkeypatch):
    pytest.importorskip("optuna")
    check(*example("optuna_search", monkeypatch).search(softmax(), [torch.randn(8, 24)], 10))


@pytest.mark.skipif(importlib.util.find_spec("optuna") is not None, reason="it is installed")
def test_what_is_missing_is_said():
    found = subprocess.run(
        [sys.executable, EXAMPLES / "optuna_search.py"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert found.returncode == 1
    assert found.stderr.strip() == "This example needs Optuna: pip install optuna"


def test_the_page(capsys):
    code = (ROOT / "docs" / "tuning.md").read_text().split("```python\n")[1].split("```")[0]
    scope = {}
    exec(compile(code, "docs/tuning.md", "exec"), scope)
    x = scope["x"]
    torch.testing.assert_close(scope["out"], [torch.softmax(x, 1), x.sum(0)])
    assert scope["loaded"].segments[0].params.num_warps == 8
    assert "num_warps=8" in capsys.readouterr().out


def test_the_cost_on_the_page_is_what_is_printed():
    """The page shows the heading and the table of a softmax."""
    page = (ROOT / "docs" / "tuning.md").read_text()
    x = torch.empty(8192, 4096, dtype=torch.bfloat16, device="meta")
    with FusionDefinition() as fd:
        t = fd.ops.cast(fd.from_pytorch(x), DataType.Float)
        e = fd.ops.exp(fd.ops.sub(t, fd.ops.max(t, [1], keepdim=True)))
        total = fd.ops.sum(e, [1], keepdim=True)
        fd.add_output(fd.ops.cast(fd.ops.div(e, total), DataType.BFloat16))
    shown = str(fd.explain([x], arch="sm_90")).split("\n\ns0: ")[0]
    assert page.split("```text\n")[1].split("\n```")[0] == shown
