"""Random numbers by the tiles that they are drawn for: four of a draw, or one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.params import InnerPersistentParams, PointwiseParams, TransposeParams
from tritonfuser.lowering.cost import segment_element_work


def dropped(fd: Any, x: Any, *others: Any) -> Any:
    sizes = x.shape()
    for other in others:
        x = fd.ops.add(x, other)
    drawn = fd.ops.uniform(0.0, 1.0, sizes, rng_seed=1, rng_offset=0)
    return fd.ops.where(fd.ops.lt(drawn, 0.5), x, 0.0)


def counted(params: Any, *, crossing: bool, row: int = 256) -> float:
    given = [torch.empty(64, 128, row, device="meta")]
    if crossing:
        given.append(torch.empty(64, row, 128, device="meta").permute(0, 2, 1))
    (piece,) = record(dropped, given).segments(given, arch="sm_90").segments
    assert isinstance(piece.params, TransposeParams if crossing else PointwiseParams)
    return float(Counting(piece.problem, segment_element_work(piece)).counts(params).draws)


def test_neighbours_of_a_thread_share_a_draw() -> None:
    assert counted(PointwiseParams(block_x=1024, num_warps=4), crossing=False) == 1


@pytest.mark.parametrize(("row", "block_y", "draws"), [(254, 64, 4), (254, 4, 2), (256, 64, 1)])
def test_rows_of_odd_length_take_more_counters_in_tiles_of_two_sides(
    row: int, block_y: int, draws: int
) -> None:
    """H200, a dropout by tiles of 128 x 8: 288.8 million instructions, 106.6 by tiles of one side.
    Threads of fewer elements than a draw has share none anyway. Rows of whole counters are drawn
    together."""
    params = TransposeParams(block_x=64, block_y=block_y, num_warps=4)
    assert counted(params, crossing=True, row=row) == draws


@pytest.mark.parametrize(("order", "draws"), [((0, 1, 2), 1), ((2, 1, 0), 4)])
def test_tiles_in_another_order_than_what_is_drawn(order: tuple[int, ...], draws: int) -> None:
    """H200, 764 million normal numbers in tiles along their first dim: 5.1 ms, 1.3 predicted."""
    sizes = [(64, 128, 256)[dim] for dim in order]
    given = [torch.empty(sizes, device="meta").permute([order.index(dim) for dim in range(3)])]
    (piece,) = record(dropped, given).segments(given, arch="sm_90").segments
    assert isinstance(piece.params, PointwiseParams)
    counting = Counting(piece.problem, segment_element_work(piece))
    assert float(counting.counts(piece.params).draws) == draws


def test_columns_take_a_counter_for_each_number_and_rows_do_not() -> None:
    def reduced(fd: Any, x: Any, dim: int) -> Any:
        return fd.ops.sum(dropped(fd, x), [dim])

    given = [torch.empty(64, 128, 256, device="meta")]
    found = []
    for dim in (1, 2):
        (piece,) = (
            record(lambda fd, x, dim=dim: reduced(fd, x, dim), given)
            .segments(given, arch="sm_90")
            .segments
        )
        counting = Counting(piece.problem, segment_element_work(piece))
        found.append(float(counting.counts(piece.params).draws))
    assert found[0] > found[1] == 1


@pytest.mark.parametrize(
    ("row", "warps", "draws"), [(904, 8, 1), (903, 1, 2.1), (903, 4, 2.1), (903, 8, 4.2)]
)
def test_rows_between_counters_draw_eight_neighbours_of_three(
    row: int, warps: int, draws: float
) -> None:
    """sm_90, a dropout of rows of 903 before a maximum: 30.5 instructions a number with 32 elements
    a thread, 38 with 8 and 68 with 4; 14.5, 16 and 18 for rows of 904."""

    def body(fd: Any, x: Any) -> Any:
        x = dropped(fd, x)
        largest = fd.ops.broadcast(fd.ops.max(x, [1]), [False, True])
        return fd.ops.sub(x, largest)

    given = [torch.empty(65536, row, device="meta")]
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    params = InnerPersistentParams(block_x=1, block_r=1024, persistent=True, num_warps=warps)
    counting = Counting(piece.problem, segment_element_work(piece))
    assert float(counting.counts(params).draws) == pytest.approx(draws)


def drawn_behind(view: str) -> float:
    """The draws of an element of a pointwise kernel that reads random numbers through a view."""

    def body(fd: Any, x: Any, index: Any) -> Any:
        if view == "index_select":
            return fd.ops.index_select(dropped(fd, x), index, 1)
        pads = {"pad by four": 4, "pad by two": 2}.get(view, 0)
        return fd.ops.pad(dropped(fd, x), [pads, pads])

    given = [torch.empty(4096, 256, device="meta")]
    given.append(torch.empty(128, dtype=torch.int64, device="meta"))
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    counting = Counting(piece.problem, segment_element_work(piece))
    return float(counting.counts(PointwiseParams(block_x=1024, num_warps=4)).draws)


@pytest.mark.parametrize(
    ("view", "draws"),
    [("none", 1), ("pad by four", 1), ("pad by two", 4), ("index_select", 4)],
)
def test_neighbours_behind_a_view_share_a_draw_where_it_keeps_counters(
    view: str, draws: float
) -> None:
    """H200, a dropout that is read at rows of an index and padded from 57 columns to 61: 231 us,
    104 predicted with four numbers of a draw."""
    assert drawn_behind(view) == draws
