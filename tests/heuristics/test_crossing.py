"""Tensors that lie across the rows of a kernel: tiles of both axes, programs of several rows."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, schedulers, small, texts
from tritonfuser.device import SECTOR_BYTES
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.cost.memory.runs import contiguous_axes
from tritonfuser.heuristics.params import (
    InnerPersistentParams,
    ReductionParams,
    TransposeParams,
)
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.streams import Stream, StrideTerm
from tritonfuser.lowering.refine import search


def channels(fd: Any, x: Any, y: Any) -> Any:
    """Sums of channels, of one tensor with channels first and one with channels last."""
    made = fd.ops.mul(x, fd.ops.permute(y, [0, 2, 1]))
    return fd.ops.sum(made, [0, 2]), made


def normed(fd: Any, x: Any, y: Any) -> Any:
    made = fd.ops.mul(x, fd.ops.permute(y, [0, 2, 1]))
    return fd.ops.sub(made, fd.ops.max(made, [2], keepdim=True))


@pytest.mark.parametrize("body", [channels, normed])
@pytest.mark.parametrize(("images", "count", "area"), [(3, 40, 49), (2, 64, 100), (1, 33, 257)])
def test_the_numbers(body: Any, images: int, count: int, area: int) -> None:
    check(body, noise(images, count, area), noise(images, area, count), facts=small(2))


def crossing(images: int, count: int, area: int) -> list[torch.Tensor]:
    shapes = (images, count, area), (images, area, count)
    return [torch.empty(*shape, device="meta") for shape in shapes]


@pytest.mark.parametrize(("body", "area"), [(channels, 784), (normed, 8192)])
def test_a_reduction_has_several_rows_in_a_tile(body: Any, area: int) -> None:
    given = crossing(8, 192, area)
    found = lowered(record(body, given), given)
    assert "inner_persistent" not in schedulers(found)
    params = found.segmented.segments[0].params
    assert isinstance(params, ReductionParams)
    assert params.block_x >= 16 and params.block_r >= 16


@pytest.mark.parametrize("area", [32, 100, 784])
def test_rows_that_fit_together_fill_the_sectors_of_strided_tensors(area: int) -> None:
    given = crossing(64, 192, area)
    found = lowered(record(normed, given), given)
    assert schedulers(found) == ["inner_persistent"]
    params = found.segmented.segments[0].params
    assert isinstance(params, InnerPersistentParams) and params.persistent
    assert params.block_x >= SECTOR_BYTES // 4


@pytest.mark.parametrize("area", [1404, 1100, 711])
def test_pairs_of_rows_whose_tiles_are_a_block_and_tails(area: int) -> None:
    """Their elements are no power of two: for 2816 the rules said five warps, as no kernel has."""
    given = crossing(1392, 2, area)
    found = lowered(record(normed, given), given)
    assert all(piece.params.num_warps in (1, 2, 4, 8, 16) for piece in found.segmented.segments)


def test_contiguous_rows_of_all_tensors_need_no_second_side() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        made = fd.ops.mul(x, y)
        return fd.ops.sub(made, fd.ops.max(made, [2], keepdim=True))

    given = noise(8, 192, 784), noise(8, 192, 784)
    assert schedulers(lowered(record(body, given), given)) == ["inner_persistent"]


@pytest.mark.parametrize(("area", "place"), [(3025, "None, :"), (3024, ":, None")])
def test_an_axis_with_odd_runs_is_dim_0(area: int, place: str) -> None:
    """Triton gives neighbouring threads the elements along dim 0 where it sees no longer run."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.neg(fd.ops.permute(x, [0, 2, 1]))

    x = noise(2, area, 64)
    found = lowered(record(body, [x]), [x])
    assert schedulers(found) == ["transpose"]
    (piece,) = found.segmented.segments
    assert isinstance(piece.params, TransposeParams)
    dim = 0 if piece.params.first == "y" else 1
    line = f"y = tl.program_id({dim}) * YBLOCK + tl.arange(0, YBLOCK)[{place}]"
    assert line in texts(found)[0]


@pytest.mark.parametrize("area", [55, 63, 64, 121])
def test_transposes_with_odd_runs(area: int) -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.add(fd.ops.permute(x, [0, 2, 1]), y)

    found = check(body, noise(32, area, 320), noise(32, 320, area))
    assert schedulers(found) == ["transpose"]


def test_results_run_along_the_other_tensors_axis_in_parts_too() -> None:
    """Rows lie along one tensor in any order, so they are in the order of the other."""

    def body(fd: Any, mask: Any, dy: Any, x: Any) -> Any:
        dy = fd.ops.where(mask, dy, 0.0)
        return fd.ops.sum(fd.ops.mul(dy, x), [0, 2, 3]), fd.ops.sum(dy, [0, 2, 3])

    dy = noise(64, 128, 28, 28).bfloat16()
    given = dy > 0, dy, dy.contiguous(memory_format=torch.channels_last)
    problem = lowered(record(body, given), given).segmented.segments[0].problem
    assert problem is not None and problem.crosses
    directions = {(s.x_stride == 1, s.r_stride == 1) for s in problem.full_streams}
    assert directions == {(True, False), (False, True)}


def test_a_tensor_strided_along_both_axes_stays_out() -> None:
    """Sums over images of [t, c] do not store what lies along t."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        made = fd.ops.mul(x, 2.0)
        turned = fd.ops.mul(fd.ops.permute(made, [0, 2, 1]), y)
        return fd.ops.sum(made, [0]), turned

    given = noise(8, 1500, 1024), noise(8, 1024, 1500)
    found = lowered(record(body, given), given)
    assert schedulers(found) == ["reduction", "transpose"]
    check(body, noise(3, 20, 33), noise(3, 33, 20), facts=small(2))


def mixed(fd: Any, *tensors: Any) -> Any:
    """A norm of many tensors, of which the last lies across the rows."""
    total, *others, across = tensors
    for other in others:
        total = fd.ops.add(total, other)
    total = fd.ops.mul(total, fd.ops.permute(across, [1, 0]))
    return fd.ops.sub(total, fd.ops.max(total, [1], keepdim=True))


def test_a_row_kernel_may_cross_one_tensor_where_kernels_more_would_read_many() -> None:
    shapes = [(16384, 4096)] * 7 + [(4096, 16384)]
    given = [torch.empty(*shape, device="meta", dtype=torch.float32) for shape in shapes]
    found = lowered(record(mixed, given), given)
    assert "inner_persistent" in schedulers(found)
    assert len(found.segmented.segments) <= 2


def turned(fd: Any, *tensors: Any) -> Any:
    """A sum of tensors, the last of which lies across the others."""
    total, *others, across = tensors
    for other in others:
        total = fd.ops.add(total, other)
    return fd.ops.add(total, fd.ops.permute(across, [1, 0]))


def flat(count: int, rows: int, dtype: torch.dtype) -> tuple[Problem, TransposeParams]:
    shapes = [(rows, 8192)] * (count - 1) + [(8192, rows)]
    given = [torch.empty(*shape, device="meta", dtype=dtype) for shape in shapes]
    segment = lowered(record(turned, given), given).segmented.segments[0]
    assert segment.problem is not None and isinstance(segment.params, TransposeParams)
    return segment.problem, segment.params


@pytest.mark.parametrize("rows", [2048, 65536])
def test_threads_have_fewer_elements_where_loads_are_many(rows: int) -> None:
    """However many tiles there are: registers for more would leave a program or two to an SM."""
    for count, least, most in [(2, 16, 32), (8, 1, 8)]:
        _, params = flat(count, rows, torch.bfloat16)
        threads = params.num_warps * 32
        assert least <= params.block_x * params.block_y // threads <= most


def test_loads_of_a_transpose_take_registers_for_their_addresses() -> None:
    """Wider items are loaded by more loads of a thread, each of which has an address."""
    params = TransposeParams(block_x=64, block_y=64, num_warps=8)
    found = []
    for dtype in (torch.bfloat16, torch.float32):
        time = predicted(flat(8, 4096, dtype)[0], params, ElementWork(before=8.0))
        assert time is not None
        found.append(time.registers)
    assert found[1] > found[0] + 8


def test_an_axis_counts_once_for_a_tensor() -> None:
    """Of indices that are sums, as of a padded patch, one axis may have several terms."""
    terms = StrideTerm(0, 1, 16, 1), StrideTerm(0, 1, 1, 16), StrideTerm(1, 1, 25, 16)
    assert contiguous_axes(Stream(item_bytes=2, stride_terms=terms)) == [0]
    assert contiguous_axes(Stream(item_bytes=2, stride_terms=(terms[0], terms[2]))) == [0, 1]


def test_aligned_rows_are_strided_in_a_tensor_across_them() -> None:
    """Each row of a tile is shifted by itself, so that none has a neighbour at its own positions.

    H100, rows of 2249 beside a tensor that lies across: 76 us with vectors, 53 without.
    """
    given = crossing(6, 448, 2249)
    with mock.patch.object(search, "crossing_views", lambda segmented: ()):
        piece, *_ = record(normed, given).segments(given, arch="sm_90").segments
    tiles: dict[str, Any] = {"block_x": 8, "block_r": 2048, "persistent": True, "num_warps": 16}
    aligned = InnerPersistentParams(**tiles, tails=(256, 16), align=4)
    plain = InnerPersistentParams(**tiles, tails=(256,))
    counting = Counting(piece.problem, ElementWork())
    assert counting.counts(aligned).sector_bytes > 3 * counting.counts(plain).sector_bytes
