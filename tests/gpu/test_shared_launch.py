"""Segments that share a launch, on a real device: the results of launches of their own."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.tile.test_finished_by_last import define
from tests.lowering.tile.test_shared_launch import BODIES, SHAPES, apart, beside, exported

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", BODIES)
def test_the_results_are_those_of_launches_of_their_own(name, shapes, dtype):
    fd = define(BODIES[name], 2, 2, 2, dtype=dtype)
    kind = {"bf16": torch.bfloat16, "fp32": torch.float32}[dtype]
    inputs = [torch.randn(shape, device="cuda").to(kind) for shape in SHAPES[shapes]]
    data = exported(fd, inputs)
    assert any(beside(data))
    found = fd.run(inputs, schedule=data)
    tolerance = {"rtol": 2e-2, "atol": 5e-2} if dtype == "bf16" else {"rtol": 1e-4, "atol": 1e-3}
    torch.testing.assert_close(found, fd.run(inputs, schedule=apart(data)), **tolerance)
    for _ in range(100):
        again = fd.run(inputs, schedule=data)
        assert all(torch.equal(a, b) for a, b in zip(again, found, strict=True))


def test_in_a_graph():
    fd = define(BODIES["sums"], 2, 2, 2)
    inputs = [torch.randn(shape, device="cuda") for shape in SHAPES["split"]]
    plan = fd.plan(inputs)
    expected = plan(inputs)
    graph = plan.graph(inputs)
    for _ in range(10):
        assert all(torch.equal(a, b) for a, b in zip(graph(), expected, strict=True))
