"""``pow`` in float32 has the bits of torch's, however large the results are."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import FusionDefinition

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        torch.version.cuda is None or int(torch.version.cuda.split(".")[0]) < 13,
        reason="torch's own powf is another one before CUDA 13",
    ),
]
COUNT = 1 << 20
SPECIAL = [0.0, 1.0, 2.0, 0.5, 3.0, 1e-40, 1e-45, 3e38, 1.5, 2.5, 127.0, 149.0, 16777217.0]
SPECIAL += [-x for x in SPECIAL] + [float("inf"), -float("inf"), float("nan")]


def power(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
    with FusionDefinition() as fd:
        base = fd.from_pytorch(x)
        exponent = fd.from_pytorch(y) if isinstance(y, torch.Tensor) else y
        fd.add_output(fd.ops.pow(base, exponent))
    return fd.run([x, y] if isinstance(y, torch.Tensor) else [x])[0]


def same_bits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    differs = (actual.view(torch.int32) != expected.view(torch.int32)) & ~expected.isnan()
    assert not differs.any()
    assert torch.equal(actual.isnan(), expected.isnan())


def bits(seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(2**31), 2**31 - 1, (COUNT,), generator=generator)


@pytest.mark.parametrize("seed", range(3))
def test_of_any_numbers(seed: int) -> None:
    x = bits(seed).to(torch.int32).view(torch.float32).cuda()
    y = torch.randn(COUNT, generator=torch.Generator().manual_seed(seed)).cuda() * 2
    same_bits(power(x, y), torch.pow(x, y))
    near = 1 + torch.randn(COUNT, generator=torch.Generator().manual_seed(seed)).cuda() * 1e-3
    same_bits(power(near, y * 5000), torch.pow(near, y * 5000))


def test_of_special_values() -> None:
    values = torch.tensor(SPECIAL, device="cuda")
    x, y = torch.meshgrid(values, values, indexing="ij")
    x, y = x.reshape(-1).contiguous(), y.reshape(-1).contiguous()
    same_bits(power(x, y), torch.pow(x, y))


@pytest.mark.parametrize("exponent", [0.5, -0.5, -1.0, -2.0, 2.0, 3.0, 2.5, 7.0, -3.0])
def test_of_an_exponent_that_is_a_number(exponent: float) -> None:
    x = torch.rand(COUNT, generator=torch.Generator().manual_seed(5)).cuda() * 1000
    same_bits(power(x, exponent), torch.pow(x, exponent))
