"""Boxes that the kernel of a reduction computes along its rows, with axes of their own for these.

Each part of a ``cat`` along rows has an axis of its own along them, as long as a row is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.e2e.opened import check_open
from tests.lowering.graphs import noise, softmax
from tests.lowering.harness import H200, check, lowered, record, schedulers, small, texts
from tests.schedules.test_round_trip import check_fixed
from tritonfuser import DataType
from tritonfuser.lowering.lowered import Lowered

ROWS, WIDTH = [7, 5], 32


def normed(fd: Any, x: Any, width: int = WIDTH) -> Any:
    """Rows over their root mean square."""
    mean = fd.ops.mul(fd.ops.sum(fd.ops.mul(x, x), [-1], keepdim=True), 1 / width)
    return fd.ops.mul(x, fd.ops.rsqrt(fd.ops.add(mean, 1e-5)))


def after(fd: Any, x: Any) -> Any:
    return fd.ops.cat([normed(fd, x), x], -1)


def before(fd: Any, x: Any) -> Any:
    return fd.ops.cat([x, normed(fd, x)], -1)


def around(fd: Any, x: Any) -> Any:
    return fd.ops.cat([fd.ops.neg(x), normed(fd, x), fd.ops.exp(x)], -1)


def twice(fd: Any, x: Any) -> Any:
    return fd.ops.cat([x, normed(fd, x), x, normed(fd, x)], -1)


def handed_out(fd: Any, x: Any) -> Any:
    """Parts that are outputs too."""
    scaled, powers = normed(fd, x), fd.ops.exp(x)
    return fd.ops.cat([scaled, powers], -1), scaled, powers


def turned(fd: Any, x: Any) -> Any:
    """The concatenation lies in memory with its rows outermost."""
    return fd.ops.permute(fd.ops.cat([normed(fd, x), x], -1), [2, 0, 1])


def padded(fd: Any, x: Any) -> Any:
    """Sums of rows, and the rows with zeros behind them."""
    return fd.ops.sum(x, [-1]), fd.ops.pad(x, [0, 32])


BODIES = {
    body.__name__: body for body in (after, before, around, twice, handed_out, turned, padded)
}
of_each = pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)


def loads(found: Lowered) -> int:
    """Loads in all kernels."""
    return sum(text.count("tl.load(") for text in texts(found))


@pytest.mark.covering
@of_each
@pytest.mark.parametrize("width", [WIDTH, 31, 40])
def test_rows_are_loaded_once_for_all_parts(body: Callable[..., Any], width: int) -> None:
    found = check(body, noise(*ROWS, width))
    in_boxes = body is not padded or width != 31
    assert loads(found) == 1 or not in_boxes


@of_each
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.half])
def test_narrow_rows(body: Callable[..., Any], dtype: torch.dtype) -> None:
    def narrow(fd: Any, x: Any) -> Any:
        found = body(fd, fd.ops.cast(x, DataType.Float))
        found = found if isinstance(found, tuple) else (found,)
        return tuple(fd.ops.cast(each, DataType.BFloat16) for each in found)

    found = check(narrow, noise(*ROWS, 40).to(dtype))
    assert loads(found) == 1


@of_each
def test_nan_and_infinity_stay_in_their_rows(body: Callable[..., Any]) -> None:
    x = noise(*ROWS, WIDTH)
    x[3, 4, 5], x[6, 0, 20], x[2, 1] = torch.nan, torch.inf, -0.0
    check(body, x)


@of_each
@pytest.mark.parametrize("sizes", [(0, 5, 8), (7, 0, 8), (7, 5, 0), (7, 5, 1), (1, 1, 8)])
def test_empty_dims_and_dims_of_one(body: Callable[..., Any], sizes: tuple[int, ...]) -> None:
    check(body, noise(*sizes))


@pytest.mark.covering
@of_each
@pytest.mark.parametrize("device", [H200, small(4)], ids=["all", "few"])
def test_one_kernel_for_many_sizes(body: Callable[..., Any], device: Any) -> None:
    sizes = [(6, 5, 24), (9, 4, 40), (3, 8, 24), (12, 12, 33), (6, 5, 25), (2, 70, 16)]
    inputs = [[noise(*each)] for each in sizes]
    ran, was_open = check_open(record(body, inputs[0]), inputs, device)
    assert was_open and ran > 0


@of_each
def test_their_schedule_makes_the_same_kernels(body: Callable[..., Any]) -> None:
    x = noise(*ROWS, WIDTH)
    check_fixed(record(body, [x]), [x])


@pytest.mark.parametrize("offset", [0, 8])
def test_parts_of_other_places_of_a_row(offset: int) -> None:
    """They are as long as a row by chance."""

    def body(fd: Any, x: Any) -> Any:
        first = fd.ops.slice(x, [0, 0, 0], [*ROWS, WIDTH], [1, 1, 1])
        second = fd.ops.slice(x, [0, 0, offset], [*ROWS, WIDTH + offset], [1, 1, 1])
        return fd.ops.cat([normed(fd, first), second], 2)

    found = check(body, noise(*ROWS, WIDTH + 8))
    assert loads(found) == 1 + (offset > 0)


def test_parts_of_other_rows() -> None:
    """Rows in the order of the other dim, where both are as long."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.cat([normed(fd, x), fd.ops.permute(x, [1, 0, 2])], 2)

    check(body, noise(6, 6, WIDTH))


def test_parts_that_are_the_rows_turned() -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.cat([normed(fd, x), fd.ops.permute(x, [0, 2, 1])], -1)

    check(body, noise(3, WIDTH, WIDTH))


def test_parts_along_another_dim_and_of_another_length() -> None:
    def other_dim(fd: Any, x: Any) -> Any:
        return fd.ops.cat([normed(fd, x), x], 1)

    def shorter(fd: Any, x: Any) -> Any:
        return fd.ops.cat([normed(fd, x), fd.ops.slice(x, [0, 0, 0], [*ROWS, 8], [1, 1, 1])], 2)

    for body in (other_dim, shorter):
        check(body, noise(*ROWS, WIDTH))


@pytest.mark.parametrize("dims", [[1, 0, 2], [0, 2, 1], [2, 0, 1]])
def test_parts_with_a_tensor_that_lies_otherwise(dims: list[int]) -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.cat([normed(fd, x), fd.ops.mul(fd.ops.permute(y, dims), x)], 2)

    y = noise(6, 6, WIDTH, seed=1).permute(*(dims.index(d) for d in range(3))).contiguous()
    check(body, noise(6, 6, WIDTH), y)


def test_parts_of_columns_that_are_reduced() -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.cat([softmax(fd, x, 1), x], 1)

    found = check(body, noise(3, 16, 40))
    assert loads(found) == 1


def test_parts_beside_a_running_sum_and_a_sum_over_rows() -> None:
    def running(fd: Any, x: Any) -> Any:
        return fd.ops.cat([fd.ops.cumsum(x, -1), x], -1)

    def over_rows(fd: Any, x: Any) -> Any:
        return fd.ops.cat([normed(fd, x), x], -1), fd.ops.sum(x, [0, 1])

    for body in (running, over_rows):
        check(body, noise(*ROWS, WIDTH))


def test_a_softmax_with_its_scores() -> None:
    def body(fd: Any, x: Any) -> Any:
        wide = fd.ops.cast(x, DataType.Float)
        return fd.ops.cat([fd.ops.cast(softmax(fd, wide), DataType.Half), x], 2)

    found = check(body, noise(*ROWS, WIDTH).half())
    assert schedulers(found) == ["inner_persistent"]


def test_boxes_do_not_change_how_rows_are_split() -> None:
    """Of a sum over all elements, and of rows too few for the device."""

    def parts_of(body: Callable[..., Any], *sizes: int) -> list[Any]:
        return [each.parts for each in lowered(body, [x(*sizes)]).segmented.rewrites.splits]

    def x(*sizes: int) -> torch.Tensor:
        return torch.empty(sizes)

    def all_of(fd: Any, x: Any) -> Any:
        return fd.ops.sum(x, [0, 1])

    def rows_of(fd: Any, x: Any) -> Any:
        return fd.ops.sum(x, [1])

    for body, sizes in ((all_of, (4099, 1000)), (rows_of, (3, 999_000))):

        def beside(fd: Any, x: Any, body: Callable[..., Any] = body) -> Any:
            return body(fd, x), fd.ops.cat([x, fd.ops.exp(x)], 1)

        wanted = parts_of(body, *sizes)
        assert wanted and parts_of(beside, *sizes) == wanted


def test_boxes_of_rows_too_few_for_the_device_are_computed_beside_them() -> None:
    few, many = ([torch.empty(rows, 8192)] for rows in (16, 1024))
    assert schedulers(lowered(after, few)) == ["inner_persistent", "pointwise"]
    assert schedulers(lowered(after, many)) == ["inner_persistent"]
