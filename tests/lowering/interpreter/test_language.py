"""What kernels call in the interpreter: array versions, and sums as exact as a GPU's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, lowered, planned
from tritonfuser.lowering.interpreter import language, library_arrays
from tritonfuser.lowering.interpreter.arrays import tree_sum


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_a_sum_is_numpys(axis, keepdims, dtype):
    data = np.arange(48).reshape(16, 3).astype(dtype)
    for given in (data, data.T, data[::2]):
        found = tree_sum(given, axis, keepdims)
        wanted = np.sum(given, axis=axis, keepdims=keepdims)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)


def test_a_sum_of_nothing_is_zero():
    assert np.array_equal(tree_sum(np.zeros((0, 3), np.float32), 0), np.zeros(3))


def test_sums_over_the_rows_of_a_tile_lose_as_little_as_a_gpu_does():
    """One by one, 1024 rows lost ten times as much."""
    x = 5 * noise(1024, 64)
    body = lambda fd, x: (fd.ops.sum(x, [1]), fd.ops.sum(x, [0]))  # noqa: E731
    found = lowered(body, [x], CPU)
    assert [piece.scheduler for piece in found.segmented.segments] == ["inner_outer_persistent"]
    _, columns = planned(found, [x], CPU)([x])
    assert columns.dtype is torch.float32
    assert (columns.double() - x.double().sum(0)).abs().max() < 1e-4


def test_array_versions_are_of_functions_that_kernels_call():
    assert library_arrays.ARRAYS.keys() <= language._namespace(plain=True).keys()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["fmod", "mod", "remainder"])
def test_what_is_left_is_exact_where_the_quotient_overflows(name, dtype):
    """Whatever the number of elements: a vector of them has gone another way in torch."""
    large, small = (3e38, 1e-40) if dtype is torch.float32 else (1e300, 3e-300)
    x, y = torch.full((64,), large, dtype=dtype), torch.full((64,), small, dtype=dtype)
    found = planned(lowered(lambda fd, x, y: getattr(fd.ops, name)(x, y), [x, y], CPU), [x, y], CPU)
    assert found([x, y])[0].tolist() == [math.fmod(x[0].item(), y[0].item())] * 64


@pytest.mark.parametrize("name", ["cosh", "sinh"])
def test_hyperbolic_functions_are_numbers_where_an_exponential_is_none(name):
    """Whatever the number of elements, as above."""
    x = torch.full((64,), 88.8)
    found = planned(lowered(lambda fd, x: getattr(fd.ops, name)(x), [x], CPU), [x], CPU)([x])
    torch.testing.assert_close(found[0], getattr(torch, name)(x.double()).float())
