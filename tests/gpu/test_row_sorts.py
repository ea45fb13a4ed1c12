"""``argsort`` and ``topk`` of short rows on a GPU have torch's order."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import FusionDefinition

pytestmark = pytest.mark.gpu
SHAPES = [((5000, 64), 1), ((300, 500), 1), ((7, 3), 0), ((4, 100, 33), 1), ((1, 512), 1)]


def drawn(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    x = (torch.randn(shape, device="cuda") * 4).round().to(dtype)
    if dtype.is_floating_point:
        nan = torch.tensor(float("nan"))
        for place, special in enumerate((-0.0, nan, -nan, float("inf"), -float("inf"))):
            x.view(-1)[place::13] = special
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("descending", [False, True])
def test_order(dtype: torch.dtype, shape: tuple[int, ...], dim: int, descending: bool) -> None:
    x = drawn(shape, dtype)
    k = min(8, shape[dim])
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.argsort(t, dim, descending, True))
        for found in fd.ops.topk(t, k, dim, descending, True):
            fd.add_output(found)
    order, values, places = fd.run([x])
    # On a GPU torch's order of a negative nan is another for some lengths: it comes first.
    expected = torch.argsort(x.cpu(), dim=dim, descending=descending, stable=True)
    assert torch.equal(order.cpu(), expected)
    expected, _ = torch.topk(x.double(), k, dim, descending, True)
    torch.testing.assert_close(values.double(), expected, rtol=0, atol=0, equal_nan=True)
    picked = torch.gather(x, dim, places)
    torch.testing.assert_close(picked, values, rtol=0, atol=0, equal_nan=True)
