"""Values that kernels with reductions store, by kernels without: what short rows that lie across
would be pieces of sectors for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, check, lowered, record
from tritonfuser import DataType
from tritonfuser.ir import Fusion
from tritonfuser.lowering import segment_choice
from tritonfuser.lowering.fuse.segmentation import Choice
from tritonfuser.lowering.refine.kernel_times import timed_kernels
from tritonfuser.lowering.refine.stored_flat import stored_flat


def turned_softmax(fd: Any, x: Any, y: Any) -> Any:
    """Rows of the last dim of ``[C, A, B]``, of a tensor that lies as ``[A, B, C]``: their softmax,
    and a product that needs none of it."""
    turned = fd.ops.permute(fd.ops.cast(x, DataType.Float), [2, 0, 1])
    wide = fd.ops.cast(y, DataType.Float)
    along = [False, False, True]
    powers = fd.ops.exp(fd.ops.sub(turned, fd.ops.broadcast(fd.ops.max(turned, [2]), along)))
    soft = fd.ops.div(powers, fd.ops.broadcast(fd.ops.sum(powers, [2]), along))
    product = fd.ops.mul(turned, wide)
    return fd.ops.cast(soft, DataType.BFloat16), fd.ops.cast(product, DataType.BFloat16)


def sizes(outer: int, row: int, inner: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (outer, row, inner), (inner, outer, row)


def unfilled(*shape: int) -> list[torch.Tensor]:
    return [torch.empty(s, dtype=torch.bfloat16, device="meta") for s in sizes(*shape)]


def forced(monkeypatch: Any, names: Callable[[Fusion], tuple[str, ...]]) -> None:
    def refined(fusion: Fusion, _: object, make: Callable[[Choice], Any]) -> Any:
        return make(Choice(stored_flat=names(fusion)))

    monkeypatch.setattr(segment_choice, "refined", refined)


def stored(fusion: Fusion, *places: int) -> tuple[str, ...]:
    """The names of outputs by their places."""
    return tuple(fusion.outputs[place].value.name for place in places)


def has_reductions(found: Any) -> list[bool]:
    """For each output whether the kernel that stores it reduces."""
    by_name = {
        store.value.name: piece.problem.reduction_depth > 0
        for piece in found.segmented.segments
        for store in piece.stores
    }
    return [by_name[out.value.name] for out in found.segmented.fusion.outputs]


@pytest.mark.parametrize("places", [(), (1,), (0,), (0, 1)])
def test_values_are_stored_by_kernels_without_reductions(places: Any, monkeypatch: Any) -> None:
    forced(monkeypatch, lambda fusion: stored(fusion, *places))
    shapes = sizes(5, 21, 12)
    inputs = [noise(*shape, seed=n).bfloat16() for n, shape in enumerate(shapes)]
    found = has_reductions(check(turned_softmax, *inputs, tolerance=1e-2))
    assert all(found) if not places else not any(found[place] for place in places)


def test_a_schedule_says_so(monkeypatch: Any) -> None:
    given = unfilled(4096, 25, 64)
    fd = record(turned_softmax, given)
    forced(monkeypatch, lambda fusion: stored(fusion, 1))
    schedule = json.loads(json.dumps(fd.schedule(given, arch="sm_90").to_dict()))
    texts = [kernel.text for kernel in fd.kernels(given, arch="sm_90")]
    monkeypatch.undo()
    assert len(texts) == 2
    assert [k.text for k in fd.kernels(given, arch="sm_90", schedule=schedule)] == texts


def test_which_values_may_be_stored_flat(monkeypatch: Any) -> None:
    """Those that need no result of their kernel, and all."""
    forced(monkeypatch, lambda fusion: ())
    found = lowered(turned_softmax, unfilled(88715, 25, 64)).segmented
    one, two = (out.value.name for out in found.fusion.outputs)
    names = [names for names, _ in stored_flat(timed_kernels(found, H200))]
    assert names == [(two,), (one, two)]


def normed(fd: Any, x: Any) -> Any:
    mean = fd.ops.mul(fd.ops.sum(x, [1], keepdim=True), 1 / 4096)
    return fd.ops.sub(x, mean)


def test_fast_kernels_stay(monkeypatch: Any) -> None:
    forced(monkeypatch, lambda fusion: ())
    found = lowered(normed, [torch.empty(8192, 4096, device="meta")]).segmented
    assert list(stored_flat(timed_kernels(found, H200))) == []
