"""Reductions over several dims in two steps that reduce whole dims, where an index is costly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import prod
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import SLOW, check, lowered, record
from tritonfuser import DataType
from tritonfuser.ir import Fusion
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.access.node_kinds import is_reducer
from tritonfuser.lowering.fuse.segmentation import Choice
from tritonfuser.lowering.fuse.splits.split_policy import ByDims
from tritonfuser.lowering.passes.splits.parts import Padded
from tritonfuser.lowering.refine import changes, search
from tritonfuser.lowering.refine.splits_by_dims import splits_by_dims
from tritonfuser.lowering.refine.timed_choices import TimedChoices

SHAPE = (137, 784, 961)
BY_DIMS = ((1, -1), (-1, 1))

REDUCERS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda fd, x: fd.ops.sum(x, [1, 2]),
    "min": lambda fd, x: fd.ops.min(x, [1, 2]),
    "moments": lambda fd, x: fd.ops.var_mean(x, [1, 2], 1),
}


def weighted(reduce: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A reduction of rows that have a weight along their last dim."""

    def body(fd: Any, x: Any, weight: Any) -> Any:
        weights = fd.ops.broadcast(fd.ops.cast(weight, DataType.Float), [True, True, False])
        return reduce(fd, fd.ops.mul(fd.ops.cast(x, DataType.Float), weights))

    return body


def given(*shape: int) -> list[torch.Tensor]:
    return [noise(*shape), noise(shape[-1], seed=1)]


def unfilled(*shape: int) -> list[torch.Tensor]:
    sizes = (shape, shape[-1:])
    return [torch.empty(size, dtype=torch.bfloat16, device="meta") for size in sizes]


def always_by_dims(monkeypatch: Any, parts: tuple[int, ...] | Padded) -> None:
    """Split the first reduction of each fusion into these parts, and what its kernel has beside."""

    def refined(fusion: Fusion, _: object, make: Callable[[Choice], Any]) -> Any:
        first = next(node.out.name for node in fusion.nodes if is_reducer(node))
        return make(Choice(by_dims=(ByDims(first, parts),)))

    monkeypatch.setattr(segment_choice, "refined", refined)


@pytest.mark.parametrize("reduce", REDUCERS.values(), ids=REDUCERS)
def test_a_weight_of_the_last_dim_is_read_once_for_many_elements(
    reduce: Callable[[Any, Any], Any],
) -> None:
    inputs = unfilled(*SHAPE)
    fd = record(weighted(reduce), inputs)
    schedule = fd.schedule(inputs, arch="sm_90")
    (split,) = schedule.rewrites.splits
    assert split.parts in BY_DIMS
    kernels = fd.kernels(inputs, arch="sm_90")
    assert not any(re.search(r"\br\d* %", kernel.text) for kernel in kernels)


def test_rows_that_are_one_index_are_not_split() -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.sum(fd.ops.cast(x, DataType.Float), [1, 2])

    inputs = unfilled(*SHAPE)[:1]
    assert not record(body, inputs).schedule(inputs, arch="sm_90").rewrites.splits


def test_rows_with_one_stride_order_are_not_split(monkeypatch: Any) -> None:
    """Sums of channels, as of a batch norm, in one order of two dims."""
    asked: list[tuple[int, int]] = []

    def spied(fusion: Fusion, now: Any, device: Any) -> Any:
        found = splits_by_dims(fusion, now, device)
        axes = [each.segment.problem.row_axes for each in now.excesses]
        asked.append((max(axes, default=0), len(found)))
        return found

    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.sum(fd.ops.exp(fd.ops.mul(x, fd.ops.sin(y))), [0, 2])

    monkeypatch.setattr(changes, "splits_by_dims", spied)
    lowered(body, [noise(12, 24, 70), noise(12, 24, 70, seed=1)], SLOW)
    assert max(axes for axes, _ in asked) > 1 and not any(splits for _, splits in asked)


def test_first_steps_have_a_row_for_each_multiprocessor() -> None:
    """16 results in parts of dim 0 would be 112 rows."""
    inputs = unfilled(7, 16, 1 << 19)
    body = weighted(lambda fd, x: fd.ops.sum(x, [0, 2]))
    for split in record(body, inputs).schedule(inputs, arch="sm_90").rewrites.splits:
        if isinstance(split.parts, tuple):
            extents = zip(split.parts, (7, 1 << 19), strict=True)
            assert 16 * prod(size if part == -1 else part for part, size in extents) >= 132


@pytest.mark.parametrize("factors", [(31, 1), (1, 63)], ids=["inner first", "outer first"])
@pytest.mark.parametrize("reduce", REDUCERS.values(), ids=REDUCERS)
def test_results_are_those_of_torch(
    reduce: Callable[[Any, Any], Any], factors: tuple[int, ...], monkeypatch: Any
) -> None:
    always_by_dims(monkeypatch, factors)
    found = check(weighted(reduce), *given(13, 31, 63))
    (split,) = found.segmented.rewrites.splits
    assert split.parts in BY_DIMS


def channels(fd: Any, x: Any) -> tuple[Any, Any]:
    """Sums of channels, as of a batch norm."""
    wide = fd.ops.cast(x, DataType.Float)
    return fd.ops.sum(wide, [0, 2]), fd.ops.sum(fd.ops.mul(wide, wide), [0, 2])


@pytest.mark.parametrize("rows", [1 << 20, (1 << 20) - 3], ids=["divisors", "a prime"])
def test_pieces_shorter_than_sectors_are_columns_beside_those_of_other_results(rows: int) -> None:
    """Rows of a channel are 8 bytes of 176."""
    inputs = unfilled(rows, 22, 4)[:1]
    fd = record(channels, inputs)
    splits = fd.schedule(inputs, arch="sm_90").rewrites.splits
    assert len(splits) == 2
    for split in splits:
        assert isinstance(split.parts, tuple) and split.parts[0] > 1 and split.parts[1] == -1
        assert split.padded == (-1 if rows == 1 << 20 else 0)
    (first, *_) = fd.segments(inputs, arch="sm_90").segments
    assert not first.problem.inner


PARTS: tuple[tuple[tuple[int, ...] | Padded, tuple[int, ...]], ...] = (
    ((7, 5), (7, -1)),
    (Padded(0, 4, second=(1,)), (4, -1)),
    (Padded(0, 4, interleaved=True, second=(1,)), (4, -1)),
    (Padded(1, 2, second=(0,)), (-1, 2)),
)


@pytest.mark.parametrize(("parts", "given"), PARTS, ids=str)
def test_results_of_parts_of_one_dim_are_those_of_torch(
    parts: tuple[int, ...] | Padded, given: tuple[int, ...], monkeypatch: Any
) -> None:
    def body(fd: Any, x: Any) -> Any:
        least = fd.ops.min(x, [0, 2])
        return least, *fd.ops.var_mean(x, [0, 2], 1), fd.ops.sum(x, [0, 2])

    always_by_dims(monkeypatch, parts)
    found = check(body, noise(21, 9, 5))
    assert {split.parts for split in found.segmented.rewrites.splits} == {given}


def test_all_reductions_of_a_kernel_are_split_alike(monkeypatch: Any) -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.sum(x, [1, 2]), fd.ops.max(fd.ops.neg(x), [1, 2])

    always_by_dims(monkeypatch, (31, 1))
    found = check(weighted(body), *given(13, 31, 63))
    assert [split.parts for split in found.segmented.rewrites.splits] == [(-1, 1), (-1, 1)]


def test_reductions_over_other_dims_of_the_same_rows_are_not_split_by_dims(
    monkeypatch: Any,
) -> None:
    def body(fd: Any, x: Any) -> Any:
        flat = fd.ops.reshape(x, [13, 31 * 63])
        return fd.ops.sum(x, [1, 2]), fd.ops.max(flat, [1])

    always_by_dims(monkeypatch, (31, 1))
    found = check(weighted(body), *given(13, 31, 63))
    assert not any(isinstance(split.parts, tuple) for split in found.segmented.rewrites.splits)


def test_exponentials_are_summed_in_the_parts_of_their_maximum(monkeypatch: Any) -> None:
    def body(fd: Any, x: Any) -> Any:
        top = fd.ops.max(x, [1, 2], keepdim=True)
        return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, top)), [1, 2]), fd.ops.squeeze(top, [1, 2])

    always_by_dims(monkeypatch, (31, 1))
    found = check(weighted(body), *given(13, 31, 63))
    top, total = (split for split in found.segmented.rewrites.splits)
    assert top.parts == (-1, 1) and total.parts == top.value


def test_a_schedule_says_the_split() -> None:
    inputs = unfilled(*SHAPE)
    fd = record(weighted(REDUCERS["sum"]), inputs)
    schedule = json.loads(str(fd.schedule(inputs, arch="sm_90")))
    texts = [kernel.text for kernel in fd.kernels(inputs, arch="sm_90")]
    again = [kernel.text for kernel in fd.kernels(inputs, arch="sm_90", schedule=schedule)]
    assert texts == again


def test_splits_come_after_other_changes(monkeypatch: Any) -> None:
    """What is found without them is found with them too."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        gap = fd.ops.sub(x, y)
        return fd.ops.sum(fd.ops.mul(gap, gap), [0, 1, 2])

    def tried() -> list[Choice]:
        found: list[Choice] = []
        with monkeypatch.context() as patch:
            patch.setattr(TimedChoices, "__call__", lambda self, choice: found.append(choice))
            patch.setattr(search, "PART_FACTORS", ())
            lowered(body, [noise(12, 24, 70), noise(12, 70, 24).transpose(1, 2)], SLOW)
        return found

    with_splits = tried()
    monkeypatch.setattr(changes, "splits_by_dims", lambda *given: {})
    others = tried()
    assert with_splits[: len(others)] == others
    assert any(choice.by_dims for choice in with_splits)
