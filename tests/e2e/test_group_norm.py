"""Backward of group norm as autograd has it: gradients of the image, the weights and the biases."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

SHAPES = [(8, 12, 9, 11), (4, 32, 7, 7), (6, 20, 1, 3), (2, 24, 40, 50), (3, 4, 5, 6)]
GROUPS = 4


def spread(fd: Any, value: Any, kept: list[int], shape: list[int]) -> Any:
    mask = [d not in kept for d in range(len(shape))]
    return fd.ops.expand(fd.ops.broadcast(value, mask), shape)


def backward(shape: tuple[int, ...], dtype: DataType) -> FusionDefinition:
    """Of given statistics; the image is taken as [n, g, c, h, w] and as [n, g * c, h, w]."""
    n, channels, *pixels = shape
    rows = [n, GROUPS, channels // GROUPS, *pixels]
    count = channels // GROUPS * pixels[0] * pixels[1]
    with FusionDefinition() as fd:
        given = [fd.define_tensor(shape=list(shape), contiguity=True, dtype=dtype) for _ in "xg"]
        x, grad = (fd.ops.cast(v, DataType.Float) for v in given)
        weight = fd.define_tensor(shape=[channels], contiguity=True)
        mean, rstd = (fd.define_tensor(shape=[n, GROUPS], contiguity=True) for _ in "mr")
        across = spread(fd, rstd, [0, 1], rows)
        normal = fd.ops.mul(
            fd.ops.sub(fd.ops.reshape(x, rows), spread(fd, mean, [0, 1], rows)), across
        )
        scaled = fd.ops.reshape(fd.ops.mul(grad, spread(fd, weight, [1], list(shape))), rows)

        def along(value: Any) -> Any:
            total = fd.ops.mul(fd.ops.sum(value, [2, 3, 4]), 1.0 / count)
            return spread(fd, total, [0, 1], rows)

        inner = fd.ops.sub(scaled, along(scaled))
        inner = fd.ops.sub(inner, fd.ops.mul(normal, along(fd.ops.mul(scaled, normal))))
        dx = fd.ops.reshape(fd.ops.mul(inner, across), list(shape))
        fd.add_output(fd.ops.cast(dx, dtype))
        fd.add_output(fd.ops.sum(fd.ops.mul(grad, fd.ops.reshape(normal, list(shape))), [0, 2, 3]))
        fd.add_output(fd.ops.sum(grad, [0, 2, 3]))
    return fd


def drawn(shape: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(sum(shape))
    x, grad = (torch.randn(shape, generator=source).to(dtype) for _ in "xg")
    weight = torch.randn(shape[1], generator=source)
    var, mean = torch.var_mean(x.double().reshape(shape[0], GROUPS, -1), 2, correction=0)
    return [x, grad, weight, mean.float(), torch.rsqrt(var + 1e-5).float()]


def expected(x: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
    leaves = [x.double(), weight.double(), torch.zeros_like(weight).double()]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    out = F.group_norm(leaves[0], GROUPS, leaves[1], leaves[2], 1e-5)
    return list(torch.autograd.grad(out, leaves, grad.double()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_backward(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> None:
    inputs = drawn(shape, dtype)
    wide = DataType.Float if dtype is torch.float32 else DataType.BFloat16
    fd = backward(shape, wide)
    found = fd.run([x.to(device) for x in inputs])
    for result, wanted in zip(found, expected(*inputs[:3]), strict=True):
        near = 1e-2 if result.dtype is torch.bfloat16 else 2e-4
        torch.testing.assert_close(result.cpu().double(), wanted, atol=near, rtol=near)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number(value: float, device: str) -> None:
    """It reaches its group of the image, and its channel of the sums."""
    inputs = drawn((4, 12, 5, 6), torch.float32)
    inputs[1][1, 7, 2, 3] = value
    dx, dw, db = backward((4, 12, 5, 6), DataType.Float).run([x.to(device) for x in inputs])
    spoilt = torch.zeros(4, 12, dtype=torch.bool)
    spoilt[1, 6:9] = True
    assert torch.equal(~dx.isfinite().all(3).all(2).cpu(), spoilt)
    for found in (dw, db):
        assert (~found.isfinite()).nonzero().tolist() == [[7]]
