"""What is made of a reduction follows it where that was moved to the axes of another one."""

from __future__ import annotations

import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, schedulers
from tritonfuser import DataType


def rounded(fd, *values):
    """Sums over the rows, as stored in 16 bits."""
    sums = (fd.ops.sum(value, [0, 1]) for value in values)
    return [fd.ops.cast(value, dtype=DataType.BFloat16) for value in sums]


def test_sums_of_several_tensors_are_stored_by_the_kernel_that_has_them():
    def body(fd, x, y, z):
        return rounded(fd, fd.ops.mul(x, y), y, z)

    given = noise(2, 20, 24), noise(2, 20, 24, seed=1), noise(2, 20, 24, seed=2)
    assert schedulers(check(body, *given, tolerance=1e-2)) == ["reduction"]


def test_of_other_dims_with_as_many_elements():
    def body(fd, x, y):
        return rounded(fd, x, fd.ops.exp(y))

    given = noise(2, 20, 6, 4), noise(4, 10, 3, 8, seed=1)
    assert schedulers(check(body, *given, tolerance=1e-2)) == ["reduction"]


def test_what_is_read_in_another_order_is_not_computed_there():
    def body(fd, x, y):
        first, other = (fd.ops.sum(value, [0]) for value in (x, y))
        return first, fd.ops.mul(fd.ops.permute(other, [1, 0]), 2.0)

    check(body, noise(30, 6, 4), noise(30, 4, 6, seed=1), tolerance=1e-5)


def test_of_both_sums():
    def body(fd, x, y):
        first, other = (fd.ops.sum(value, [1]) for value in (x, y))
        return fd.ops.add(first, other), fd.ops.sub(other, 1.0)

    x, y = noise(40, 30), noise(40, 30, seed=1)
    assert schedulers(check(body, x, y, tolerance=1e-5)) == ["reduction"]
    x[3, 4], y[7] = torch.nan, torch.inf
    check(body, x, y, tolerance=1e-5)
