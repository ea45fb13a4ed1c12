"""The products that are timed compute what their eager forms do."""

from __future__ import annotations

import pytest
import torch

from bench.products import CASES, ProductCase, measure, record


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("options", [[], ["fuse_matmul"]], ids=["as it is", "fused"])
def test_a_case_is_its_eager_form(case: ProductCase, options: list[str]) -> None:
    torch.manual_seed(0)
    inputs = case.inputs((40, 32, 64), torch.device("cpu"))
    (out,) = record(case, inputs).run(inputs, _enable_options=options)
    wanted = case.eager(*(t.double() for t in inputs))
    assert out.shape == wanted.shape
    torch.testing.assert_close(out.double(), wanted.double(), atol=5e-2, rtol=2e-2)


def test_a_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """All contenders run and have a time; the compiler is left out."""
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    found = measure(CASES[0], (40, 32, 64), "cpu")
    assert found.error < 2**-7
    assert min(found.ours, found.fused, found.eager, found.autotuned) > 0
    assert found.row()["M x N x K"] == "40x32x64"
