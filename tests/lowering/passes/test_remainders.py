"""Reductions in equal parts, of which the second step also reduces the elements left over."""

from __future__ import annotations

import re
from math import prod

import pytest
import torch

from tests.cache.abstract_variants import AbstractVariants
from tests.lowering.graphs import meta, noise
from tests.lowering.harness import check, lowered, small
from tritonfuser import DataType, FusionDefinition
from tritonfuser.devices import known
from tritonfuser.lowering.fuse.scheduler_queries.parts_with_remainder import nearest_multiple
from tritonfuser.lowering.passes.splits.parts import Padded, Remainder
from tritonfuser.lowering.passes.splits.remainders import padded_if_short

FEW = small(4)

ALL = {
    "sum": lambda fd, x: fd.ops.sum(x, [0]),
    "max": lambda fd, x: fd.ops.max(x, [0]),
    "min": lambda fd, x: fd.ops.min(x, [0]),
    "prod": lambda fd, x: fd.ops.prod(x, [0]),
    "several": lambda fd, x: (fd.ops.sum(x, [0]), fd.ops.max(fd.ops.neg(x), [0])),
    "used on": lambda fd, x: fd.ops.sqrt(fd.ops.abs(fd.ops.sum(fd.ops.sin(x), [0]))),
}


@pytest.fixture(autouse=True)
def little_is_split(monkeypatch):
    """Sizes that tests can have are worth two steps."""
    monkeypatch.setattr("tritonfuser.heuristics.reduction.MIN_PART_ELEMENTS", 64)
    monkeypatch.setattr("tritonfuser.heuristics.columns.sums.MIN_PART_BYTES", 64)
    monkeypatch.setattr("tritonfuser.heuristics.columns.sums.PART_BYTES", 64)


def splits(found):
    return found.segmented.rewrites.splits


def has_remainder(found) -> bool:
    return bool(splits(found)) and all(split.remainder for split in splits(found))


@pytest.mark.covering
@pytest.mark.parametrize("shape", [(2053,), (2053, 3), (509, 5, 2)])
@pytest.mark.parametrize("name", ALL)
def test_numbers_of_a_prime_extent(name, shape):
    found = check(ALL[name], 1 + 0.01 * noise(*shape), facts=FEW, tolerance=1e-4)
    assert has_remainder(found), splits(found)
    assert len(found.segmented.segments) == 2
    first, second = found.segmented.segments
    assert "tv0" in {value.name for value in first.inputs} & {v.name for v in second.inputs}
    assert prod(found.sources[0].grid) > 1


SEVERAL = {
    "rows": (lambda fd, x: fd.ops.sum(fd.ops.sin(x), [1, 2, 3]), (3, 13, 11, 17)),
    "columns": (lambda fd, x: fd.ops.sum(x, [0, 1, 2]), (13, 19, 21, 3)),
    "in the middle": (lambda fd, x: fd.ops.max(x, [1, 2]), (2, 37, 57, 3)),
    "moments": (lambda fd, x: fd.ops.var_mean(x, [0, 1], 0), (67, 31, 4)),
    "a sum and a product": (lambda fd, x: (fd.ops.sum(x), fd.ops.prod(x)), (23, 91)),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_neighbouring_dims_are_split_as_one(name):
    """Divisors of each would leave pieces of several dims, whose places have to be divided."""
    body, shape = SEVERAL[name]
    found = check(body, 1 + 0.001 * noise(*shape), facts=FEW, tolerance=1e-4)
    assert has_remainder(found), splits(found)
    text = found.sources[0].text
    assert not re.search(r"r\d* = r (//|%)", text), text


def test_rows_that_are_stored_too_are_split_into_whole_vectors():
    """Where no divisors of the dims give programs enough: padded parts have a mask for each
    element, and loads of 2 bytes."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1] * 3, contiguity=True, dtype=DataType.BFloat16)
        wide = fd.ops.cast(x, DataType.Float)
        fd.add_output(fd.ops.sum(wide))
        fd.add_output(fd.ops.cast(fd.ops.exp(wide), DataType.BFloat16))
    inputs = [torch.empty(3023, 17, 961, dtype=torch.bfloat16, device="meta")]
    assert all(split.remainder for split in fd.schedule(inputs, arch="sm_90").rewrites.splits)
    assert fd.compile_for("sm_90", inputs)[0].max_load_bytes == 16


def test_dims_that_are_no_run_of_memory_are_split_one_by_one():
    for x, dims in ((noise(371, 2, 57), [0, 2]), (noise(2, 77, 61).permute(2, 1, 0), [0, 1])):
        found = check(lambda fd, x, dims=dims: fd.ops.sum(x, dims), x, facts=FEW, tolerance=1e-4)
        assert splits(found) and not has_remainder(found)


@pytest.mark.parametrize("extent", [2048, 2049, 2053, 2063, 2111])
def test_each_element_counts_once(extent):
    """At the ends of parts and of the remainder too."""
    x = torch.zeros(extent)
    for place in (0, 1, extent // 2, extent - 2, extent - 1):
        x[place] += 2.0**place if place < 2 else 1.0
    check(lambda fd, x: (fd.ops.sum(x), fd.ops.max(x)), x, facts=FEW)
    check(lambda fd, x: fd.ops.sum(x), torch.arange(extent), facts=FEW)


@pytest.mark.parametrize("special", [float("nan"), float("inf"), -float("inf"), -0.0])
def test_special_numbers_anywhere(special):
    body = lambda fd, x: (fd.ops.max(x), fd.ops.min(x), fd.ops.sum(x), fd.ops.prod(x))  # noqa: E731
    for place in (0, 1026, 2052):
        x = 1 + 0.001 * noise(2053)
        x[place] = special
        assert has_remainder(check(body, x, facts=FEW, tolerance=1e-4))


def test_extremes_of_one_sign_and_of_nothing_but_infinities():
    body = lambda fd, x: (fd.ops.max(x), fd.ops.min(x))  # noqa: E731
    for x in (-1 - noise(2053).abs(), 1 + noise(2053).abs(), torch.full((2053,), -float("inf"))):
        assert has_remainder(check(body, x, facts=FEW))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool])
def test_whole_numbers_and_bools(dtype):
    x = (torch.arange(2053) % 7 - 3).to(dtype)
    body = lambda fd, x: (fd.ops.sum(x), fd.ops.max(x), fd.ops.min(x))  # noqa: E731
    assert has_remainder(check(body, x, facts=FEW))


def test_any_and_all_of_bools():
    for place in (0, 1000, 2052):
        x = torch.zeros(2053, dtype=torch.bool)
        x[place] = True
        for given in (x, ~x):
            body = lambda fd, x: (fd.ops.max(x), fd.ops.min(x))  # noqa: E731
            assert has_remainder(check(body, given, facts=FEW))


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_parts_and_remainder_of_half_are_added_in_float(dtype):
    x = torch.full((2053,), 0.1, dtype=dtype)
    found = check(lambda fd, x: fd.ops.sum(x), x, facts=FEW)
    (partial,) = found.segmented.segments[0].outputs
    assert partial.dtype is DataType.Float


def test_operands_that_lie_anyhow():
    for x in (noise(3, 2053).t(), noise(4106, 3)[::2], noise(2053, 1).expand(2053, 3)):
        check(ALL["several"], x, facts=FEW, tolerance=1e-4)


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 5, 13])
def test_extents_below_the_parts(extent, monkeypatch):
    monkeypatch.setattr("tritonfuser.heuristics.reduction.MIN_PART_ELEMENTS", 1)
    check(lambda fd, x: fd.ops.sum(x, [0]), noise(extent, 3), facts=small(100))


MOMENTS = {
    "var_mean": lambda fd, x: fd.ops.var_mean(x, [0], 0),
    "a sum too": lambda fd, x: (fd.ops.sum(x, [0]), *fd.ops.var_mean(x, [0])),
    "welford": lambda fd, x: fd.ops.welford(x, [0]),
}


@pytest.mark.covering
@pytest.mark.parametrize("shape", [(2053,), (2053, 3), (509, 5, 2)])
@pytest.mark.parametrize("name", MOMENTS)
def test_moments_of_a_prime_extent(name, shape):
    """Also where the mean is far larger than the deviation."""
    for mean in (0.0, 1000.0):
        x = mean + noise(*shape)
        found = check(MOMENTS[name], x, facts=FEW, tolerance=1e-3 if mean else 1e-4)
        assert has_remainder(found), splits(found)


def test_each_element_counts_once_in_moments():
    for extent in (2048, 2049, 2053, 2111):
        for place in (0, extent // 2, extent - 2, extent - 1):
            x = torch.zeros(extent)
            x[place] = 1.0
            check(MOMENTS["welford"], x, facts=FEW)


@pytest.mark.parametrize("special", [float("nan"), float("inf"), -float("inf")])
def test_special_numbers_anywhere_among_moments(special):
    for place in (0, 1026, 2052):
        x = 1 + 0.001 * noise(2053)
        x[place] = special
        assert has_remainder(check(lambda fd, x: fd.ops.var(x, [0]), x, facts=FEW))


# --- the kernels of large tensors ----------------------------------------------------------------


def columns(fd, x, y):
    return fd.ops.sum(fd.ops.mul(x, y), [0])


def large(rows, count, dtype=torch.bfloat16):
    given = [torch.empty(rows, count, dtype=dtype, device="meta")] * 2
    return lowered(columns, given, known("sm_90"))


@pytest.mark.parametrize(("rows", "count"), [(222248, 305), (130340, 2143), (100003, 1001)])
def test_interleaved_parts_are_read_without_masks_but_those_of_the_tile(rows, count):
    found = large(rows, count)
    (split,) = splits(found)
    assert split.remainder
    assert split.parts % split.interleave == 0
    assert split.interleave * count * 2 % 16 == 0
    first, second = (source.text for source in found.sources)
    assert "inside" not in first
    assert re.search(r"mask=t_(x_)?mask, other=0", first)
    assert not re.search(r"mask=r_(x_)?mask", first)
    assert "inside0 = r < " in second


def test_parts_that_divide_need_no_remainder():
    (split,) = splits(large(1 << 17, 305))
    assert not split.remainder


def defined() -> FusionDefinition:
    with FusionDefinition() as fd:
        x, y = (
            fd.define_tensor(shape=[-1, 305], contiguity=True, dtype=DataType.BFloat16)
            for _ in range(2)
        )
        total = columns(fd, *(fd.ops.cast(t, DataType.Float) for t in (x, y)))
        fd.add_output(fd.ops.cast(total, DataType.BFloat16))
    return fd


def test_one_kernel_serves_rows_whatever_they_leave_over():
    """None, one or all but one: each is served by the kernel that another opened."""
    served = AbstractVariants(defined())
    for rows in (222248, 222249):
        served.serve([meta(rows, 305, dtype=torch.bfloat16)] * 2)
    opened = served.serve([meta(300001, 305, dtype=torch.bfloat16)] * 2)
    count = len(served.records)
    (split,) = opened.segmented.rewrites.splits
    assert split.remainder and split.parts % split.interleave == 0
    for left in (0, 1, 2, split.parts - 1):
        rows = split.parts * (300001 // split.parts) + left
        served.serve([meta(rows, 305, dtype=torch.bfloat16)] * 2)
    assert len(served.records) == count
    first = opened.sources[0].text
    assert "inside" not in first and "x_mask" not in first


@pytest.mark.parametrize(
    ("rows", "divide"), [(768, True), (1664, True), (6952, True), (6947, False)]
)
def test_parts_of_sizes_that_vary_divide_those_that_have_such_parts(rows, divide):
    """As those of constant sizes do, which the second step has less to read for."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        fd.add_output(fd.ops.max(x, [0]))
    served = AbstractVariants(fd)
    for shape in ((61, 73), (67, 79), (3001, 801)):
        served.serve([meta(*shape)])
    (split,) = served.serve([meta(rows, 512)]).segmented.rewrites.splits
    assert split.remainder and split.parts > 1
    assert (rows % split.parts == 0) is divide


@pytest.mark.parametrize("extent", [1000003, 1000005, 999999, 10000019])
def test_parts_of_one_row_begin_at_vectors(extent):
    x = torch.empty(extent, dtype=torch.bfloat16, device="meta")
    found = lowered(lambda fd, x: fd.ops.sum(x, [0]), [x], known("sm_90"))
    (split,) = splits(found)
    assert split.remainder and extent // split.parts % 8 == 0
    assert f"tv0_ptr + x * {extent // split.parts} + r" in found.sources[0].text


@pytest.mark.parametrize(
    ("count", "multiple", "parts"),
    [(127, 64, 128), (96, 64, 64), (97, 64, 128), (211, 64, 192), (5, 8, 8), (6, 4, 4), (7, 0, 0)],
)
def test_parts_are_the_multiple_next_to_those_wanted(count, multiple, parts):
    assert nearest_multiple(count, multiple) == parts


@pytest.mark.parametrize(("shape", "place"), [((1, 9), 1), ((9, 1), 0), ((3, 3), 0)])
def test_too_few_elements_are_padded_along_a_dim_that_has_several(shape, place):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.var(fd.define_tensor(shape), [0, 1]))
    (node,) = (node for node in fd.fusion.ir.nodes if node.op == "var")
    assert padded_if_short(node, Remainder(2, 0)) == Remainder(2, 0)
    assert padded_if_short(node, Remainder(5, 0)) == Padded(place, 5)
