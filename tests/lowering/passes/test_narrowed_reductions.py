"""Norms and sums of which a slice alone is used."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from tests.lowering.harness import record

SMALL, LARGE = (6, 9, 40), (64, 512, 1024)

Part = tuple[slice, ...]
LAST = (slice(None), slice(-1, None))
MIDDLE = (slice(1, 4), slice(3, 7))


def sliced(fd: Any, x: Any, part: Part, sizes: tuple[int, ...]) -> Any:
    whole = (*part, *[slice(None)] * (len(sizes) - len(part)))
    pairs = zip(whole, sizes, strict=True)
    starts, stops, steps = zip(*(each.indices(size) for each, size in pairs), strict=True)
    return fd.ops.slice(x, list(starts), list(stops), list(steps))


def norm(fd: Any, x: Any) -> Any:
    """A layer norm without weights."""
    variance, mean = fd.ops.var_mean(x, dims=[2], correction=0, keepdim=True)
    return fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(variance, 1e-5)))


def normed(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[2:], eps=1e-5)


@pytest.mark.parametrize("part", [LAST, MIDDLE])
def test_a_slice_of_a_norm_is_one_kernel_of_its_rows(part: Part) -> None:
    """No sum of another row is computed."""
    x = torch.randn(SMALL)
    fd = record(lambda fd, x: sliced(fd, norm(fd, x), part, SMALL), [x])
    torch.testing.assert_close(fd.run([x])[0], normed(x)[part])
    given = [torch.empty(LARGE, device="meta")]
    fd = record(lambda fd, x: sliced(fd, norm(fd, x), part, LARGE), given)
    (segment,) = fd.segments(given, arch="sm_90").segments
    assert segment.problem is not None
    assert segment.problem.parallel == given[0][part][..., 0].numel()


def test_slices_of_both_kinds() -> None:
    """Of two slices each computes its own rows; along the reduced dim all of a row is needed."""
    parts = LAST, MIDDLE, (slice(None), slice(None), slice(0, 8))

    def body(fd: Any, x: Any) -> Any:
        y = norm(fd, x)
        return tuple(sliced(fd, y, part, SMALL) for part in parts)

    x = torch.randn(SMALL)
    for y, part in zip(record(body, [x]).run([x]), parts, strict=True):
        torch.testing.assert_close(y, normed(x)[part])


def test_behind_permutes_and_another_sum() -> None:
    part = slice(2, 5), slice(4, 6)

    def body(fd: Any, x: Any) -> Any:
        y = fd.ops.exp(fd.ops.permute(norm(fd, x), [1, 0, 2]))
        total = fd.ops.broadcast_in_dim(fd.ops.sum(y, [2]), [9, 6, 3], [0, 1])
        return sliced(fd, fd.ops.mul(total, 2.0), part, (9, 6, 3))

    x = torch.randn(SMALL)
    total = normed(x).permute(1, 0, 2).exp().sum(2)[..., None].expand(9, 6, 3) * 2
    torch.testing.assert_close(record(body, [x]).run([x])[0], total[part])


def stored(fd: Any, x: Any, sizes: tuple[int, ...]) -> Any:
    y = norm(fd, x)
    return y, sliced(fd, y, LAST, sizes)


def summed(fd: Any, x: Any, sizes: tuple[int, ...]) -> Any:
    return fd.ops.sum(fd.ops.exp(x), [2]), sliced(fd, fd.ops.sum(x, [2]), LAST, sizes[:2])


@pytest.mark.parametrize("body", [stored, summed])
def test_what_others_need_stays_whole(body: Any) -> None:
    """A norm that is stored, or a sum over the same rows, is computed for all rows anyway."""
    x = torch.randn(SMALL)
    found = record(lambda fd, x: body(fd, x, SMALL), [x]).run([x])
    whole = normed(x) if body is stored else x.sum(2)
    torch.testing.assert_close(found[0], whole if body is stored else x.exp().sum(2))
    torch.testing.assert_close(found[1], whole[LAST])
    given = [torch.empty(LARGE, device="meta")]
    segments = record(lambda fd, x: body(fd, x, LARGE), given).segments(given, arch="sm_90")
    problems = [s.problem for s in segments.segments if s.problem is not None]
    assert sum(problem.reduced == LARGE[2] for problem in problems) == 1


@pytest.mark.parametrize("size", [0, 1])
def test_empty_and_single_slices(size: int) -> None:
    x, part = torch.randn(SMALL), (slice(2, 2 + size),)
    fd = record(lambda fd, x: sliced(fd, norm(fd, x), part, SMALL), [x])
    torch.testing.assert_close(fd.run([x])[0], normed(x)[part])


def test_nan_beside_the_slice_does_not_matter() -> None:
    x = torch.randn(SMALL)
    x[:, :-1] = float("nan")
    fd = record(lambda fd, x: sliced(fd, norm(fd, x), LAST, SMALL), [x])
    assert not fd.run([x])[0].isnan().any()


def test_a_long_chain_behind_a_sum() -> None:
    def body(fd: Any, x: Any) -> Any:
        y = fd.ops.sub(x, fd.ops.sum(x, [2], keepdim=True))
        for _ in range(1200):
            y = fd.ops.add(y, 0.25)
        return sliced(fd, y, LAST, SMALL)

    x = torch.randn(SMALL)
    expected = (x - x.sum(2, keepdim=True))[LAST] + 300.0
    torch.testing.assert_close(record(body, [x]).run([x])[0], expected)


def test_beside_an_op_with_results_of_several_ranks() -> None:
    def body(fd: Any, x: Any) -> Any:
        heads = fd.ops.reshape(x, [6, 9, 2, 20])
        out, statistics, *_ = fd.ops.sdpfa_fwd(heads, heads, heads)
        return out, statistics, sliced(fd, norm(fd, x), LAST, SMALL)

    x = torch.randn(SMALL)
    torch.testing.assert_close(record(body, [x]).run([x])[2], normed(x)[LAST])


def parallel_of_reductions(body: Any, given: list[torch.Tensor]) -> list[int]:
    """The rows of each kernel that reduces."""
    segments = record(body, given).segments(given, arch="sm_90").segments
    problems = [segment.problem for segment in segments if segment.problem is not None]
    return [problem.parallel for problem in problems if problem.reduced > 1]


@pytest.mark.parametrize("count", [4, 16])
def test_slices_that_overlap_reduce_no_row_twice(count: int) -> None:
    """A moving sum of all row sums but the first: 132 us by the cost model if each slice reduces
    its rows, 31 if all rows are reduced."""
    rows = 700 - count

    def body(fd: Any, x: Any) -> Any:
        sums = fd.ops.sum(x, [1])
        parts = [fd.ops.slice(sums, [1 + n], [1 + n + rows]) for n in range(count)]
        return functools.reduce(fd.ops.add, parts)

    given = [torch.empty(701, 4096, device="meta")]
    assert parallel_of_reductions(body, given) == [701]


@pytest.mark.parametrize(("start", "columns"), [(1, 4096), (64, 4032)])
def test_columns_that_begin_inside_vectors_are_all_reduced(start: int, columns: int) -> None:
    """Loads of 2 bytes take more time than what they leave out."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.slice(fd.ops.sum(x, [0]), [start], [4096])

    given = [torch.empty(64, 4096, dtype=torch.bfloat16, device="meta")]
    assert parallel_of_reductions(body, given) == [columns]


def test_a_reduction_that_stays_whole_is_not_narrowed_for_another() -> None:
    """The maximum is stored, so all of it is computed; the sum behind it is narrowed."""

    def body(fd: Any, x: Any) -> Any:
        largest = fd.ops.max(x, [2])
        shifted = fd.ops.sub(x, fd.ops.broadcast(largest, [False, False, True]))
        return largest, sliced(fd, fd.ops.sum(shifted, [1]), (slice(0, 2),), (6, 40))

    x = torch.randn(SMALL)
    largest, total = record(body, [x]).run([x])
    torch.testing.assert_close(largest, x.amax(2))
    torch.testing.assert_close(total, (x - x.amax(2, keepdim=True)).sum(1)[:2])
