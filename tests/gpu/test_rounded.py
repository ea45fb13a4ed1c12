"""Reciprocals, square roots and products of 16 bits have the bits of torch's, to nearest."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import DataType, FusionDefinition

pytestmark = pytest.mark.gpu
COUNT = 1 << 28
"""Of a part of all numbers, of which there are 16."""

LEAST = 2.0**-126
"""Reciprocals below may be the neighbour of the nearest number."""


def run(op: str, x: torch.Tensor) -> torch.Tensor:
    with FusionDefinition() as fd:
        fd.add_output(getattr(fd.ops, op)(fd.from_pytorch(x)))
    return fd.run([x])[0]


@pytest.mark.parametrize("op", ["reciprocal", "sqrt"])
def test_of_all_numbers(op: str) -> None:
    for part in range(16):
        bits = torch.arange(part * COUNT, (part + 1) * COUNT, device="cuda")
        x = bits.to(torch.int32).view(torch.float32)
        actual, expected = run(op, x), getattr(torch, op)(x)
        assert torch.equal(actual.isnan(), expected.isnan())
        apart = (actual.view(torch.int32) - expected.view(torch.int32)).abs()
        apart = torch.where(expected.isnan(), 0, apart)
        assert not apart[expected.abs() >= LEAST].any()
        assert int(apart.max()) <= (1 if op == "reciprocal" else 0)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_products_are_rounded_before_a_sum(kind: torch.dtype) -> None:
    halves = {torch.bfloat16: DataType.BFloat16, torch.float16: DataType.Half}
    a, b, c = (torch.randn(1 << 22, device="cuda").to(kind) for _ in range(3))
    with FusionDefinition() as fd:
        x, y, z = (fd.ops.cast(fd.from_pytorch(t), dtype=DataType.Float) for t in (a, b, c))
        product = fd.ops.cast(fd.ops.mul(x, y), dtype=halves[kind])
        total = fd.ops.add(fd.ops.cast(product, dtype=DataType.Float), z)
        fd.add_output(fd.ops.cast(total, dtype=halves[kind]))
    assert torch.equal(fd.validate([a, b, c])[0], a * b + c)
