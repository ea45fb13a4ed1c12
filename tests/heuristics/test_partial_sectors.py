"""Sectors that tiles of rows use in part: which of them the L2 cache evicts before their reuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser import DataType
from tritonfuser.heuristics.cost.axis_order import in_order
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.kernels import Times
from tritonfuser.heuristics.cost.model import kernel_time
from tritonfuser.heuristics.params import (
    OuterPersistentParams,
    ReductionParams,
    TransposeParams,
)
from tritonfuser.heuristics.problem import ElementWork
from tritonfuser.heuristics.search import rows
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.cost import segment_time
from tritonfuser.lowering.fuse.segmentation import HEURISTIC


def stacked_softmax(fd: Any, x: Any) -> Any:
    """``[3, A, B, C] -> [C, B, A, 3]``: softmax over the dim that is stored innermost."""
    x = fd.ops.permute(fd.ops.cast(x, DataType.Float), [3, 2, 1, 0])
    along = [False, False, False, True]
    powers = fd.ops.exp(fd.ops.sub(x, fd.ops.broadcast(fd.ops.max(x, [3]), along)))
    found = fd.ops.div(powers, fd.ops.broadcast(fd.ops.sum(powers, [3]), along))
    return fd.ops.cast(found, DataType.BFloat16)


def one_segment(*sizes: int) -> Any:
    """The kernel that has a row for the three numbers; they may be unrolled as well, or copied in
    another order, by a kernel of their own or to be whole in threads."""
    given = [torch.empty(3, *sizes, dtype=torch.bfloat16, device="meta")]
    unrolled = mock.patch.object(segment_choice, "with_short_unrolled", lambda first, *_: first)
    alone = mock.patch.object(segment_choice, "refined", lambda *given: given[-1](HEURISTIC))
    with unrolled, alone, mock.patch.object(rows, "may_be_staged", lambda _: False):
        (piece,) = record(stacked_softmax, given).segments(given, arch="sm_90").segments
    return piece


def rows_as_loaded() -> OuterPersistentParams:
    return OuterPersistentParams(
        block_x=64, block_r=4, persistent=True, num_warps=1, axes=(2, 1, 0)
    )


def sector_refetch_bytes(piece: Any, params: OuterPersistentParams) -> float:
    return Times(piece.problem, ElementWork()).sector_refetch_bytes(params)


def test_sectors_stored_in_parts_at_a_long_reuse_distance_are_moved_again() -> None:
    """Results of 6 bytes: by rows as they are loaded all that share a sector are 8 MB apart. With
    the dim that the results are neighbours along beside the innermost one, 32 KB."""
    piece = one_segment(36, 1232, 538)
    assert piece.params.axes == (1, 2, 0)
    far = rows_as_loaded()
    near = replace(far, axes=(1, 2, 0))
    stored = 3 * 2 * 36 * 1232 * 538
    assert sector_refetch_bytes(piece, near) < 0.01 * stored
    assert sector_refetch_bytes(piece, far) > 4 * stored
    times = [segment_time(piece, params) for params in (near, far)]
    assert times[0] is not None and times[1] is not None
    assert times[1].seconds > 1.5 * times[0].seconds


@pytest.mark.parametrize("columns", [8, 32])
def test_what_the_cache_holds_is_not_evicted(columns: int) -> None:
    piece = one_segment(36, 128, columns)
    assert sector_refetch_bytes(piece, rows_as_loaded()) == pytest.approx(0, abs=1e5)


def pairs(fd: Any, x: Any) -> Any:
    return fd.ops.sum(fd.ops.cast(x, DataType.Float), [1])


def test_results_of_short_rows_are_bytes_that_a_kernel_moves() -> None:
    """Sums of two numbers of 2 bytes have as many bytes as these."""
    given = [torch.empty(1 << 25, 2, dtype=torch.bfloat16, device="meta")]
    (piece,) = record(pairs, given).segments(given, arch="sm_90").segments
    assert piece.problem.result_bytes == 1 << 27
    time = segment_time(piece)
    assert time is not None
    assert (
        time.resources["memory"] > 0.9 * 2 * (1 << 27) / piece.problem.device.bandwidth_bytes_per_s
    )


def with_sums_of_columns(fd: Any, x: Any, y: Any) -> Any:
    """Rows of 7 less their sums, and the sums of their columns."""
    rows = fd.ops.mul(fd.ops.cast(x, DataType.Float), fd.ops.broadcast(y, [False] * 3 + [True]))
    made = fd.ops.sub(rows, fd.ops.sum(rows, [3], keepdim=True))
    stored = [fd.ops.cast(v, DataType.BFloat16) for v in (made, fd.ops.exp(rows))]
    return *stored, fd.ops.sum(rows, [0, 1, 2])


def test_the_axes_of_each_group_are_in_the_order_of_fewest_refetched_bytes() -> None:
    """Programs have a part of the rows each. Rows that follow one another in the order of a factor
    stored in reverse are 39 KB apart; 98 bytes with two of the axes in turn."""
    x = torch.empty(2775, 64, 7, 7, dtype=torch.bfloat16, device="meta")
    factor = torch.empty(7, 64, 2775, device="meta").permute(2, 1, 0)
    given = [x, factor]
    with mock.patch.object(rows, "may_be_staged", lambda _: False):
        piece = record(with_sums_of_columns, given).segments(given, arch="sm_90").segments[0]
    found, as_written = piece.params.axes, tuple(n for group in piece.problem.order for n in group)
    assert [set(found[:2]), set(found[2:])] == [set(group) for group in piece.problem.order]
    # The factor's own pieces of 12 bytes are left.
    assert sector_refetch_bytes(piece, piece.params) < 0.02 * x.numel() * x.element_size()
    assert (
        sector_refetch_bytes(piece, replace(piece.params, axes=as_written))
        > x.numel() * x.element_size()
    )


def test_sizes_are_chosen_for_the_other_order() -> None:
    """The size that loses least in one order of axes need not be the one for the order taken."""
    x = torch.empty(2769, 64, 7, 7, dtype=torch.bfloat16, device="meta")
    factor = torch.empty(7, 64, 2769, device="meta").permute(2, 1, 0)
    given = [x, factor]
    piece = record(with_sums_of_columns, given).segments(given, arch="sm_90").segments[0]
    sizes = [replace(piece.params, block_m=block) for block in (16, 32, 64, 128)]
    times = [segment_time(piece, params) for params in (piece.params, *sizes)]
    seconds = [time.seconds for time in times if time is not None]
    assert seconds[0] <= 1.02 * min(seconds)


def test_sizes_in_another_order_have_the_bounds_of_that_order() -> None:
    """In the order of the rules the fastest of them may spill registers."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        first, second = fd.ops.permute(x, [2, 0, 3, 1]), fd.ops.permute(y, [2, 3, 1, 0])
        wide = (fd.ops.cast(each, DataType.Float) for each in (first, second))
        return fd.ops.permute(fd.ops.sum(fd.ops.mul(*wide), [3]), [0, 2, 1])

    sizes = [(12, 31, 96, 80), (31, 80, 96, 12)]
    given = [torch.empty(each, dtype=torch.half, device="meta") for each in sizes]
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    params = piece.params
    assert params.axes != (0, 1, 2)
    other = replace(params, block_x=256, block_r=16, persistent=False, num_warps=4)
    times = [segment_time(piece, each) for each in (params, other)]
    assert times[0] is not None and times[1] is not None
    assert times[0].seconds <= 1.02 * times[1].seconds


def stored_across(fd: Any, x: Any) -> Any:
    return fd.ops.cast(fd.ops.permute(x, [1, 0]), DataType.BFloat16)


def test_tiles_of_two_sides_keep_both() -> None:
    """Stores in parts of sectors are no reason to take all axes along one side."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.neg(fd.ops.permute(x, [1, 0, 3, 2]))

    given = [torch.empty(200, 7, 547, 5, dtype=torch.half, device="meta")]
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    params = piece.params
    assert isinstance(params, TransposeParams)
    assert {*params.axes, *params.across} == set(range(4)) and params.across


@pytest.mark.parametrize(("neighbours", "times"), [(4, 8.0), (8, 4.0), (16, 1.0), (64, 1.0)])
def test_sectors_that_are_stored_in_part_are_written_twice(neighbours: int, times: float) -> None:
    """Pieces of 8 bytes are four to a sector, each of which is two sectors' time."""
    given = [torch.empty(64, 1 << 20, device="meta")]
    (piece,) = record(stored_across, given).segments(given, arch="sm_90").segments
    assert piece.problem.axes == (64, 1 << 20) and piece.problem.across == (0,)
    params = TransposeParams(block_x=64, block_y=neighbours, num_warps=4)
    counts = Counting(piece.problem, ElementWork()).counts(params)
    assert counts.written_bytes == times * counts.stored_bytes


@pytest.mark.parametrize(
    ("columns", "share"), [(1 << 10, 0.0), (1001, 0.5), (1004, 0.5), (1008, 0.0)]
)
def test_partial_sectors_at_the_ends_of_stores_are_moved_again(columns: int, share: float) -> None:
    """Rows of 1001 and 1004 numbers begin within a sector: each 128 bytes end in two in part."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.neg(fd.ops.permute(x, [1, 0, 2]))

    given = [torch.empty(32, 512, columns, device="meta")]
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    params = TransposeParams(block_x=32, block_y=32, num_warps=4)
    problem = replace(piece.problem, across=(1,))
    counts = Counting(problem, ElementWork()).counts(params)
    assert counts.partial_sector_bytes == pytest.approx(share * counts.stored_bytes, rel=0.15)
    time = kernel_time(counts, problem.device)
    before = kernel_time(counts._replace(partial_sector_bytes=0.0), problem.device)
    assert (time.resources["memory"] > before.resources["memory"]) == (share > 0)


def test_gaps_that_stores_of_the_same_threads_fill_are_not() -> None:
    given = [torch.empty(64, 1 << 20, device="meta")]
    (piece,) = record(stored_across, given).segments(given, arch="sm_90").segments
    params = TransposeParams(block_x=64, block_y=4, num_warps=4)
    counts = Counting(piece.problem, ElementWork()).counts(params)
    assert counts.written_bytes == 8 * counts.stored_bytes
    assert counts.partial_sector_bytes == 0


def test_what_is_stored_in_order_is_written_as_whole_sectors() -> None:
    given = [torch.empty(1 << 24, device="meta")]
    (piece,) = record(lambda fd, x: fd.ops.neg(x), given).segments(given, arch="sm_90").segments
    time = segment_time(piece)
    assert time is not None
    whole = (4 << 24) / (piece.problem.device.sm_count * 18.1 * piece.problem.device.clock_hz)
    assert time.resources["L2 stores"] == pytest.approx(whole, rel=1e-6)


def scaled_with_largest(fd: Any, x: Any) -> Any:
    scaled = fd.ops.mul(fd.ops.cast(x, DataType.Float), 2.5)
    return fd.ops.max(scaled, [1]), fd.ops.cast(scaled, DataType.BFloat16)


@pytest.mark.parametrize(
    ("columns", "align", "stages", "least", "most"),
    [
        (474_322, 1, 1, 0.7, 1.0),  # by pieces of 4 bytes, each warp 128 bytes
        (474_322, 8, 1, 0.1, 0.2),
        (474_368, 1, 1, 0.0, 0.0),  # rows begin at pairs of sectors
        (474_322, 1, 3, 0.0, 1e-6),  # warps wait for each other's loads
    ],
)
def test_warps_of_long_loops_store_sectors_in_part_at_different_times(
    columns: int, align: int, stages: int, least: float, most: float
) -> None:
    """H200: 324 us by pieces of 4 bytes, 168 by vectors."""
    given = [torch.empty(283, columns, dtype=torch.bfloat16, device="meta")]
    pieces = record(scaled_with_largest, given).segments(given, arch="sm_90").segments
    piece = next(each for each in pieces if each.problem.reduced == columns)
    params = ReductionParams(
        block_x=1, block_r=4096, persistent=False, num_warps=8, align=align, num_stages=stages
    )
    times = Times(piece.problem, ElementWork())
    stored, results = 2 * 283 * columns, 4 * 283
    assert least * stored <= times.sector_refetch_bytes(params) <= most * stored + results


def largest_permuted(fd: Any, x: Any, y: Any) -> Any:
    """``[A, 4, B, C] -> [C, B, A]``: the largest of four, and their sum, in another order."""
    x = fd.ops.permute(fd.ops.add(fd.ops.cast(x, DataType.Float), y), [3, 1, 2, 0])
    return fd.ops.max(x, [1]), fd.ops.sum(x, [1])


def test_strided_results_are_written_in_partial_sectors() -> None:
    """H200: two results of 148,663,746 rows of four, by pieces of 4 bytes: 6.9 ms, where without
    them the model had 0.7. Single pieces at any distance took 15 to 21 ps each."""
    sizes = (20, 4, 231, 231)
    x = torch.empty(sizes, dtype=torch.bfloat16, device="meta")
    given = [x, torch.empty(sizes, device="meta")]
    with mock.patch.object(segment_choice, "with_short_unrolled", lambda first, *_: first):
        fd = record(largest_permuted, given)
        piece = fd.segments(given, arch="sm_90").segments[0]
    assert [stream.is_store for stream in piece.problem.results] == [True, True]
    as_loaded = replace(
        rows_as_loaded(), block_x=256, axes=(2, 1, 0), evict_hints=piece.params.evict_hints
    )
    time = segment_time(piece, as_loaded)
    assert time is not None
    pieces = 2 * 20 * 231 * 231
    assert time.resources["L2 stores"] == pytest.approx(15e-12 * pieces, rel=0.1)
    assert time.seconds > 10e-12 * pieces


def test_results_that_other_kernels_compute_with_are_stores() -> None:
    """Another kernel computes the exponential again, from the maximum: nobody asked for it by name,
    and all that uses it here is this kernel's."""

    def body(fd: Any, x: Any) -> Any:
        top = fd.ops.max(x, [1], keepdim=True)
        powers = fd.ops.exp(fd.ops.sub(x, top))
        found = fd.ops.div(powers, fd.ops.sum(powers, [1], keepdim=True))
        return fd.ops.sum(found, [0])

    given = [torch.empty(4096, 40_000, device="meta")]
    pieces = record(body, given).segments(given, arch="sm_90").segments
    stored = {name.name for piece in pieces for name in piece.outputs}
    for piece in pieces:
        results = [out for m in piece.members for out in m.node.outs if out.name in stored]
        assert piece.problem.result_bytes == sum(4 * out.tensor.numel for out in results)


def centred(fd: Any, x: Any) -> Any:
    """``[A, B, C] -> [C, A, B]``, without the mean over B."""
    x = fd.ops.permute(fd.ops.cast(x, DataType.Float), [2, 0, 1])
    mean = fd.ops.mul(fd.ops.sum(x, [2], keepdim=True), 0.04)
    return fd.ops.cast(fd.ops.sub(x, mean), DataType.BFloat16)


@pytest.mark.parametrize(("axes", "share"), [((0, 1), 0.0), ((1, 0), 1.2)])
def test_short_strided_rows_are_written_in_part(axes: tuple[int, int], share: float) -> None:
    """H200, rows of 25 numbers of two bytes, 64 of them apart, among a kernel's 1.2 GB: 749 us, by
    the model 459 without these sectors and 570 with them. Rows that follow one another have ends
    within a program's."""
    given = [torch.empty(8192, 25, 64, dtype=torch.bfloat16, device="meta")]
    with mock.patch.object(rows, "may_be_staged", lambda _: False):
        (piece,) = record(centred, given).segments(given, arch="sm_90").segments
    params = OuterPersistentParams(block_x=32, block_r=32, persistent=True, num_warps=2, axes=axes)
    counts = Counting(in_order(piece.problem, params), ElementWork()).counts(params)
    assert counts.partial_sector_bytes == pytest.approx(
        share * counts.stored_bytes, rel=0.2, abs=128
    )
