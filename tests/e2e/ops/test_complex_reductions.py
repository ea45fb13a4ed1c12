"""Reductions and scans of complex numbers, against torch in complex128."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.e2e.ops.complex_numbers import (
    DOUBLE,
    SINGLE,
    D,
    assert_near,
    numbers,
    run,
)


@pytest.mark.parametrize("dims", [[0], [1], [0, 2], [0, 1, 2]])
def test_reductions(dims: list[int], device: str) -> None:
    x = numbers(3, 4, 5, device=device)

    def record(fd: Any, x: Any) -> list[Any]:
        o = fd.ops
        var, mean = o.var_mean(x, dims)
        avg, squares, count = o.welford(x, dims)
        made = [o.sum(x, dims), o.prod(x, dims), o.sum(x, dims, keepdim=True), var, mean]
        return [*made, o.var(x, dims, correction=0), avg, squares, count]

    found = run(record, [x])
    var, mean = torch.var_mean(x, dims)
    n = math.prod(x.shape[d] for d in dims)
    flat = x.movedim(dims, list(range(-len(dims), 0))).flatten(-len(dims))
    wanted = [
        x.sum(dims),
        flat.prod(-1),
        x.sum(dims, keepdim=True),
        var,
        mean,
        x.var(dims, correction=0),
        mean,
        var * (n - 1),
        torch.full(mean.shape, n),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is other.dtype
        assert_near(one, other, 10)


def test_prod_of_zeros_and_of_none() -> None:
    x = numbers(3, 4)
    x[1, 2] = 0
    empty = torch.zeros(2, 0, dtype=SINGLE)
    found = run(lambda fd, x, e: [fd.ops.prod(x, [1]), fd.ops.prod(e, [1])], [x, empty])
    assert_near(found[0], x.prod(1))
    assert found[0][1] == 0
    assert torch.equal(found[1], torch.ones(2, dtype=SINGLE))


def test_a_sum_in_another_dtype() -> None:
    x = numbers(8, dtype=SINGLE)
    found = run(
        lambda fd, x: [
            fd.ops.sum(x, [0], dtype=D.ComplexDouble),
            fd.ops.sum(x, [0], dtype=D.Float),
        ],
        [x],
    )
    assert (found[0].dtype, found[1].dtype) == (DOUBLE, torch.float32)
    assert_near(found[0], x.to(DOUBLE).sum(0))
    assert_near(found[1], x.real.sum(0))


def test_a_sum_over_stretched_dims() -> None:
    """Known elements are not added up again: multiplied, and raised to a power."""
    x = numbers(1, 4)
    found = run(
        lambda fd, x: [
            fd.ops.sum(fd.ops.expand(x, [3, 4]), [0]),
            fd.ops.prod(fd.ops.expand(x, [3, 4]), [0]),
        ],
        [x],
    )
    assert_near(found[0], x[0] * 3)
    assert_near(found[1], x[0] ** 3)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
def test_scans(dtype: torch.dtype, device: str) -> None:
    x = numbers(3, 6, dtype=dtype, device=device)
    x[0, 3] = 0
    x[1, 2:] = -1

    def record(fd: Any, x: Any) -> list[Any]:
        o = fd.ops
        sums = [o.cumsum(x, 1), o.cumsum(x, 0, 1j)]
        return [*sums, o.cumprod(x, 1), o.cumprod(x, -2, 2 - 1j), o.cumprod(o.mul(x, 1j), 1)]

    found = run(record, [x])
    wide = x.to(DOUBLE)
    wanted = [
        wide.cumsum(1),
        wide.cumsum(0) + 1j,
        wide.cumprod(1),
        wide.cumprod(0) * (2 - 1j),
        (wide * 1j).cumprod(1),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is dtype
        assert_near(one, other, 10)
    assert not found[2][0, 3:].any()


def test_reductions_that_keep_their_dims(device: str) -> None:
    x = numbers(3, 4, 5, device=device)

    def record(fd: Any, x: Any) -> list[Any]:
        o = fd.ops
        made = [o.prod(x, [0, 2], keepdim=True), o.prod(x, 1, True), o.sum(x, keepdim=True)]
        return [*made, *o.var_mean(x, [1], keepdim=True), o.var(x, [2], 1, True), o.prod(x)]

    found = run(record, [x])
    var, mean = torch.var_mean(x, 1, keepdim=True)
    wanted = [
        x.prod(0, keepdim=True).prod(2, keepdim=True),
        x.prod(1, keepdim=True),
        x.sum((0, 1, 2), keepdim=True),
        var,
        mean,
        x.var(2, keepdim=True),
        x.prod(),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is other.dtype
        assert_near(one, other, 100)


def test_a_normalization(device: str) -> None:
    """Reductions and what reads them, in one definition, over rows."""

    def record(fd: Any, x: Any, w: Any) -> Any:
        var, mean = fd.ops.var_mean(x, [1], correction=0, keepdim=True)
        scale = fd.ops.rsqrt(fd.ops.add(var, 1e-5))
        return fd.ops.mul(fd.ops.mul(fd.ops.sub(x, mean), scale), w)

    x, w = numbers(6, 40, dtype=SINGLE, device=device), numbers(40, dtype=SINGLE, device=device)
    (found,) = run(record, [x, w])
    wide = x.to(DOUBLE)
    var, mean = torch.var_mean(wide, 1, correction=0, keepdim=True)
    assert_near(found, (wide - mean) * (var + 1e-5).rsqrt() * w)
