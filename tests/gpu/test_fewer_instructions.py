"""What kernels compute once in place of many times, on a GPU: numbers of random inputs."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.emit.test_repeated_loads import messages, turned_rows
from tests.lowering.passes.test_common_sums import batchnorm_bwd, expected_sums
from tests.lowering.passes.test_guarded_maxima import BODIES, of_infinity
from tests.lowering.refine.test_computed_again import gated
from tritonfuser import FusionDefinition

pytestmark = pytest.mark.gpu


def ran(body, *inputs):
    with FusionDefinition() as fd:
        made = body(fd, *(fd.from_pytorch(each) for each in inputs))
        for result in made if isinstance(made, tuple) else (made,):
            fd.add_output(result)
    return fd.run(list(inputs))


@pytest.mark.parametrize(("edges", "width"), [(1 << 16, 256), (70001, 64), (5003, 24), (999, 7)])
def test_messages(edges, width):
    x, scale = torch.randn(500, width, device="cuda").bfloat16(), torch.randn(500, device="cuda")
    source = torch.randint(-500, 500, (edges,), device="cuda")
    target = torch.randint(500, (edges,), device="cuda")
    (found,) = messages(500, edges, width).run([x, scale, source, target])
    expected = x.double()[source] * (scale.double()[source] * scale.double()[target])[:, None]
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


def test_quotients_of_a_shared_index():
    table, index = torch.randn(10, 12, device="cuda"), torch.randint(120, (1 << 18,), device="cuda")
    x = torch.randn(1 << 18, 64, device="cuda")
    (found,) = turned_rows(1 << 18, 64).run([table, index, x])
    expected = (x.double() * table.double().t().reshape(120)[index][:, None]).sum()
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1.0)


@pytest.mark.parametrize("size", [(32, 96, 31), (64, 128, 28)])
def test_sums_of_a_batch_norm(size):
    n, channels, side = size
    images = [torch.randn(n, channels, side, side, device="cuda") for _ in range(2)]
    numbers = [torch.rand(channels, device="cuda") + 0.5 for _ in range(3)]
    for layout in (torch.contiguous_format, torch.channels_last):
        inputs = [*(each.contiguous(memory_format=layout) for each in images), *numbers]
        for made, wanted in zip(ran(batchnorm_bwd, *inputs), expected_sums(*inputs), strict=True):
            torch.testing.assert_close(made.double(), wanted, rtol=1e-4, atol=0.05)


@pytest.mark.parametrize("columns", [1000, 50257])
@pytest.mark.parametrize("body", BODIES)
def test_logsumexp(body, columns):
    x = torch.randn(512, columns, device="cuda") * 9
    x[1], x[2, 1], x[3, 2], x[4, ::2] = -torch.inf, torch.inf, torch.nan, -torch.inf
    (found,) = ran(lambda fd, x: body(fd, x, of_infinity), x)
    expected = torch.logsumexp(x.double(), 1)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_a_gated_sum():
    x, y = (torch.randn(8, 256, 16000, device="cuda").bfloat16() for _ in range(2))
    total, product = ran(gated, x, y)
    expected = (x.float() + y.float()).bfloat16()
    assert torch.equal(total, expected)
    first, second = expected.double().chunk(2, 1)
    torch.testing.assert_close(
        product.double(), first.tanh() * second.sigmoid(), rtol=1e-2, atol=1e-2
    )
