"""What a kernel computes for each element: a value at each index at which it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser.lowering.cost import segment_element_work

ROWS, ROW = 4096, 256


def work_of(define: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    """The work of the only kernel of a definition."""
    given = [torch.empty(shape, device="meta") for shape in shapes]
    (piece,) = record(define, given).segments(given, arch="sm_90").segments
    return segment_element_work(piece)


def halves(fd: Any, x: Any) -> tuple[Any, Any]:
    rows, row = ROWS, ROW // 2
    return (
        fd.ops.slice(x, [0, 0], [rows, row], [1, 1]),
        fd.ops.slice(x, [0, row], [rows, 2 * row], [1, 1]),
    )


def test_each_part_of_a_cat_is_computed_for_all_of_it() -> None:
    def cat(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.sum(fd.ops.cat([fd.ops.exp(x), fd.ops.exp(y)], 1), [1])

    whole = work_of(lambda fd, x: fd.ops.sum(fd.ops.exp(x), [1]), (ROWS, ROW))
    parts = work_of(cat, (ROWS, ROW // 2), (ROWS, ROW // 2))
    assert parts.special_before == 2 * whole.special_before > 0
    assert parts.before >= 2 * whole.before


def test_a_value_at_three_indices_is_computed_three_times() -> None:
    """Rotated halves of a row that is normalized."""

    def rotated(fd: Any, x: Any) -> Any:
        powers = fd.ops.exp(x)
        first, second = halves(fd, powers)
        turned = fd.ops.cat([fd.ops.neg(second), first], 1)
        mean = fd.ops.sum(powers, [1], keepdim=True)
        return fd.ops.mul(fd.ops.add(powers, turned), mean)

    plain = work_of(
        lambda fd, x: fd.ops.mul(fd.ops.exp(x), fd.ops.sum(fd.ops.exp(x), [1], keepdim=True)),
        (ROWS, ROW),
    )
    found = work_of(rotated, (ROWS, ROW))
    assert found.special_before + found.special_after == 3 * (
        plain.special_before + plain.special_after
    )


@pytest.mark.parametrize("times", [1, 3])
def test_random_numbers_are_drawn_at_each_index(times: int) -> None:
    def dropped(fd: Any, x: Any) -> Any:
        drawn = fd.ops.uniform(0.0, 1.0, [ROWS, ROW], rng_seed=1, rng_offset=0)
        kept = fd.ops.where(fd.ops.lt(drawn, 0.5), x, 0.0)
        if times == 1:
            return fd.ops.sum(kept, [1])
        first, second = halves(fd, kept)
        turned = fd.ops.cat([fd.ops.neg(second), first], 1)
        return fd.ops.sum(fd.ops.mul(kept, turned), [1])

    assert work_of(dropped, (ROWS, ROW)).draws == times


@pytest.mark.parametrize("crossed", [False, True])
def test_numbers_of_successive_rows_share_no_counter(crossed: bool) -> None:
    """sm_90, a dropout of the transposed tensor beside sums of its rows: 40 instructions of Philox
    an element, 10 where the random numbers lie along the rows."""

    def dropped(fd: Any, x: Any) -> Any:
        order = [1, 0] if crossed else [0, 1]
        sizes = [(ROWS, ROW)[dim] for dim in order]
        drawn = fd.ops.permute(fd.ops.uniform(0.0, 1.0, sizes, rng_seed=1, rng_offset=0), order)
        return fd.ops.sum(fd.ops.where(fd.ops.lt(drawn, 0.5), x, 0.0), [1])

    found = work_of(dropped, (ROWS, ROW))
    assert (found.draws, found.lone_draws) == (1, int(crossed))


def test_what_is_broadcast_counts_by_its_share_of_the_elements() -> None:
    def scaled(fd: Any, x: Any, y: Any) -> Any:
        factor = fd.ops.broadcast(fd.ops.exp(y), [False, True])
        return fd.ops.sum(fd.ops.mul(x, factor), [1])

    found = work_of(scaled, (ROWS, ROW), (ROWS,))
    assert found.special_before == pytest.approx(1 / ROW)
