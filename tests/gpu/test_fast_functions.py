"""Functions made of the GPU's own exp2 and 1 / x, over all their range, against float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.gpu.test_pointwise import run
from tests.ops.pointwise_harness import kernel
from tritonfuser import DataType, FusionDefinition
from tritonfuser.ops.creation import philox

pytestmark = pytest.mark.gpu
D = DataType
ULP = 2.0**-24
COUNT = 1 << 14


def numbers(low: float, high: float) -> torch.Tensor:
    """Of all sizes, of both signs."""
    size = torch.exp2(torch.linspace(low, high, COUNT // 2))
    return torch.cat([size, -size])


def worst(text: str, x: torch.Tensor, exact: Callable[..., torch.Tensor], slope: float) -> float:
    """The relative error in ulp, less ``slope`` for each 1 that x is away from 0."""
    found = run(kernel([f"r0 = {text}"], [D.Float], [D.Float], COUNT), [x.cuda()]).cpu().double()
    expected = exact(x.double())
    normal = expected.abs() > 2.0**-125
    assert not ((found - expected)[~normal].abs() > 3e-38).any()
    error = ((found - expected) / expected).abs() / ULP - slope * x.abs()
    return float(error[normal].max())


@pytest.mark.parametrize(
    ("text", "exact", "high", "slope"),
    [
        ("tanh(x0)", torch.tanh, 6.5, 0.0),
        ("sigmoid(x0)", torch.sigmoid, 6.4, 0.0),
        ("one_plus_tanh(x0)", lambda x: 2 / (1 + torch.exp(-2 * x)), 5.4, 2.5),
        ("one_plus_erf(x0)", lambda x: torch.erfc(-x), 3.2, 20.0),
        ("coarse_sigmoid(x0)", torch.sigmoid, 6.4, 1.25),
        ("coarse_exp(x0)", torch.exp, 6.4, 1.25),
        ("exp_nonpositive(tl.abs(x0) * -1.0)", lambda x: torch.exp(-x.abs()), 6.4, 1.25),
    ],
)
def test_relative_error(
    text: str, exact: Callable[..., torch.Tensor], high: float, slope: float
) -> None:
    """Five ulp, and where a product is rounded before exp2 about one more for each 1 in x.

    ``one_plus_erf`` is a coarse fit, off by 40 ulp before its product is rounded.
    """
    assert worst(text, numbers(-30, high), exact, slope) < (45 if "erf" in text else 5)


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("tanh(x0)", torch.tanh),
        ("sigmoid(x0)", torch.sigmoid),
        ("coarse_sigmoid(x0)", torch.sigmoid),
        ("one_plus_erf(x0)", lambda x: 1 + torch.erf(x)),
        ("one_plus_tanh(x0)", lambda x: 1 + torch.tanh(x)),
        ("coarse_exp(x0)", torch.exp),
    ],
)
def test_special_numbers(text: str, exact: Callable[..., torch.Tensor]) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([0.0, -0.0, inf, -inf, nan, 1e4, -1e4, 3e38, -3e38, 1e-40, -1e-40] + [0.0] * 5)
    found = run(kernel([f"r0 = {text}"], [D.Float], [D.Float], 16), [x.cuda()]).cpu()
    torch.testing.assert_close(found, exact(x), rtol=3e-6, atol=1e-38, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gelu_is_that_of_float64(dtype: torch.dtype) -> None:
    """Not more than half an ulp of the result's dtype, and a little, off; its gradient alike."""
    x = (torch.arange(-8192, 8192) / 1024).to(dtype).cuda()
    with FusionDefinition() as fd:
        t = fd.ops.cast(fd.from_pytorch(x), D.Float)
        cube = fd.ops.mul(fd.ops.mul(t, t), t)
        inner = fd.ops.mul(0.7978845608028654, fd.ops.add(t, fd.ops.mul(0.044715, cube)))
        half = fd.ops.mul(0.5, t)
        out = fd.ops.mul(half, fd.ops.add(1.0, fd.ops.tanh(inner)))
        kind = D.BFloat16 if dtype is torch.bfloat16 else D.Half
        fd.add_output(fd.ops.cast(out, dtype=kind))
    (found,) = fd.run([x])
    wide = x.double()
    inner = 0.7978845608028654 * (wide + 0.044715 * wide**3)
    expected = wide / (1 + torch.exp(-2 * inner))
    step = torch.finfo(dtype).eps
    least = torch.finfo(dtype).tiny
    limit = 0.51 * step * expected.abs().clamp(min=least)
    assert ((found.double() - expected).abs() <= limit).all()


# --- random numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1000, 1001, 1002, 8193, 20480])
def test_masks_and_numbers_are_the_reference(width: int) -> None:
    """Rows that begin anywhere among the counters; drawn as numbers, and as masks alone."""
    shape = [64, width]
    x = torch.ones(shape, device="cuda")
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        unit = fd.ops.uniform(0.0, 1.0, shape, rng_seed=2**40 + 3, rng_offset=2**33 + 7)
        fd.add_output(fd.ops.add(unit, 0.0))
        again = fd.ops.uniform(0.0, 1.0, shape, rng_seed=5, rng_offset=7)
        mask = fd.ops.cast(fd.ops.lt(again, 0.9), D.Float)
        kept = fd.ops.mul(t, mask)
        fd.add_output(kept)
        fd.add_output(fd.ops.sub(kept, fd.ops.max(kept, [1], keepdim=True)))
    drawn, kept, below = fd.run([x])
    expected = philox.uniform(shape, 2**40 + 3, 2**33 + 7, device="cuda")
    assert torch.equal(drawn, expected)
    mask = (philox.uniform(shape, 5, 7, device="cuda") < 0.9).float()
    assert torch.equal(kept, mask)
    assert torch.equal(below, mask - mask.amax(1, keepdim=True))


# --- lanes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", [8, 24, 49, 64, 12544])
def test_channels_of_images(inner: int) -> None:
    """A weight that many neighbours share, in a flat kernel and in one of rows."""
    x = torch.randn(8, 6, inner, device="cuda")
    weight = torch.randn(6, device="cuda")
    with FusionDefinition() as fd:
        t, w = fd.from_pytorch(x), fd.from_pytorch(weight)
        scaled = fd.ops.mul(t, fd.ops.broadcast_in_dim(w, [8, 6, inner], [1]))
        fd.add_output(scaled)
        total = fd.ops.sum(scaled, [1, 2], keepdim=True)
        fd.add_output(fd.ops.sub(scaled, total))
    scaled, centred = fd.run([x, weight])
    expected = x * weight[:, None]
    torch.testing.assert_close(scaled, expected)
    torch.testing.assert_close(
        centred, expected - expected.sum((1, 2), keepdim=True), rtol=1e-5, atol=1e-3
    )
