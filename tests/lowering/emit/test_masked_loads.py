"""Loads that give a reduction's neutral element outside of their mask, and where they must not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, texts
from tritonfuser import DataType

D = DataType


def rows(*, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Rows that no block fills, all below zero: a zero among them would be the largest."""
    return (noise(5, 37).abs() * -4 - 1).to(dtype)


def made(body: Any, *inputs: Any) -> str:
    """The text of the kernel, after a comparison with torch."""
    (text,) = texts(check(body, *inputs, block_x=2, block_r=64))
    return text


def total(fd: Any, x: Any, *rest: Any) -> Any:
    return fd.ops.sum(x, [1])


def largest(fd: Any, x: Any) -> Any:
    return fd.ops.max(x, [1])


def powers(fd: Any, x: Any) -> Any:
    return fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))


def softmax(fd: Any, x: Any) -> Any:
    found = powers(fd, x)
    return fd.ops.div(found, fd.ops.sum(found, [1], keepdim=True))


GIVEN = {
    "a sum": (total, [rows()], "other=0)"),
    "a sum of casts": (
        lambda fd, x: total(fd, fd.ops.cast(x, D.Float)),
        [rows(dtype=torch.bfloat16)],
        "other=0)",
    ),
    "a maximum": (largest, [rows()], 'other=float("-inf"))'),
    "a maximum of casts": (
        lambda fd, x: largest(fd, fd.ops.cast(x, D.Double)),
        [rows(dtype=torch.half)],
        'other=float("-inf"))',
    ),
    "a minimum": (lambda fd, x: fd.ops.min(x, [1]), [-rows()], 'other=float("inf"))'),
    "a product": (lambda fd, x: fd.ops.prod(x, [1]), [rows() / 4], "other=1.0)"),
    "integers": (largest, [rows(dtype=torch.int64)], "other=-9223372036854775808)"),
    "a dot product": (
        lambda fd, x, y: total(fd, fd.ops.mul(x, y)),
        [rows(), noise(5, 37, seed=1)],
        "other=0)",
    ),
    "a softmax": (lambda fd, x: softmax(fd, x), [rows()], 'other=float("-inf"))'),
    "a softmax of casts, scaled": (
        lambda fd, x: softmax(fd, fd.ops.mul(fd.ops.cast(x, D.Float), 0.125)),
        [rows(dtype=torch.bfloat16)],
        'other=float("-inf"))',
    ),
    "a log of a sum of exponentials": (
        lambda fd, x: fd.ops.log(total(fd, powers(fd, x))),
        [rows()],
        'other=float("-inf"))',
    ),
    "squares, halved": (
        lambda fd, x: total(fd, fd.ops.mul(fd.ops.mul(x, x), 0.5)),
        [rows()],
        "other=0)",
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_load_gives_the_neutral_element(name: str) -> None:
    body, inputs, other = GIVEN[name]
    text = made(body, *inputs)
    assert "tl.where" not in text, text
    assert other in text, text


KEPT = {
    "exponentials": lambda fd, x: total(fd, fd.ops.exp(x)),
    "shifted": lambda fd, x: total(fd, fd.ops.add(x, 1.0)),
    # 0 * -1 is -0: a sum of zeros below zero keeps its sign.
    "negated": lambda fd, x: total(fd, fd.ops.mul(x, -1.0)),
    "times infinity": lambda fd, x: total(fd, fd.ops.mul(x, float("inf"))),
    "largest of squares": lambda fd, x: largest(fd, fd.ops.mul(x, x)),
    "below zero, scaled by a negative": lambda fd, x: softmax(fd, fd.ops.mul(x, -0.5)),
    "below the largest, shifted": lambda fd, x: softmax(fd, fd.ops.exp(x)),
    "below another number": lambda fd, x: total(
        fd, fd.ops.exp(fd.ops.sub(x, fd.ops.min(x, [1], keepdim=True)))
    ),
    "through integers": lambda fd, x: largest(fd, fd.ops.cast(fd.ops.cast(x, D.Int), D.Float)),
    "by a number of the row": lambda fd, x: total(
        fd, fd.ops.mul(x, fd.ops.max(x, [1], keepdim=True))
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_certain_is_masked(name: str) -> None:
    assert "tl.where" in made(KEPT[name], rows())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("padded", [False, True])
def test_divisors_are_one_where_masked(dtype: torch.dtype, padded: bool) -> None:
    """Zeros would take the slow path of a division, and their warp with them."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        found = fd.ops.truediv(x, y)
        return fd.ops.sum(fd.ops.pad(found, [2, 1]) if padded else found, [1])

    text = made(body, rows(), rows(dtype=dtype))
    (load,) = (line for line in text.splitlines() if "tl.load(" in line and "tv1_ptr +" in line)
    assert load.endswith("other=1.0)"), text


@pytest.mark.parametrize("first", ["a sum", "a quotient"])
def test_a_divisor_that_is_summed_is_zero_where_masked(first: str) -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        made = {"a sum": lambda: total(fd, y), "a quotient": lambda: fd.ops.div(x, y)}
        return tuple(made[name]() for name in sorted(made, key=lambda name: name != first))

    assert "other=1.0" not in made(body, rows(), rows())


def test_integers_that_divide_are_loaded_as_they_are() -> None:
    text = made(lambda fd, x, y: total(fd, fd.ops.truediv(x, y)), rows(), rows().to(torch.int64))
    assert "other=1.0" not in text, text


@pytest.mark.parametrize("special", [float("inf"), float("-inf"), float("nan")])
def test_a_softmax_of_rows_with_infinities(special: float) -> None:
    """Rows of which all, or one, are not finite; the others are as they would be without them."""
    x = rows()
    x[0] = special
    x[2, 5] = special
    text = made(softmax, x)
    assert "tl.where" not in text, text


def test_rows_behind_the_last_are_no_part_of_a_sum_over_rows() -> None:
    """Their maximum is -inf, and -inf less that is NaN."""
    body = lambda fd, x: (softmax(fd, x), fd.ops.sum(powers(fd, x), [0]))  # noqa: E731
    check(body, rows())
    check(body, rows(), block_m=2, block_r=64)


def test_two_reductions_that_want_different_numbers() -> None:
    """The second is masked by itself; what the first gets stays as it is."""
    text = made(lambda fd, x: (largest(fd, x), total(fd, x), fd.ops.min(x, [1])), rows())
    assert text.count("tl.where") == 2, text


def test_infinities_beside_the_mask() -> None:
    """Zeros of masked lanes are multiplied by zeros, whatever the other elements are."""
    x = rows()
    x[1, 3] = float("inf")
    text = made(lambda fd, x, y: total(fd, fd.ops.mul(x, y)), x, noise(5, 37, seed=1))
    assert "tl.where" not in text, text


def test_a_maximum_is_not_rounded() -> None:
    """It is one of the numbers of bfloat16: to round it changes nothing."""
    body = lambda fd, x: fd.ops.sub(fd.ops.max(x, [1], keepdim=True), x)  # noqa: E731
    (text,) = texts(check(body, rows(dtype=torch.bfloat16), block_x=2, block_r=64))
    assert text.count(".to(tl.bfloat16)") == 0, text


def test_a_sum_is_rounded_where_that_changes_bits() -> None:
    body = lambda fd, x: fd.ops.sub(fd.ops.sum(x, [1], keepdim=True), x)  # noqa: E731
    (text,) = texts(check(body, rows(dtype=torch.bfloat16), block_x=2, block_r=64))
    assert text.count(".to(tl.bfloat16)") == 1, text


def test_masks_are_built_once() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        padded = [fd.ops.pad(value, [1, 2]) for value in (x, y)]
        return fd.ops.mul(*padded), fd.ops.sum(padded[0], [1])

    (text,) = texts(check(body, noise(5, 37), noise(5, 37, seed=1), block_x=2, block_r=64))
    lines = [line.split(" = ")[1] for line in text.splitlines() if " = " in line and "&" in line]
    assert len(lines) == len(set(lines)), text
    assert not any("&" in line for line in text.splitlines() if "tl.load" in line), text


def test_nothing_is_computed_that_nobody_reads() -> None:
    """The squares of a mean that is used without its variance."""
    body = lambda fd, x: fd.ops.var_mean(x, [1], 0, False)[1]  # noqa: E731
    (text,) = texts(check(body, noise(5, 37), block_x=2, block_r=64))
    assert "centered" not in text, text
