"""``index_put_accumulate`` on a GPU: sums of rows, the same bits in every run."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import FusionDefinition

pytestmark = pytest.mark.gpu


def definition(rows: int, value: torch.Tensor, index: torch.Tensor) -> FusionDefinition:
    with FusionDefinition() as fd:
        x, i = fd.from_pytorch(value), fd.from_pytorch(index)
        zeros = fd.ops.full([rows, *value.shape[1:]], 0.0, x.dtype())
        fd.add_output(fd.ops.index_put_accumulate(zeros, i, x))
    return fd


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize(
    ("rows", "count", "width", "skew"),
    [
        (5, 3, 1, 1),
        (100, 1000, 64, 1),
        (32000, 8192, 1024, 4),
        (100_000, 1 << 18, 60, 6),
        (3, 1 << 18, 130, 2),
        (70_000, 20_000, 33, 9),
    ],
)
def test_sums(dtype: torch.dtype, rows: int, count: int, width: int, skew: int) -> None:
    index = (torch.rand(count, device="cuda") ** skew * rows).long().clamp(max=rows - 1)
    value = torch.randn(count, width, device="cuda")
    value = value.to(dtype) if dtype.is_floating_point else (9 * value).to(dtype)
    fd = definition(rows, value, index)
    (found,) = fd.run([value, index])
    zeros = torch.zeros(rows, width, device="cuda", dtype=torch.float64)
    exact = zeros.index_add(0, index, value.double())
    magnitude = zeros.index_add(0, index, value.double().abs())
    least = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
    error = (found.double() - exact).abs()
    assert (error <= least * exact.abs() + 1e-6 * magnitude).all()
    for _ in range(3):
        assert torch.equal(fd.run([value, index])[0], found)


def test_an_index_that_is_no_row_adds_nothing() -> None:
    index = torch.tensor([0, -1, 4, 3, 1 << 40], device="cuda")
    value = torch.ones(5, 2, device="cuda")
    (found,) = definition(4, value, index).run([value, index])
    assert found.tolist() == [[1, 1], [0, 0], [0, 0], [1, 1]]


def test_in_a_captured_graph() -> None:
    index = torch.randint(50, (4000,), device="cuda")
    value = torch.randn(4000, 8, device="cuda")
    fd = definition(50, value, index)
    fd.run([value, index])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (found,) = fd.run([value, index])
    value.mul_(2)
    graph.replay()
    assert torch.equal(found, fd.run([value, index])[0])
