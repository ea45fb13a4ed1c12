"""``cat`` writes its parts straight into place, where that takes no more kernels."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.harness import NARROW, check, schedulers, small, texts


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def joined(dim: int) -> Any:
    return lambda fd, *t: fd.ops.cat([fd.ops.exp(x) for x in t], dim)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_parts_of_one_size_are_stored_side_by_side(dim: int) -> None:
    inputs = [random(4, 6, 16) for _ in range(3)]
    found = check(joined(dim), *inputs, facts=NARROW)
    assert schedulers(found) == ["pointwise"]
    (text,) = texts(found)
    assert "tl.where" not in text and text.count("tl.store") == 3


def test_parts_of_other_sizes_are_cut_into_equal_ones() -> None:
    found = check(joined(0), random(40, 8), random(16, 8), random(0, 8), facts=NARROW)
    assert schedulers(found) == ["pointwise"]
    (text,) = texts(found)
    assert "tl.where" not in text and text.count("tl.store") == 7


def test_a_part_that_equal_ones_do_not_make_up_rides_along() -> None:
    found = check(joined(0), random(3, 8), random(40, 8), facts=NARROW)
    assert schedulers(found) == ["pointwise"]
    (text,) = texts(found)
    assert "tl.where" not in text and text.count("tl.store") == 2


def test_a_part_is_stored_by_the_kernel_that_reduces_it() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.cat([fd.ops.sum(x, [1]), fd.ops.max(x, [1]), y], 0)

    found = check(body, random(64, 32), random(10))
    assert schedulers(found)[0] == "reduction" and len(found.segmented.segments) <= 2


def test_parts_are_whole_before_something_reads_them() -> None:
    def body(fd: Any, x: Any, y: Any, w: Any) -> Any:
        both = fd.ops.cat([fd.ops.exp(x), fd.ops.sin(y)], 0)
        return both, fd.ops.matmul(both, w), fd.ops.sum(both, [0])

    check(body, random(20, 16), random(20, 16), random(16, 4), tolerance=1e-4)
    check(body, random(20, 16), random(7, 16), random(16, 4), facts=small(2), tolerance=1e-4)


def test_the_same_part_twice_and_cats_of_cats() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        twice = fd.ops.cat([x, x, y], 1)
        return fd.ops.cat([twice, fd.ops.neg(twice)], 0)

    check(body, random(6, 8), random(6, 8))
