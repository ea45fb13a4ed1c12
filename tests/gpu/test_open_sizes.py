"""Kernels that take their sizes as arguments, compiled and launched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.e2e.graphs.resized import check_values, expectations
from tests.e2e.test_open_sizes import CHOSEN, define, noise
from tritonfuser import DataType, FusionDefinition

pytestmark = pytest.mark.gpu

DEFINITIONS: dict[str, Callable[[Any], None]] = {name: body for name, (body, _) in CHOSEN.items()}
SHAPES = {name: shapes for name, (_, shapes) in CHOSEN.items()}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_chosen(name: str) -> None:
    """Twice over, in both orders: static variants, then one for others."""
    fd = define(DEFINITIONS[name])
    shapes = [
        [tuple(n + more for n in shape) for shape in case]
        for more in (0, 1, 2)
        for case in SHAPES[name]
    ]
    for case in (*shapes, *reversed(shapes)):
        given = [noise(*shape, seed=n) for n, shape in enumerate(case)]
        expected = expectations(fd, given)
        if expected is None:
            continue
        inputs = [x.cuda() for x in given]
        check_values(fd, fd.run(inputs), inputs, expected, f"on the GPU, at {case}")
    assert any(made.dynamic for made in fd.explain_recompiles())


def test_products_of_any_number_of_rows() -> None:
    with FusionDefinition() as fd:
        x, w = (
            fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.BFloat16)
            for _ in range(2)
        )
        fd.add_output(fd.ops.relu(fd.ops.linear(x, w)))
    w_given = noise(512, 256).bfloat16().cuda()
    for rows in (128, 384, 640, 1024, 7, 9, 100, 1000):
        x_given = noise(rows, 256).bfloat16().cuda()
        (found,) = fd.run([x_given, w_given], _enable_options=["fuse_matmul"])
        wanted = torch.relu(x_given.double() @ w_given.double().t())
        torch.testing.assert_close(found.double(), wanted, rtol=2e-2, atol=0.5)
    assert any(made.dynamic for made in fd.explain_recompiles())


def test_a_captured_plan_of_a_variant() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        fd.add_output(fd.ops.mul(fd.ops.exp(x), 2.0))
    for size in (5, 6, 7, 8, 33):
        fd.run([torch.zeros(4, size, device="cuda")])
    inputs = [noise(4, 33).cuda()]
    out = [torch.empty(4, 33, device="cuda")]
    plan = fd.plan(inputs)
    torch.testing.assert_close(plan(inputs)[0], inputs[0].exp() * 2)
    plan(inputs, out=out)
    torch.testing.assert_close(out[0], inputs[0].exp() * 2)
    graph = plan.graph(inputs)
    graph()
    torch.testing.assert_close(graph.outputs[0], inputs[0].exp() * 2)
