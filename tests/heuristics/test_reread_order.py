"""Tensors that later programs load again: misses of the L2 cache, and the order of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser import DataType
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.params import InnerPersistentParams
from tritonfuser.heuristics.problem import ElementWork
from tritonfuser.lowering.cost import segment_time


def biased(fd: Any, x: Any, bias: Any) -> Any:
    """A softmax of scores with a bias that is the same for all of a batch."""
    x = fd.ops.add(x, fd.ops.broadcast(bias, [True, False, False]))
    along = [False, False, True]
    powers = fd.ops.exp(fd.ops.sub(x, fd.ops.broadcast(fd.ops.max(x, [2]), along)))
    return fd.ops.div(powers, fd.ops.broadcast(fd.ops.sum(powers, [2]), along))


def one_segment(batch: int, rows: int) -> Any:
    shapes = (batch, rows, 1024), (rows, 1024)
    given = [torch.empty(shape, device="meta") for shape in shapes]
    (piece,) = record(biased, given).segments(given, arch="sm_90").segments
    return piece


@pytest.mark.parametrize(
    ("batch", "rows", "axes"), [(16, 1 << 14, (1, 0)), (16, 256, (0, 1)), (2, 256, (0, 1))]
)
def test_rows_that_share_a_bias_follow_one_another(
    batch: int, rows: int, axes: tuple[int, ...]
) -> None:
    """192 MiB lie between its uses, or 3 MiB."""
    piece = one_segment(batch, rows)
    assert isinstance(piece.params, InnerPersistentParams)
    assert piece.params.axes == axes


def test_rereads_that_miss_are_bytes_that_the_kernel_moves() -> None:
    piece = one_segment(16, 1 << 14)
    slower = InnerPersistentParams(
        block_x=1, block_r=1024, persistent=True, num_warps=4, axes=(0, 1)
    )
    times = [segment_time(piece, params) for params in (piece.params, slower)]
    assert times[0] is not None and times[1] is not None
    assert times[1].resources["memory"] > 1.3 * times[0].resources["memory"]
    (lost,) = Counting(piece.problem, ElementWork()).reread_bytes(slower).values()
    bias = 4 * 1024 * (1 << 14)
    assert 0.9 * 15 * bias < lost < 15 * bias


def scaled(fd: Any, x: Any, *tables: Any) -> Any:
    """Heads times tables of their positions, which are the same for all of them."""
    for table in tables:
        x = fd.ops.mul(x, fd.ops.broadcast(table, [True, True, False, False]))
    return fd.ops.cast(x, DataType.BFloat16)


def flat_segment(tables: int) -> Any:
    x = torch.empty(4, 32, 2048, 128, dtype=torch.bfloat16, device="meta")
    given = [x, *(torch.empty(2048, 128, device="meta") for _ in range(tables))]
    (piece,) = record(scaled, given).segments(given, arch="sm_90").segments
    return piece


def test_the_heads_of_a_position_are_in_one_program() -> None:
    """Wide tables are then loaded once for all heads. H100, Llama's rotary: 60 us, and 51."""
    piece = flat_segment(2)
    assert piece.params.axes == (0, 2, 1, 3)
    apart = replace(piece.params, axes=(0, 1, 2, 3))
    times = [segment_time(piece, params) for params in (piece.params, apart)]
    assert times[0] is not None and times[1] is not None
    assert times[0].seconds < 0.8 * times[1].seconds


def test_axes_stay_as_memory_has_them_where_little_is_read_again() -> None:
    assert flat_segment(1).params.axes == (0, 1, 2, 3)


def with_column_sums(fd: Any, x: Any, factor: Any) -> Any:
    """Rows less their sums, times a number for each row of a matrix, and sums over its rows."""
    rows = fd.ops.mul(x, fd.ops.broadcast(factor, [True, False, True]))
    less = fd.ops.sub(rows, fd.ops.broadcast(fd.ops.sum(rows, [2]), [False, False, True]))
    return less, fd.ops.sum(less, [1])


@pytest.mark.parametrize("matrices", [2, 16])
@pytest.mark.parametrize("row", [7, 64])
def test_axes_stay_in_their_groups(matrices: int, row: int) -> None:
    """Whatever is read again: programs have the rows of one matrix."""
    shapes = (matrices, 1 << 20, row), (1 << 20,)
    given = [torch.empty(shape, device="meta") for shape in shapes]
    pieces = record(with_column_sums, given).segments(given, arch="sm_90").segments
    assert any(len(piece.problem.order) > 1 for piece in pieces)
    for piece in pieces:
        numbers = iter(piece.params.axes)
        for group in piece.problem.order:
            assert {next(numbers) for _ in group} == {*group}
