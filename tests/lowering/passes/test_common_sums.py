"""Sums that differ by factors of their results are one sum, and what does not stays."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import lowered, planned, record, small
from tritonfuser import DataType
from tritonfuser.cache.keys.signature import signature
from tritonfuser.ir_graph import check
from tritonfuser.lowering.passes.arithmetic.common_sums import join_common_sums
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.simplify import simplify

CHANNEL = [True, False, True, True]
PIXELS = [0, 2, 3]


def ops(body, *inputs):
    ir = record(body, inputs).fusion.ir
    concrete = simplify(concretize(ir, signature(ir, inputs, torch.device("cpu"))))
    return Counter(node.op for node in check(join_common_sums(concrete)).nodes)


def of_channel(fd, value, like):
    spread = fd.ops.expand(fd.ops.broadcast(value, CHANNEL), [*like.shape()])
    return fd.ops.cast(spread, like.dtype())


def batchnorm_bwd(fd, x, g, weight, mean, rstd):
    """As a tracer writes it: four sums."""
    weights, stretch = of_channel(fd, weight, x), of_channel(fd, rstd, x)
    centered = fd.ops.sub(x, of_channel(fd, mean, x))
    weighted = fd.ops.mul(weights, g)
    one = fd.ops.sum(fd.ops.neg(fd.ops.mul(stretch, weighted)), PIXELS)
    two = fd.ops.sum(fd.ops.mul(centered, weighted), PIXELS)
    three = fd.ops.sum(fd.ops.mul(fd.ops.mul(centered, stretch), g), PIXELS)
    return one, two, three, fd.ops.sum(g, PIXELS)


def expected_sums(x, g, weight, mean, rstd):
    x, g = x.double(), g.double()
    weight, mean, rstd = (v.double().reshape(1, -1, 1, 1) for v in (weight, mean, rstd))
    parts = (-rstd * weight * g, (x - mean) * weight * g, (x - mean) * rstd * g, g)
    return [part.sum(PIXELS) for part in parts]


def arguments(n=6, channels=5, dtype=torch.float32):
    x, g = noise(n, channels, 7, 9).to(dtype), noise(n, channels, 7, 9).to(dtype) + 0.1
    return x, g, noise(channels).to(dtype), noise(channels).to(dtype), noise(channels).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("multiprocessors", [1, 4, 132])
def test_the_backward_of_a_batch_norm_has_two_sums(dtype, multiprocessors) -> None:
    inputs = arguments(dtype=dtype)
    assert ops(batchnorm_bwd, *inputs)["sum"] == 2
    device = small(multiprocessors)
    found = planned(lowered(batchnorm_bwd, inputs, device), inputs, device).run(inputs)
    tolerance = 1e-9 if dtype is torch.float64 else 1e-4
    for made, wanted in zip(found, expected_sums(*inputs), strict=True):
        torch.testing.assert_close(made.double(), wanted, rtol=tolerance, atol=tolerance)


def test_weights_of_16_bits_are_cast_behind_the_sum() -> None:
    x, g, weight, mean, rstd = arguments()
    assert ops(batchnorm_bwd, x, g, weight.bfloat16(), mean, rstd)["sum"] == 2


def negative(fd, x):
    return fd.ops.sum(fd.ops.neg(x), [0]), fd.ops.sum(x, [0])


def chosen_factor(fd, x, w):
    """A factor that is computed of what is spread over the rows."""
    spread = fd.ops.expand(fd.ops.broadcast(w, [True, False]), [*x.shape()])
    steep = fd.ops.rsqrt(fd.ops.add(fd.ops.abs(spread), 1.0))
    return fd.ops.sum(fd.ops.mul(x, steep), [0]), fd.ops.sum(fd.ops.mul(steep, fd.ops.neg(x)), [0])


def squares(fd, x, w):
    spread = fd.ops.broadcast(w, [True, False])
    square = fd.ops.mul(x, x)
    return fd.ops.sum(fd.ops.mul(square, spread), [0]), fd.ops.sum(square, [0])


def shared_factors(fd, x, w):
    """A factor deeper than Python calls, of 2 ** 400 paths."""
    factor = fd.ops.broadcast(w, [True, False])
    for _ in range(400):
        factor = fd.ops.sub(fd.ops.mul(factor, 0.5), fd.ops.mul(factor, -0.5))
    return fd.ops.sum(fd.ops.mul(factor, x), [0]), fd.ops.sum(x, [0])


@pytest.mark.parametrize(
    ("body", "inputs", "expected"),
    [
        (negative, (), lambda x: (-x.sum(0), x.sum(0))),
        (
            chosen_factor,
            (noise(11),),
            lambda x, w: ((x * (w.abs() + 1).rsqrt()).sum(0), (-x * (w.abs() + 1).rsqrt()).sum(0)),
        ),
        (squares, (noise(11),), lambda x, w: ((x * x * w).sum(0), (x * x).sum(0))),
        (shared_factors, (noise(11),), lambda x, w: ((x * w).sum(0), x.sum(0))),
    ],
)
def test_one_sum_and_its_values(body, inputs, expected) -> None:
    inputs = (noise(70, 11), *inputs)
    assert ops(body, *inputs)["sum"] == 1
    fd = record(body, inputs)
    wide = [v.double() if isinstance(v, torch.Tensor) else v for v in inputs]
    for found, wanted in zip(fd.run(list(inputs)), expected(*wide), strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)


def test_factors_are_multiplied_as_they_were() -> None:
    """Both of them would take the sum out of range."""

    def body(fd, x, a, b):
        factor = fd.ops.broadcast(fd.ops.mul(a, b), [True, False])
        return fd.ops.sum(fd.ops.mul(x, factor), [0]), fd.ops.sum(x, [0])

    inputs = torch.full((8, 3), 1e20), torch.full((3,), 1e30), torch.full((3,), 1e-30)
    assert ops(body, *inputs)["sum"] == 1
    for found in record(body, inputs).run(list(inputs)):
        torch.testing.assert_close(found, torch.full((3,), 8e20))


def row_of(fd, w):
    return fd.ops.broadcast(w, [True, False])


def alone(fd, x, w):
    return fd.ops.sum(fd.ops.mul(x, fd.ops.broadcast(w, [True, False])), [0])


def numbers(fd, x, w):
    """They may keep a sum in range."""
    return fd.ops.sum(fd.ops.mul(x, 1 / 4096), [0]), fd.ops.sum(fd.ops.neg(x), [0])


def tensors_without_dims(fd, x, w):
    scaled = fd.ops.mul(x, fd.ops.sum(w, [0]))
    return fd.ops.sum(scaled, [0]), fd.ops.sum(x, [0])


def three_terms(fd, x, w):
    """Which of them are multiplied first decides whether they stay in range."""
    product = fd.ops.mul(fd.ops.mul(x, fd.ops.exp(x)), fd.ops.sin(x))
    return fd.ops.sum(fd.ops.mul(product, row_of(fd, w)), [0]), fd.ops.sum(product, [0])


def powers(fd, x, w):
    """2 ** 40 factors."""
    for _ in range(40):
        x = fd.ops.mul(x, x)
    return fd.ops.sum(x, [0]), fd.ops.sum(fd.ops.mul(x, row_of(fd, w)), [0])


def long_chains(fd, x, w):
    """Deeper than Python calls."""
    factor = row_of(fd, w)
    for _ in range(600):
        x, factor = fd.ops.sin(fd.ops.add(x, 1.0)), fd.ops.neg(fd.ops.cos(factor))
    return fd.ops.sum(fd.ops.mul(factor, x), [0]), fd.ops.sum(factor, [0])


def factors_that_vary(fd, x, w):
    scaled = fd.ops.mul(x, fd.ops.broadcast(w, [True, False]))
    return fd.ops.sum(scaled, [1]), fd.ops.sum(x, [1])


def of_places(fd, x, w):
    """A factor of fewer dims: 1 and 0 along the rows."""
    upper = fd.ops.triu(fd.ops.expand(fd.ops.broadcast(w, [True, False]), [*x.shape()]), 0)
    return fd.ops.sum(fd.ops.mul(x, upper), [1]), fd.ops.sum(upper, [1])


def other_dims(fd, x, w):
    scaled = fd.ops.mul(x, fd.ops.broadcast(w, [True, False]))
    return fd.ops.sum(scaled, [0]), fd.ops.sum(x, [0, 1])


def other_dtypes(fd, x, w):
    wide = fd.ops.cast(fd.ops.broadcast(w, [True, False]), DataType.Double)
    return fd.ops.sum(fd.ops.mul(fd.ops.cast(x, DataType.Double), wide), [0]), fd.ops.sum(x, [0])


def rounded_between(fd, x, w):
    scaled = fd.ops.mul(fd.ops.cast(x, DataType.BFloat16), 3.0)
    return fd.ops.sum(fd.ops.cast(scaled, DataType.Float), [0]), fd.ops.sum(x, [0])


def of_one_row(fd, x, w):
    """Terms that have not the rows of the sum."""
    row = fd.ops.broadcast(w, [True, False])
    spread = fd.ops.expand(row, [*x.shape()])
    ones = fd.ops.full([1, 1], 2.0, DataType.Float)
    return fd.ops.sum(fd.ops.mul(spread, ones), [0]), fd.ops.sum(spread, [0])


def maxima(fd, x, w):
    scaled = fd.ops.mul(x, fd.ops.broadcast(w, [True, False]))
    return fd.ops.max(scaled, [0]), fd.ops.max(x, [0])


ALONE = [
    alone,
    numbers,
    tensors_without_dims,
    three_terms,
    powers,
    long_chains,
    factors_that_vary,
    of_places,
    other_dims,
    other_dtypes,
    rounded_between,
    of_one_row,
    maxima,
]


@pytest.mark.parametrize("body", ALONE)
def test_what_is_no_product_with_a_partner_stays(body) -> None:
    inputs = noise(7, 11), noise(11)
    ir = record(body, inputs).fusion.ir
    concrete = simplify(concretize(ir, signature(ir, inputs, torch.device("cpu"))))
    assert join_common_sums(concrete) is concrete


def test_integers_stay() -> None:
    found = ops(
        lambda fd, x: (fd.ops.sum(fd.ops.mul(x, 3), [0]), fd.ops.sum(x, [0])), noise(4).int()
    )
    assert found["sum"] == 2


def test_sums_of_nothing_are_zero() -> None:
    inputs = torch.empty(0, 3), torch.tensor([math.inf, math.nan, 1.0])
    body = squares
    found = record(body, inputs).run(list(inputs))
    assert [each.tolist() for each in found] == [[0.0] * 3] * 2


def test_terms_that_are_not_finite() -> None:
    x, w = noise(70, 11), noise(11)
    x[3, 0], x[4, 1], x[5, 2] = math.inf, -math.inf, math.nan
    x[6, 3], x[7, 3] = math.inf, -math.inf
    w[4] = 0.0
    found = record(squares, (x, w)).run([x, w])
    for made, wanted in zip(found, ((x * x * w).sum(0), (x * x).sum(0)), strict=True):
        torch.testing.assert_close(made, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("weight", [math.inf, -math.inf, math.nan])
def test_a_factor_that_is_not_finite_gives_nan(weight: float) -> None:
    """As terms of both signs do, and zeros: it must not look like a number that is too large."""

    def body(fd, x, w):
        return fd.ops.sum(fd.ops.mul(x, row_of(fd, w)), [0]), fd.ops.sum(x, [0])

    x, w = noise(70, 3), torch.tensor([1.0, weight, 0.0])
    x[0] = 0.0
    assert ops(body, x, w)["sum"] == 1
    for made, wanted in zip(
        record(body, (x, w)).run([x, w]), ((x * w).sum(0), x.sum(0)), strict=True
    ):
        torch.testing.assert_close(made, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)
