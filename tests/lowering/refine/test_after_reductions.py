"""What later kernels need of the results of reductions is computed where these are."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import lowered, planned
from tritonfuser import DataType
from tritonfuser.devices import known
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.refine import search
from tritonfuser.lowering.refine.after_reductions import computed_of_reductions

H200 = known("sm_90")
CHANNEL = [True, False, True, True]
PIXELS = [0, 2, 3]


def of_channel(fd, value, like):
    spread = fd.ops.expand(fd.ops.broadcast(value, CHANNEL), [*like.shape()])
    return fd.ops.cast(spread, DataType.Float)


def batchnorm_bwd(fd, x, g, weight, mean, rstd):
    """The gradient of x, of which a number of pixels is 1 / 0.001."""
    wide = fd.ops.cast(x, DataType.Float), fd.ops.cast(g, DataType.Float)
    centered = fd.ops.sub(wide[0], of_channel(fd, mean, x))
    scaled = fd.ops.mul(wide[1], of_channel(fd, weight, x))
    mean_grad = fd.ops.mul(fd.ops.mul(fd.ops.sum(scaled, PIXELS), rstd), 0.001)
    var_grad = fd.ops.mul(fd.ops.sum(fd.ops.mul(centered, scaled), PIXELS), fd.ops.pow(rstd, 3.0))
    slope = fd.ops.mul(var_grad, 0.001)
    own = fd.ops.mul(scaled, of_channel(fd, rstd, x))
    rest = fd.ops.add(of_channel(fd, mean_grad, x), fd.ops.mul(of_channel(fd, slope, x), centered))
    return fd.ops.cast(fd.ops.sub(own, rest), x.dtype())


def arguments(n, channels, pixels, device="cpu"):
    """Images whose channels lie side by side, which no kernel holds on chip."""
    images = [noise(n, pixels, pixels, channels).permute(0, 3, 1, 2) for _ in range(2)]
    numbers = [noise(channels) for _ in range(3)]
    return [each.to(device) for each in (*images, *numbers)]


def expected(x, g, weight, mean, rstd):
    x, g = x.double(), g.double()
    weight, mean, rstd = (v.double().reshape(1, -1, 1, 1) for v in (weight, mean, rstd))
    mean_grad = (g * weight).sum(PIXELS, keepdim=True) * rstd * 0.001
    slope = ((x - mean) * g * weight).sum(PIXELS, keepdim=True) * rstd**3 * 0.001
    return g * weight * rstd - mean_grad - slope * (x - mean)


def last_ops(found: Lowered) -> list[str]:
    return [node.op for node in found.segmented.segments[-1].nodes]


def test_products_of_sums_are_computed_once_a_channel(monkeypatch) -> None:
    inputs = arguments(16, 128, 56, "meta")
    found = lowered(batchnorm_bwd, inputs)
    assert len(found.segmented.rewrites.invariants) == 2 and "pow" not in last_ops(found)
    monkeypatch.setattr(search, "computed_of_reductions", lambda segmented: ())
    before = lowered(batchnorm_bwd, inputs)
    assert "pow" in last_ops(before)
    assert len(found.segmented.segments) == len(before.segmented.segments)


def test_values_are_those_of_torch(monkeypatch) -> None:
    monkeypatch.setattr(search, "LEAST_S", 0.0)
    inputs = arguments(16, 64, 14)
    found = lowered(batchnorm_bwd, inputs)
    assert found.segmented.rewrites.invariants
    (made,) = planned(found, inputs).run(inputs)
    torch.testing.assert_close(made.double(), expected(*inputs), rtol=1e-4, atol=1e-4)


def softmax(fd, x):
    """One kernel."""
    top = fd.ops.broadcast(fd.ops.max(x, [1]), [False, True])
    parts = fd.ops.exp(fd.ops.sub(x, top))
    total = fd.ops.rsqrt(fd.ops.add(fd.ops.broadcast(fd.ops.sum(parts, [1]), [False, True]), 1.0))
    return fd.ops.mul(parts, total)


def plain_use(fd, x):
    """Two kernels, and the second uses the sums as they are."""
    total = fd.ops.broadcast(fd.ops.sum(x, [0, 1, 2]), [True, True, True])
    return fd.ops.mul(x, total)


def outer(fd, x, y):
    """More numbers than the reduction has."""
    total = fd.ops.broadcast(fd.ops.sum(x, [0, 1, 2]), [True, True, True])
    return fd.ops.add(x, fd.ops.exp(fd.ops.mul(y, total)))


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        (softmax, [(8192, 4096)]),
        (plain_use, [(64, 1024, 1024)]),
        (outer, [(64, 1024, 1024), (1, 1024, 1024)]),
    ],
)
def test_nothing_to_compute_there(body, sizes) -> None:
    inputs = [torch.empty(size, device="meta") for size in sizes]
    found = lowered(body, inputs)
    assert computed_of_reductions(found.segmented) == ()
    assert found.segmented.rewrites.invariants == ()
