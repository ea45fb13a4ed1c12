"""Inputs that lie across the rows of a norm's backward are copied: one kernel has all sums then."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, schedulers
from tritonfuser import DataType
from tritonfuser.lowering.refine import search
from tritonfuser.lowering.refine.crossing_views import crossing_views
from tritonfuser.lowering.refine.kernel_times import TimedKernels


def norm_backward(fd: Any, grad: Any, x: Any, weight: Any) -> Any:
    """A layer norm's, behind which tokens were mixed: its gradient has features outermost."""
    batch, tokens, width = x.shape()
    turned = fd.ops.cast(fd.ops.permute(grad, [0, 2, 1]), DataType.Float)
    wide = fd.ops.cast(x, DataType.Float)
    scale = fd.ops.broadcast_in_dim(
        fd.ops.cast(weight, DataType.Float), [batch, tokens, width], [2]
    )
    scaled = fd.ops.mul(turned, scale)
    total = fd.ops.sum(scaled, [2], keepdim=True)
    product = fd.ops.sum(fd.ops.mul(scaled, wide), [2], keepdim=True)
    rest = fd.ops.sub(fd.ops.sub(scaled, total), fd.ops.mul(wide, product))
    of_weight = fd.ops.sum(fd.ops.mul(turned, wide), [0, 1])
    return fd.ops.cast(rest, DataType.BFloat16), of_weight, fd.ops.sum(turned, [0, 1])


def unfilled(batch: int, tokens: int, width: int) -> list[torch.Tensor]:
    sizes = (batch, width, tokens), (batch, tokens, width), (width,)
    return [torch.empty(size, dtype=torch.bfloat16, device="meta") for size in sizes]


def test_a_copy_and_one_kernel_for_both_kinds_of_sums(monkeypatch: Any) -> None:
    inputs = unfilled(64, 196, 1024)
    fd = record(norm_backward, inputs)
    found = schedulers(lowered(fd, inputs))
    assert found[:2] == ["transpose", "inner_outer_persistent"]
    schedule = json.loads(json.dumps(fd.schedule(inputs, arch="sm_90").to_dict()))
    again = fd.kernels(inputs, arch="sm_90", schedule=schedule)
    assert [k.text for k in again] == [k.text for k in fd.kernels(inputs, arch="sm_90")]
    monkeypatch.setattr(search, "crossing_views", lambda segmented: ())
    assert "inner_outer_persistent" not in schedulers(lowered(fd, inputs))


def test_values_are_those_of_torch(monkeypatch: Any) -> None:
    monkeypatch.setattr(search, "LEAST_S", 0.0)
    monkeypatch.setattr(TimedKernels, "is_faster", lambda self, other, share: True)
    monkeypatch.setattr(search, "crossing_views", lambda segmented: (turned,))
    inputs = [noise(3, 48, 20), noise(3, 20, 48, seed=1), noise(48, seed=2)]
    inputs = [given.bfloat16() for given in inputs]
    (turned,) = (
        n.out.name for n in record(norm_backward, inputs).fusion.ir.nodes if n.op == "permute"
    )
    found = check(norm_backward, *inputs, tolerance=1e-3)
    assert found.segmented.rewrites.invariants == (turned,)


def along_memory(fd: Any, grad: Any, x: Any, weight: Any) -> Any:
    """The gradient lies as the rows do."""
    return fd.ops.sum(fd.ops.cast(x, DataType.Float), [2])


def computed(fd: Any, grad: Any, x: Any, weight: Any) -> Any:
    """What lies across the rows is no input: its kernel stores it in any order."""
    turned = fd.ops.permute(fd.ops.exp(fd.ops.cast(grad, DataType.Float)), [0, 2, 1])
    return fd.ops.sum(turned, [2]), fd.ops.sum(turned, [0, 1])


@pytest.mark.parametrize("body", [along_memory, computed])
def test_nothing_to_copy(body: Any) -> None:
    assert crossing_views(lowered(body, unfilled(64, 196, 512)).segmented) == ()
