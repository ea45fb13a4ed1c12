"""Choices by an index along one dim are concatenations; others stay."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.harness import H200, NARROW, check, lowered, ops, texts
from tritonfuser import DataType

COMPARED = ("lt", "le", "gt", "ge")


def noise(*shape: int) -> torch.Tensor:
    made = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
    made.view(-1)[:3] = torch.tensor([float("nan"), -0.0, float("inf")])
    return made


def positions(fd: Any, start: int = 0, step: int = 1, dtype: Any = DataType.Int) -> Any:
    """Of 64 columns, in a matrix."""
    row = fd.ops.iota(64, start, step, dtype=dtype)
    return fd.ops.broadcast(row, [True, False])


@pytest.mark.covering
@pytest.mark.parametrize("op", COMPARED)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("start", "step", "limit"), [(0, 1, 16), (3, 2, 40), (-8, 1, 0), (0, 3, 50)]
)
def test_columns(op: str, swapped: bool, start: int, step: int, limit: int) -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        pair = positions(fd, start, step), limit
        condition = getattr(fd.ops, op)(*(pair[::-1] if swapped else pair))
        return fd.ops.where(condition, fd.ops.neg(x), y)

    found = check(body, noise(8, 64), noise(8, 64))
    assert "cat" in ops(found) and "where" not in ops(found)


def test_parts_are_stored_apart() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.where(fd.ops.lt(positions(fd), 16), fd.ops.exp(x), fd.ops.sin(y))

    (text,) = texts(check(body, noise(8, 64), noise(8, 64), facts=NARROW))
    assert "tl.where" not in text and text.count("tl.store") == 4


def test_numbers_and_tensors_of_fewer_dims_and_narrower_types() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        rows = fd.ops.broadcast(fd.ops.iota(8, dtype=DataType.Int32), [False, True])
        first = fd.ops.where(fd.ops.ge(rows, 4), x, -0.0)
        return first, fd.ops.where(fd.ops.lt(rows, 3), y, first)

    found = check(body, noise(8, 64), noise(64).bfloat16())
    assert ops(found).count("cat") == 2


def test_choices_that_stay() -> None:
    def body(fd: Any, x: Any) -> Any:
        columns = positions(fd)
        rows = fd.ops.broadcast(fd.ops.iota(8), [False, True])
        triangle = fd.ops.where(fd.ops.le(columns, rows), x, 0.0)
        always = fd.ops.where(fd.ops.lt(columns, 64), x, 0.0)
        even = fd.ops.where(fd.ops.eq(columns, 5), x, 0.0)
        real = fd.ops.where(fd.ops.lt(fd.ops.cast(columns, DataType.Half), 5.0), x, 0.0)
        summed = fd.ops.sum(fd.ops.where(fd.ops.lt(columns, 8), x, 0.0), [1])
        return triangle, always, even, real, summed

    found = lowered(body, [noise(8, 64)], H200)
    assert "cat" not in ops(found)
    check(body, torch.randn(8, 64))
