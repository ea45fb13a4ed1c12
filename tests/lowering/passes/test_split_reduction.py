"""Reductions in two steps: how they are split, and that nothing of the result changes."""

from __future__ import annotations

from math import prod

import pytest
import torch

from tests.lowering.conftest import split_from
from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, schedulers, small
from tritonfuser import DataType
from tritonfuser.cache.keys.signature import signature
from tritonfuser.heuristics.integers import divisors
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.splits.factors import (
    contiguous_factors,
    factors_of_any,
    splits_well,
)
from tritonfuser.lowering.passes.splits.split_factors import split_factors


@pytest.mark.parametrize(
    ("extents", "padded", "to"),
    [
        ((61, 32, 7, 113), 0, 65),  # 5 parts of 13: each is whole along the dims inside
        ((13, 32, 7, 113), 3, 115),  # 15 and 9 would be much more than 13 and 7
        ((2, 32, 7, 113), 3, 115),
    ],
)
def test_which_dim_is_padded(extents, padded, to):
    x = torch.empty(extents, device="meta")
    fusion = record(lambda fd, x: fd.ops.sum(x, [0, 2, 3]), [x]).fusion.ir
    fusion = concretize(fusion, signature(fusion, [x], torch.device("meta")))
    reduction = next(node for node in fusion.nodes if node.op == "sum")
    found = split_factors(reduction, 5)
    assert found.padded == (padded, to)
    assert found.factors == {dim: 5 if dim == padded else 1 for dim in (0, 2, 3)}


@pytest.mark.parametrize(
    ("extents", "parts", "split"),
    [
        ((4096,), 128, (128,)),
        ((4, 512), 128, (4, 32)),
        ((8192,), 528, (512,)),
        ((97,), 33, (1,)),
        ((97, 4096), 64, (1, 1)),
        ((2 * 1009, 4096), 100, (2, 1)),
        ((15221, 10), 10, (1, 1)),
        ((6, 10), 7, (6, 1)),
        ((16,), 16, (1,)),
        ((4, 4), 16, (1, 1)),
        ((1, 12), 5, (1, 4)),
    ],
)
def test_contiguous_factors(extents, parts, split):
    assert contiguous_factors(extents, parts) == split


@pytest.mark.parametrize(
    ("extents", "parts", "split"),
    [((97, 4096), 64, (1, 64)), ((2 * 1009, 4096), 100, (2, 32)), ((4, 512), 128, (4, 32))],
)
def test_factors_of_any_dim(extents, parts, split):
    assert factors_of_any(extents, parts) == split


@pytest.mark.parametrize("size", [1, 2, 12, 97, 4096, 3 * 5 * 7 * 11])
def test_splits_divide_and_are_no_more_than_asked(size):
    for parts in (2, 3, 16, 100):
        (outer,) = contiguous_factors((size,), parts)
        assert size % outer == 0
        assert outer <= parts
        assert outer < size or size == 1


def test_divisors():
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
    assert divisors(97) == [1, 97]
    assert divisors(1) == [1]
    assert divisors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]


def test_split_well():
    assert splits_well((4096,), 128)
    assert not splits_well((4099,), 128)
    assert splits_well((4099,), 1)


FEW = small(4)


@pytest.fixture(autouse=True)
def little_is_split(monkeypatch):
    """Sizes that tests can have are worth two steps."""
    split_from(monkeypatch, 256)


SUMS = {
    "sum": lambda fd, x: fd.ops.sum(x),
    "max": lambda fd, x: fd.ops.max(x),
    "min": lambda fd, x: fd.ops.min(x),
    "several": lambda fd, x: (fd.ops.sum(x), fd.ops.max(x), fd.ops.sum(fd.ops.exp(x))),
    "variance": lambda fd, x: fd.ops.var_mean(x, list(range(x.ndim)), correction=1),
    "welford": lambda fd, x: fd.ops.welford(x, list(range(x.ndim))),
    "used on": lambda fd, x: fd.ops.sqrt(fd.ops.abs(fd.ops.add(fd.ops.sum(x), 1.0))),
}


@pytest.mark.covering
@pytest.mark.parametrize("shape", [(4096,), (64, 96), (5, 7, 128), (2053,), (2 * 1009,), (67, 71)])
@pytest.mark.parametrize("name", SUMS)
def test_full_reductions(name, shape):
    """2053, 67 and 71 are prime: the last part is filled up."""
    found = check(SUMS[name], noise(*shape), facts=FEW, tolerance=1e-4)
    assert len(found.segmented.segments) == 2
    for source in found.sources:
        assert source is not None
    assert prod(found.sources[0].grid) > 1


@pytest.mark.parametrize("dims", [[0, 2, 3], [0], [2, 3], [0, 3], [1]])
def test_any_dims(dims):
    body = lambda fd, x: (fd.ops.sum(x, dims), *fd.ops.var_mean(x, dims))  # noqa: E731
    check(body, noise(8, 3, 24, 25), facts=small(8), tolerance=1e-4)


@pytest.mark.parametrize("name", ["sum", "max", "variance"])
def test_parts_are_whole_along_inner_dims(name):
    """509 is prime: parts of the 6 would be one element of each run of the 6."""
    ops = {
        "sum": lambda fd, x: fd.ops.sum(x, [0, 2]),
        "max": lambda fd, x: fd.ops.max(x, [0, 2]),
        "variance": lambda fd, x: fd.ops.var_mean(x, [0, 2], correction=1),
    }
    found = check(ops[name], noise(509, 3, 6), facts=small(6), tolerance=1e-4)
    padded = {n.out for s in found.segmented.segments for n in s.nodes if n.op == "pad"}
    assert [value.tensor.sizes for value in padded] == [(512, 3, 6)]


def test_parts_of_any_dim_where_rows_are_stored_too():
    """Padded rows would be read once more for the result that is stored of each element."""
    body = lambda fd, x: (y := fd.ops.mul(x, 2.0), fd.ops.sum(fd.ops.mul(y, y)))  # noqa: E731
    x = noise(6, 97, 127).transpose(0, 1)
    found = check(body, x, facts=small(6), tolerance=1e-3)
    assert all(n.op != "pad" for piece in found.segmented.segments for n in piece.nodes)
    assert found.segmented.segments[0].outputs[0].tensor.numel == x.numel()


def test_batch_norm_statistics_of_images():
    """The kept dim is in the middle."""
    body = lambda fd, x: fd.ops.var_mean(x, [0, 2, 3], correction=0)  # noqa: E731
    found = check(body, noise(16, 4, 28, 28), facts=small(16), tolerance=1e-4)
    assert schedulers(found) == ["reduction", "reduction"]


@pytest.mark.parametrize("size", [4096, 2053])
@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_parts_of_half_are_summed_in_float(dtype, size):
    """4096 times 0.1 cannot be added up in half."""
    found = check(lambda fd, x: fd.ops.sum(x), torch.full((size,), 0.1, dtype=dtype), facts=FEW)
    (partial,) = found.segmented.segments[0].outputs
    assert partial.dtype is DataType.Float


@pytest.mark.parametrize("size", [4096, 2053])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool])
def test_whole_numbers_and_bools(dtype, size):
    numbers = torch.arange(size) % 7 - 3
    body = lambda fd, x: (fd.ops.sum(x), fd.ops.max(x), fd.ops.min(x))  # noqa: E731
    check(body, numbers.to(dtype), facts=FEW)


@pytest.mark.parametrize("size", [4096, 2053])
def test_products(size):
    body = lambda fd, x: fd.ops.prod(x)  # noqa: E731
    check(body, 1 + 0.001 * noise(size), facts=FEW)


@pytest.mark.parametrize("size", [4096, 2053])
def test_nan_is_found_in_any_part(size):
    for place in (0, size // 2, size - 1):
        x = noise(size)
        x[place] = float("nan")
        check(lambda fd, x: (fd.ops.max(x), fd.ops.min(x), fd.ops.sum(x)), x, facts=FEW)


def test_all_negative_in_a_filled_up_maximum():
    check(lambda fd, x: (fd.ops.max(x), fd.ops.min(x)), -1 - noise(2053).abs(), facts=FEW)
    check(lambda fd, x: (fd.ops.max(x), fd.ops.min(x)), 1 + noise(2053).abs(), facts=FEW)


def test_stretched_dims():
    """A sum over a repeated dim is a product, in both steps."""
    for x in (noise(64, 1).expand(64, 96), noise(1, 96).expand(64, 96)):
        check(lambda fd, x: (fd.ops.sum(x), fd.ops.welford(x, [0, 1])[0]), x, facts=FEW)


@pytest.mark.parametrize("size", [2, 3, 5, 13])
def test_parts_of_at_least_two_elements(size, monkeypatch):
    split_from(monkeypatch, 1)
    body = lambda fd, x: (fd.ops.sum(x), fd.ops.max(x), *fd.ops.welford(x, [0]))  # noqa: E731
    check(body, noise(size), facts=small(100))


def test_no_reduction_is_left_for_an_unused_result():
    """The mean alone: the squares of the parts are not added up."""
    found = lowered(lambda fd, x: fd.ops.welford(x, [0, 1])[0], [noise(64, 96)], FEW)
    ops = [node.op for piece in found.segmented.segments for node in piece.nodes]
    assert ops.count("welford") == 2
    assert "sum" not in ops


def test_results_keep_their_values():
    """Later passes and the plan find outputs under the numbers that were recorded."""
    found = lowered(lambda fd, x: fd.ops.welford(x, [0]), [noise(4096)], FEW)
    fusion = found.segmented.fusion
    assert [out.value.name for out in fusion.outputs] == ["tv1", "tv2", "tv3"]
    assert all(out.value in fusion.producers for out in fusion.outputs)


def rows_and_images(fd, x):
    """Sums of rows, and over all rows of a channel."""
    return fd.ops.sum(x, [2, 3]), fd.ops.sum(fd.ops.exp(x), [0, 2, 3]), fd.ops.max(x, [0, 2, 3])


@pytest.mark.parametrize("shape", [(6, 3, 8, 20), (5, 4, 7, 9), (2, 33, 4, 4)])
def test_rows_are_reduced_first_where_a_kernel_has_them(shape):
    found = check(rows_and_images, noise(*shape), facts=FEW, tolerance=1e-5)
    first, second = found.segmented.segments
    assert first.inputs[0].name == "tv0"
    assert all(value.name != "tv0" for value in second.inputs)
    assert "along with other reductions of the same rows" in found.segmented.cuts[0]


def test_variances_of_channels_are_joined_from_those_of_rows():
    body = lambda fd, x: (fd.ops.sum(x, [2, 3]), *fd.ops.var_mean(x, [0, 2, 3]))  # noqa: E731
    found = check(body, noise(8, 3, 24, 25), facts=FEW, tolerance=1e-4)
    assert len(found.segmented.segments) == 2


@pytest.mark.parametrize("dims", [[0], [0, 1], [1, 2]])
def test_other_rows_are_reduced_by_themselves(dims):
    body = lambda fd, x: (fd.ops.sum(x, [2, 3]), fd.ops.sum(x, dims))  # noqa: E731
    check(body, noise(8, 6, 5, 12), facts=FEW, tolerance=1e-4)


def test_rows_that_wait_for_the_reduction_do_not_begin_it():
    """The rows are of what the channels' maximum was subtracted from."""

    def body(fd, x):
        top = fd.ops.broadcast(fd.ops.max(x, [0, 2, 3]), [True, False, True, True])
        return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, top)), [2, 3])

    check(body, noise(8, 3, 6, 10), facts=FEW, tolerance=1e-5)
