"""Reciprocals and square roots have the bits of torch's, which are rounded to nearest."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import FusionDefinition

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
