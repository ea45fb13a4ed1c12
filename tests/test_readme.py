"""The README's example runs, and says what it promises."""

from __future__ import annotations

from pathlib import Path

import torch

README = Path(__file__).parent.parent / "README.md"


def test_the_example(capsys):
    code = README.read_text().split("```python\n")[1].split("```")[0]
    scope = {}
    exec(compile(code, str(README), "exec"), scope)
    x, y, out = scope["x"], scope["y"], scope["out"]
    torch.testing.assert_close(out, ((x + y) * 3.0).sum(2), rtol=1e-5, atol=1e-3)
    printed = capsys.readouterr().out
    assert printed.startswith("def nvfuser_fusion(fd : FusionDefinition) -> None :")
    assert "ReductionParams(" in printed
    assert "@triton.jit" in printed


def test_the_plan():
    first, second = (part.split("```")[0] for part in README.read_text().split("```python\n")[1:3])
    scope = {}
    exec(compile(first, str(README), "exec"), scope)
    wanted = scope["out"]
    exec(compile(second, str(README), "exec"), scope)
    (found,) = scope["out"]
    assert torch.equal(found, wanted)
