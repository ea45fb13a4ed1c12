"""Rows that are neighbours in memory, fewer than fill a sector: one program has them all."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.harness import H200, lowered


def softmax(fd, x, y):
    """Over the last dim of a sum."""
    e = fd.ops.exp(fd.ops.add(x, y))
    return fd.ops.div(e, fd.ops.sum(e, [2], keepdim=True))


@pytest.mark.parametrize("run", [2, 4, 8])
def test_rows_of_a_short_run_are_normalized_by_one_program(run):
    x = torch.empty(8192, run, 1024, device="meta")
    y = torch.empty(8192, 1024, run, device="meta").permute(0, 2, 1)
    (segment,) = lowered(softmax, [x, y], H200).segmented.segments
    assert segment.params.scheduler == "inner_persistent"
    assert segment.params.block_x == run
