"""Concatenated functions of slices of reduced rows are chosen by the index; others stay."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, check, lowered, ops
from tritonfuser import DataType

Body = Callable[..., Any]


def sliced(fd: Any, x: Any, sizes: tuple[int, ...], dim: int, start: int, stop: int) -> Any:
    low, high = [0] * len(sizes), list(sizes)
    low[dim], high[dim] = start, stop
    return fd.ops.slice(x, low, high)


def rotated(fd: Any, x: Any, sizes: tuple[int, ...], dtype: DataType = DataType.Float) -> Any:
    """The halves of the last dim in the other order, the second one negated."""
    dim, half = len(sizes) - 1, sizes[-1] // 2
    first = sliced(fd, x, sizes, dim, 0, half)
    second = sliced(fd, x, sizes, dim, half, sizes[-1])
    negated = fd.ops.cast(fd.ops.neg(second), dtype)
    return fd.ops.cat([negated, first], dim)


def normed(fd: Any, x: Any, dims: list[int]) -> Any:
    squares = fd.ops.sum(fd.ops.mul(x, x), dims, keepdim=True)
    return fd.ops.mul(x, fd.ops.rsqrt(fd.ops.add(squares, 1e-6)))


def embedded(fd: Any, x: Any, cosines: Any, sines: Any) -> Any:
    """A rotary embedding of normed rows of 64."""
    found = normed(fd, x, [1])
    return fd.ops.add(fd.ops.mul(found, cosines), fd.ops.mul(rotated(fd, found, (40, 64)), sines))


def inputs() -> list[torch.Tensor]:
    return [noise(40, 64), noise(40, 64, seed=1), noise(40, 64, seed=2)]


def test_a_norm_and_the_embedding_of_its_rows_are_one_kernel() -> None:
    found = check(embedded, *inputs(), block_x=2, block_r=64)
    assert "cat" not in ops(found) and "cat_slices" in ops(found)
    (source,) = lowered(embedded, inputs(), H200).sources
    assert source.text.count("tl.load(") == 4  # a row, its halves in the other order, two tables


def test_rows_with_special_numbers() -> None:
    x = inputs()
    x[0][3, 5], x[0][4, 60], x[0][7] = float("nan"), float("inf"), -0.0
    check(embedded, *x, block_x=2, block_r=64)


def test_through_views_and_casts() -> None:
    """As models have it: heads are moved before their halves, and numbers are rounded."""

    def body(fd: Any, x: Any) -> Any:
        heads = fd.ops.reshape(normed(fd, fd.ops.reshape(x, [80, 32]), [1]), [8, 10, 32])
        heads = fd.ops.cast(fd.ops.permute(heads, [1, 0, 2]), DataType.BFloat16)
        return rotated(fd, heads, (10, 8, 32), DataType.BFloat16)

    assert "cat" not in ops(check(body, noise(40, 64)))


def test_rows_that_depend_on_a_computed_scalar() -> None:
    def body(fd: Any, x: Any, number: Any) -> Any:
        squares = fd.ops.sum(fd.ops.mul(x, x), [1], keepdim=True)
        power = fd.ops.rsqrt(fd.ops.add(squares, fd.ops.mul(number, 2.0)))
        return rotated(fd, fd.ops.mul(x, power), (40, 64))

    assert "cat" not in ops(check(body, noise(40, 64), 0.5))


KEPT: dict[str, Body] = {
    "halves of two numbers": lambda fd, x: rotated(
        fd, normed(fd, fd.ops.reshape(x, [640, 4]), [1]), (640, 4)
    ),
    "rows that are reduced behind": lambda fd, x: fd.ops.sum(
        fd.ops.mul(rotated(fd, fd.ops.sigmoid(x), (40, 64)), x), [1]
    ),
    "rows without a reduction": lambda fd, x: rotated(fd, fd.ops.sigmoid(x), (40, 64)),
    "a norm of columns": lambda fd, x: rotated(fd, normed(fd, x, [0]), (40, 64)),
    "slices of two tensors": lambda fd, x: fd.ops.cat(
        [
            sliced(fd, fd.ops.neg(normed(fd, x, [1])), (40, 64), 1, 32, 64),
            sliced(fd, x, (40, 64), 1, 0, 32),
        ],
        1,
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_stays_a_concatenation(name: str) -> None:
    assert "cat" in ops(check(KEPT[name], noise(40, 64)))


FUNCTIONS: tuple[Body, ...] = (
    lambda fd, x: x,
    lambda fd, x: fd.ops.neg(x),
    lambda fd, x: fd.ops.sub(1.5, fd.ops.mul(x, 0.25)),
    lambda fd, x: fd.ops.cast(fd.ops.cast(fd.ops.exp(x), DataType.BFloat16), DataType.Float),
)


@pytest.mark.parametrize("seed", range(24))
def test_random_functions_of_random_slices(seed: int) -> None:
    rng = random.Random(seed)
    sizes = tuple(rng.choice((5, 8, 24, 40)) for _ in range(rng.randint(1, 3)))
    dim = rng.randrange(len(sizes))
    starts = [rng.randrange(sizes[dim]) for _ in range(rng.randint(2, 4))]
    ends = [rng.randint(start, sizes[dim]) for start in starts]  # some are empty
    functions = rng.choices(FUNCTIONS, k=len(starts))

    def body(fd: Any, x: Any) -> Any:
        x = normed(fd, x, [dim])
        parts = [
            function(fd, sliced(fd, x, sizes, dim, *ends))
            for function, *ends in zip(functions, starts, ends, strict=True)
        ]
        return fd.ops.cat(parts, dim)

    check(body, noise(*sizes))
