"""What a later kernel loads again: hints keep it in the L2 cache where it fits."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import DataType, FusionDefinition


def softmax_over_columns(rows: int, columns: int) -> tuple[FusionDefinition, list[torch.Tensor]]:
    """Its reductions are kernels of their own, and one behind them reads the rows again."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float)
        top = fd.ops.broadcast(fd.ops.max(x, dims=[0]), [True, False])
        shares = fd.ops.exp(fd.ops.sub(x, top))
        total = fd.ops.broadcast(fd.ops.sum(shares, dims=[0]), [True, False])
        fd.add_output(fd.ops.div(shares, total))
    return fd, [torch.empty(rows, columns, device="meta")]


def loops_over(fd: FusionDefinition, inputs: list[torch.Tensor]) -> list[str]:
    """The loads in loops of the first kernel, with their eviction policies."""
    text = fd.kernels(inputs, arch="sm_90")[0].text
    return [line for line in text.splitlines() if "tl.load" in line and line.startswith(" " * 8)]


@pytest.mark.parametrize(
    ("rows", "policy"), [(16384, None), (50000, "evict_first")], ids=["fits", "does not fit"]
)
def test_rows_that_a_later_kernel_finds_are_not_evicted_first(rows, policy):
    fd, inputs = softmax_over_columns(rows, 512)
    cut = fd.segments(inputs, arch="sm_90")
    first, *later = (piece for piece in cut.segments if piece.inputs)
    assert any(first.inputs[0] in piece.inputs for piece in later)
    assert first.loaded_later == (() if policy else first.inputs)
    loads = loops_over(fd, inputs)
    assert loads
    assert all(("eviction_policy" in line) == bool(policy) for line in loads)
    assert all(policy is None or policy in line for line in loads)
