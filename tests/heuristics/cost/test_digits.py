"""Instructions of quotients and remainders of the positions of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.digits import (
    QUOTIENT,
    REMAINDER,
    SHIFT,
    digits_of,
    index_instructions,
)
from tritonfuser.heuristics.params import ReductionParams
from tritonfuser.heuristics.problem import ElementWork
from tritonfuser.heuristics.streams import Stream, StrideTerm

AXES = (5, 6, 35)


def lying(*steps: int) -> Stream:
    """A tensor with these strides along the axes, 0 where it does not run along one."""
    terms = zip(range(len(AXES)), AXES, steps, strict=True)
    return Stream(
        item_bytes=4,
        total_bytes=4 * prod(AXES),
        stride_terms=tuple(StrideTerm(axis, 1, n, step) for axis, n, step in terms if step),
    )


WHOLE, WEIGHT, ROWS = lying(210, 35, 1), lying(0, 0, 1), lying(6, 1, 0)
PADDED, TURNED = lying(240, 40, 1), lying(210, 1, 6)


def instructions(axes: Sequence[int], places: Sequence[int], streams: list[Stream]) -> float:
    digits = {digit for stream in streams for digit in digits_of(axes, places, stream)}
    return index_instructions(axes, places, digits)


@pytest.mark.parametrize(
    ("streams", "wanted"),
    [
        ([WHOLE], 0.0),
        ([WHOLE, WEIGHT], QUOTIENT + REMAINDER),  # r % 35
        ([WHOLE, ROWS], QUOTIENT),  # r // 35
        ([WEIGHT, WEIGHT, ROWS], QUOTIENT + REMAINDER),  # both, by one quotient
        ([PADDED], QUOTIENT + REMAINDER),  # r // 35 * 40 + r % 35
        ([TURNED], 2 * QUOTIENT + 2 * REMAINDER),  # r // 210, r // 35 % 6, r % 35
        ([TURNED, WEIGHT, WHOLE], 2 * QUOTIENT + 2 * REMAINDER),
    ],
)
def test_digits_are_counted_once(streams: list[Stream], wanted: float) -> None:
    assert instructions(AXES, (0, 1, 2), streams) == wanted


def test_powers_of_two_are_shifts() -> None:
    terms = (StrideTerm(1, 1, 32, 1),)
    assert instructions((4, 32), (0, 1), [replace(WHOLE, stride_terms=terms)]) == (
        SHIFT + REMAINDER
    )


def test_an_axis_that_is_a_side_of_its_own_has_no_digits() -> None:
    assert instructions(AXES, (2,), [PADDED, WEIGHT]) == 0
    assert instructions(AXES, (), [PADDED]) == 0


def problem_of(body: Any, *shapes: tuple[int, ...]) -> Any:
    given = [torch.empty(shape, device="meta") for shape in shapes]
    return record(body, given).segments(given, arch="sm_90").segments[0].problem


def weighted(fd: Any, x: Any, weight: Any) -> Any:
    return fd.ops.mul(x, fd.ops.broadcast(weight, [True, True, False]))


def test_each_step_of_a_row_computes_them() -> None:
    def body(fd: Any, x: Any, weight: Any) -> Any:
        return fd.ops.sum(weighted(fd, x, weight), [1, 2])

    problem = problem_of(body, (400, 30, 35), (35,))
    params = ReductionParams(block_x=1, block_r=256, num_warps=1, persistent=False)
    counts = Counting(problem, ElementWork()).counts(params)
    each = 256 / 32
    assert counts.index_instructions == each * (QUOTIENT + REMAINDER)
