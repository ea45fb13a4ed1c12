"""Loops over rows of which one pass takes several steps: Triton unrolls them on a device alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.lowering.harness import record

pytestmark = pytest.mark.gpu


def sums(fd: Any, x: Any) -> Any:
    return fd.ops.sum(fd.ops.exp(x), [1])


def columns(fd: Any, x: Any) -> Any:
    return fd.ops.sub(x, fd.ops.sum(fd.ops.mul(x, 0.01), [0]))


def softmax(fd: Any, x: Any) -> Any:
    powers = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
    return fd.ops.div(powers, fd.ops.sum(powers, [1], keepdim=True))


def norm(fd: Any, x: Any) -> Any:
    var, mean = fd.ops.var_mean(x, [1], correction=0, keepdim=True)
    return fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))


EXPECTED = {
    sums: lambda x: x.exp().sum(1),
    columns: lambda x: x - (0.01 * x).sum(0),
    softmax: lambda x: x.softmax(1),
    norm: lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
}


@pytest.mark.parametrize("body", EXPECTED, ids=lambda body: body.__name__)
@pytest.mark.parametrize("steps", [4, 7])
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("unroll", [2, 4])
def test_they_are_right(body: Any, steps: int, masked: bool, unroll: int) -> None:
    """Also where steps are left over, and where the last one has a mask."""
    row = 256 * steps - 3 * masked
    x = torch.randn((row, 4096) if body is columns else (96, row), device="cuda")
    fd = record(body, [x])
    data = copy.deepcopy(fd.schedule([x]).to_dict())
    rows = 32 if body is columns else 1
    for segment in data["segments"]:
        segment["params"].update(persistent=False, block_x=rows, block_r=256, tails=[], align=1)
        segment["params"].update(num_stages=1, num_warps=4, unroll=unroll)
    (found,) = fd.run([x], schedule=data)
    torch.testing.assert_close(found.double(), EXPECTED[body](x.double()), rtol=1e-5, atol=1e-5)
