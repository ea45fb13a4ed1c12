"""Tiles of two sides: which axes tensors lie along, what tiles touch, when they are taken."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, schedulers
from tritonfuser.heuristics.cost.memory.footprint import strides_of, tile_over
from tritonfuser.heuristics.streams import Stream, StrideTerm
from tritonfuser.lowering.access.stride_terms import stride_terms_of
from tritonfuser.symbolic.index_expr import Affine, Axis, digit
from tritonfuser.symbolic.substitution import substitute

SECTOR = 32
A, B, C = Axis("a", 6), Axis("b", 10), Axis("c", 4)


def stream(*steps: int, extents: tuple[int, ...], item: int = 4) -> Stream:
    pairs = enumerate(zip(extents, steps, strict=True))
    stride_terms = (StrideTerm(place, 1, n, step) for place, (n, step) in pairs if step)
    return Stream(item_bytes=item, stride_terms=tuple(stride_terms))


@pytest.mark.parametrize(
    "offset",
    [
        digit(A) * 40 + digit(B) * 4 + digit(C),
        digit(C) * 60 + digit(A) * 10 + digit(B),
        digit(A) * 20 + digit(B, 2) * 4 + digit(C),
        digit(A, 1, 3) * 8 + digit(A, 3) * 100 + digit(C) * 2,
    ],
)
def test_legs_give_the_offset(offset: Affine) -> None:
    axes = (A, B, C)
    stride_terms = stride_terms_of(offset, axes)
    for place in product(*(range(axis.extent) for axis in axes)):
        at = {axis: Affine((), n) for axis, n in zip(axes, place, strict=True)}
        moved = sum(g.step * (place[g.axis] // g.div % g.extent) for g in stride_terms)
        assert substitute(offset, at).const == moved


def test_legs_of_a_sum_that_is_divided_count_its_axes() -> None:
    stride_terms = stride_terms_of((digit(A) * 10 + digit(B)) // 4 * 3, (A, B, C))
    assert {(g.axis, g.div, g.step) for g in stride_terms} == {(0, 1, 6), (1, 4, 3)}


@pytest.mark.parametrize("steps", [(40, 4, 1), (1, 24, 6), (0, 4, 1), (4, 24, 1), (64, 640, 16)])
@pytest.mark.parametrize("block", [(6, 10, 4), (1, 10, 4), (6, 1, 2), (3, 2, 1)])
def test_touched_sectors_are_those_of_the_elements(
    steps: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    """Within one sector a run: where runs begin is averaged over."""
    extents = (6, 10, 4)
    given = stream(*steps, extents=extents)
    strides, tile = strides_of(given), tuple(map(float, block))
    found = strides.footprint(tile)
    offsets = {
        sum(i * s for i, s in zip(at, steps, strict=True)) for at in product(*map(range, block))
    }
    assert found.elements == len(offsets)
    sectors = {offset * given.item_bytes // SECTOR for offset in offsets}
    touched = strides.touched(tile)[1] / SECTOR
    assert len(sectors) - 1 <= touched <= len(sectors) + found.runs


def test_a_side_goes_on_along_the_axis_before() -> None:
    assert tile_over((8, 6, 4), [((0, 2), 16), ((1,), 4)]) == (4.0, 4.0, 4.0)
    assert tile_over((8, 6, 4), [((0, 1, 2), 48)]) == (2.0, 6.0, 4.0)


def flipped(fd: Any, x: Any, y: Any) -> Any:
    return fd.ops.add(x, fd.ops.permute(y, [0, 2, 1]))


def broadcast(fd: Any, x: Any, y: Any) -> Any:
    """A small tensor that lies across, read again for each position of the first axis."""
    return fd.ops.mul(x, fd.ops.broadcast(fd.ops.permute(y, [1, 0]), [True, False, False]))


def interleaved(fd: Any, x: Any, y: Any) -> Any:
    """Pairs [n, 2] beside [2, n]."""
    return fd.ops.add(fd.ops.permute(x, [0, 2, 1]), y)


def test_strided_tensors_give_a_second_side() -> None:
    cases: list[tuple[Any, tuple[tuple[int, ...], ...]]] = [
        (flipped, ((16, 512, 300), (16, 300, 512))),
        (broadcast, ((4096, 64, 360), (360, 64))),
        (interleaved, ((40000, 448, 2), (40000, 2, 448))),
    ]
    for body, shapes in cases:
        given = [torch.empty(shape, device="meta") for shape in shapes]
        cut = record(body, given).segments(given, arch="sm_90")
        assert [piece.scheduler for piece in cut.segments] == ["transpose"], body


@pytest.mark.parametrize(("batch", "rows", "sides"), [(16, 1 << 13, 2), (16, 64, 1), (2, 64, 1)])
def test_reads_that_miss_the_l2_cache_give_one_too(batch: int, rows: int, sides: int) -> None:
    """A mask for all of a batch: 64 MiB of it between each use, or less than 1 MiB."""

    def masked(fd: Any, x: Any, mask: Any) -> Any:
        return fd.ops.mul(x, fd.ops.broadcast(mask, [True, False, False]))

    given = [torch.empty(batch, rows, 1024, device="meta"), torch.empty(rows, 1024, device="meta")]
    (piece,) = record(masked, given).segments(given, arch="sm_90").segments
    assert piece.scheduler == {1: "pointwise", 2: "transpose"}[sides]
    if sides == 2:
        assert piece.params.across == (0,)


def test_tensors_along_one_axis_have_one_side() -> None:
    given = [torch.empty(16, 512, 300, device="meta") for _ in range(2)]
    cut = record(lambda fd, x, y: fd.ops.add(x, y), given).segments(given, arch="sm_90")
    assert [piece.scheduler for piece in cut.segments] == ["pointwise"]


@pytest.mark.parametrize(("n", "h", "w", "c"), [(2, 7, 9, 64), (3, 16, 16, 12), (2, 5, 31, 40)])
def test_a_side_of_several_axes(n: int, h: int, w: int, c: int) -> None:
    """Channels last beside channels first, with short inner dims."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.add(fd.ops.permute(x, [0, 2, 3, 1]), y)

    check(body, noise(n, c, h, w), noise(n, h, w, c))


def test_halves_of_a_strided_result() -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.cat([fd.ops.permute(x, [0, 2, 1]), y], 2)

    given = noise(4, 192, 160), noise(4, 160, 192)
    assert "transpose" in schedulers(lowered(record(body, given), given))
    check(body, *given)


@pytest.mark.parametrize(("flips", "kernels"), [(True, 2), (False, 1)])
def test_results_over_other_axes_share_a_kernel_where_memory_agrees(
    flips: bool, kernels: int
) -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.neg(x), fd.ops.relu(fd.ops.permute(y, [1, 0]) if flips else y)

    given = [torch.empty(4096, 6000, device="meta"), torch.empty(3000, 8192, device="meta")]
    assert len(record(body, given).segments(given, arch="sm_90").segments) == kernels


def test_what_tiles_touch_is_kept_for_all_tensors_with_the_same_strides() -> None:
    """Other facts, as whether it is stored, change no footprint."""
    given, tile = stream(40, 4, 1, extents=(6, 10, 4)), (6.0, 10.0, 4.0)
    strides = strides_of(given)
    assert strides_of(replace(given, is_store=True)) is strides
    assert strides_of(replace(given, item_bytes=2 * given.item_bytes)) is not strides
    assert strides.touched(tile) is strides.touched(tile)
    elements, sectors = strides.touched(tile, SECTOR)
    assert (elements, sectors) != strides.touched(tile, 8 * SECTOR)
