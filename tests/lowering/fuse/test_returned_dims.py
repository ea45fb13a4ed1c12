"""A result used along another tensor of as many positions: in the kernel of its reduction."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, lowered, planned
from tritonfuser import DataType


def spread(fd, value, like, dims):
    """A result along the dims of another tensor, without those in ``dims``."""
    others = [dim for dim in range(len(like.shape())) if dim not in dims]
    return fd.ops.broadcast_in_dim(value, like.shape(), others)


def scaled_by_sums(fd, x, y):
    return fd.ops.mul(y, spread(fd, fd.ops.sum(x, [1]), y, [1]))


def bounded_by_variances(fd, x, y):
    """Rows of y in another order than those of x."""
    var = fd.ops.permute(fd.ops.var(x, dims=[2], correction=0), [1, 0])
    return var, fd.ops.maximum(y, spread(fd, var, y, [2]))


def scaled_by_means_of_images(fd, x, y):
    mean = fd.ops.mul(fd.ops.sum(x, [2, 3]), 1 / 63)
    return fd.ops.mul(y, spread(fd, fd.ops.sigmoid(mean), y, [2, 3]))


def normalised_of_three(fd, x, y, z):
    """Of two tensors' rows, along a third's."""
    low = spread(fd, fd.ops.min(x, [1]), z, [1])
    high = spread(fd, fd.ops.max(y, [1]), z, [1])
    return fd.ops.minimum(fd.ops.maximum(z, low), high)


CASES = {
    "sums": (scaled_by_sums, [(37, 100), (37, 100)]),
    "variances, permuted": (bounded_by_variances, [(5, 6, 48), (6, 5, 48)]),
    "images": (scaled_by_means_of_images, [(3, 4, 7, 9), (3, 4, 7, 9)]),
    "three tensors": (normalised_of_three, [(9, 33)] * 3),
    "as many columns as rows": (scaled_by_sums, [(24, 24), (24, 24)]),
}


def wanted(name, x, y, z=None):
    if name == "sums" or name.startswith("as many"):
        return [y * x.sum(1, keepdim=True)]
    if name == "images":
        return [y * x.mean((2, 3), keepdim=True).sigmoid()]
    if name == "three tensors":
        return [z.maximum(x.amin(1, keepdim=True)).minimum(y.amax(1, keepdim=True))]
    var = x.var(2, correction=0).T
    return [var, y.maximum(var[..., None])]


@pytest.mark.parametrize("name", CASES)
def test_values_and_one_kernel(name):
    body, sizes = CASES[name]
    inputs = [noise(*each, seed=seed) for seed, each in enumerate(sizes)]
    assert len(lowered(body, inputs, H200).segmented.segments) == 1
    results = planned(lowered(body, inputs), inputs).run(inputs)
    for got, expected in zip(results, wanted(name, *(v.double() for v in inputs)), strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-5)


def test_long_rows_are_read_once():
    """The kernel walks over the rows of one tensor, then over those of the other."""
    inputs = [torch.empty(4096, 50_257, device="meta") for _ in range(2)]
    (piece,) = lowered(scaled_by_sums, inputs, H200).segmented.segments
    assert piece.scheduler == "inner_persistent"
    assert piece.bytes_read == sum(v.numel() * v.element_size() for v in inputs)


def test_columns_stay_in_kernels_with_many_programs():
    """Sums over all rows are no reason to have a program for each few columns."""
    inputs = [torch.empty(8192, 8192, dtype=torch.bfloat16, device="meta") for _ in range(2)]

    def body(fd, x, y):
        total = fd.ops.sum(fd.ops.cast(x, DataType.Float), [0])
        return fd.ops.cast(fd.ops.mul(y, spread(fd, total, y, [0])), DataType.BFloat16)

    *_, last = lowered(body, inputs, H200).segmented.segments
    assert last.scheduler == "pointwise"


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_what_else_is_computed_of_the_other_tensor_is_in_the_kernel(first, flat):
    """Whichever of both results comes first: the other tensor is read once."""

    def body(fd, x, y):
        rows, columns = y.shape()
        given = fd.ops.reshape(y, [fd.ops.mul(rows, columns)]) if flat else y
        results = fd.ops.sigmoid(given), scaled_by_sums(fd, x, y)
        return results if first else results[::-1]

    inputs = [torch.empty(4096, 4100, device="meta") for _ in range(2)]
    (piece,) = lowered(body, inputs, H200).segmented.segments
    assert piece.bytes_read == sum(v.numel() * v.element_size() for v in inputs)


def shifted(fd, y):
    rows, columns = y.shape()
    return fd.ops.pad(fd.ops.slice(y, [0, 0], [rows, columns - 1]), [1, 0])


def doubled(fd, y):
    return fd.ops.cat([y, y], 1)


@pytest.mark.parametrize("beside", [shifted, doubled])
def test_a_kernel_that_reads_the_other_tensor_anyway_has_the_result(beside):
    def body(fd, x, y):
        most = spread(fd, fd.ops.max(x, [1]), y, [1])
        return beside(fd, y), fd.ops.add(y, most)

    inputs = [torch.empty(4096, 4100, device="meta") for _ in range(2)]
    first, last = lowered(body, inputs, H200).segmented.segments
    assert first.scheduler == "reduction" and last.scheduler == "pointwise"
    assert len(last.outputs) == 2
