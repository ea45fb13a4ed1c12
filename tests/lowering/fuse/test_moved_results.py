"""What is made of a reduction follows it where that was moved to the axes of another one."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, schedulers, small
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


@pytest.mark.parametrize("shape", [(64, 40, 48), (61, 5, 96), (1, 700, 33)], ids=str)
def test_maxima_of_another_tensor_beside_sums_over_the_rows(shape):
    """The kernel has the axes that the sums are over, and the maxima, recorded first, follow."""

    def body(fd, other, x, y):
        top = fd.ops.cast(fd.ops.max(other, [2]), dtype=DataType.BFloat16)
        total = fd.ops.sum(fd.ops.mul(x, y), [2])
        wide = fd.ops.broadcast_in_dim(total, list(shape), [0, 1])
        weights = fd.ops.sum(fd.ops.mul(x, y), [0, 1])
        return top, fd.ops.sub(x, fd.ops.mul(y, wide)), weights, fd.ops.sum(x, [0, 1])

    given = [noise(*shape, seed=seed) for seed in range(3)]
    found = check(body, *given, facts=small(2), tolerance=1e-2)
    assert schedulers(found)[0] == "inner_outer_persistent"
    first = found.segmented.segments[0]
    assert sorted(m.node.op for m in first.members) == ["max", "sum", "sum", "sum"]
    assert len(first.stores) >= 2
    given[0][0, 3, 4], given[1][0, 2, 1] = torch.nan, torch.inf
    check(body, *given, facts=small(2), tolerance=1e-2)
