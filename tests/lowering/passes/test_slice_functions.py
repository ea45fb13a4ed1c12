"""Concatenated functions of slices of reduced rows are chosen by the index; others stay."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, check, lowered
from tritonfuser import DataType

Body = Callable[..., Any]


def sliced(fd: Any, x: Any, sizes: tuple[int, ...], dim: int, start: int, stop: int) -> Any:
    low, high = [0] * len(sizes), list(sizes)
    low[dim], high[dim] = start, stop
    return fd.ops.slice(x, low, high)


def rotated(fd: Any, x: Any, sizes: tuple[int, ...]) -> Any:
    """The halves of the last dim in the other order, the second one negated."""
    dim, half = len(sizes) - 1, sizes[-1] // 2
    first = sliced(fd, x, sizes, dim, 0, half)
    second = sliced(fd, x, sizes, dim, half, sizes[-1])
    return fd.ops.cat([fd.ops.neg(second), first], dim)


def normed(fd: Any, x: Any, dims: list[int]) -> Any:
    squares = fd.ops.sum(fd.ops.mul(x, x), dims, keepdim=True)
    return fd.ops.mul(x, fd.ops.rsqrt(fd.ops.add(squares, 1e-6)))


def embedded(fd: Any, x: Any, cosines: Any, sines: Any) -> Any:
    """A rotary embedding of normed rows of 64."""
    found = normed(fd, x, [1])
    return fd.ops.add(fd.ops.mul(found, cosines), fd.ops.mul(rotated(fd, found, (40, 64)), sines))


def ops(found: Any) -> list[str]:
    return [node.op for node in found.segmented.fusion.nodes]


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


def test_what_is_reduced_behind_is_chosen_by_the_index() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        found = rotated(fd, fd.ops.sigmoid(fd.ops.mul(x, y)), (40, 64))
        return fd.ops.sum(found, [0]), fd.ops.sum(fd.ops.mul(found, x), [1])

    assert "cat" not in ops(check(body, *inputs()[:2]))


KEPT: dict[str, Body] = {
    "halves of two numbers": lambda fd, x: rotated(
        fd, normed(fd, fd.ops.reshape(x, [640, 4]), [1]), (640, 4)
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


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_random_functions_of_random_slices(seed: int, behind: bool) -> None:
    rng = random.Random(seed)
    sizes = tuple(rng.choice((5, 8, 24, 40)) for _ in range(rng.randint(1, 3)))
    dim = rng.randrange(len(sizes))
    starts = [rng.randrange(sizes[dim]) for _ in range(rng.randint(2, 4))]
    ends = [rng.randint(start, sizes[dim]) for start in starts]  # some are empty
    functions = rng.choices(FUNCTIONS, k=len(starts))
    summed = rng.randrange(len(sizes))

    def body(fd: Any, x: Any) -> Any:
        x = x if behind else normed(fd, x, [dim])
        parts = [
            function(fd, sliced(fd, x, sizes, dim, *ends))
            for function, *ends in zip(functions, starts, ends, strict=True)
        ]
        found = fd.ops.cat(parts, dim)
        return fd.ops.sum(found, [summed]) if behind else found

    check(body, noise(*sizes))
