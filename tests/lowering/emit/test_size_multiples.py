"""Loads of rows whose length varies, and is a multiple of a vector in all runs, are vectorized."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.lowering.build import report


def row_sum(dtype):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=dtype)
        fd.add_output(fd.ops.sum(fd.ops.cast(x, DataType.Float), [1]))
    return fd


@pytest.mark.parametrize(
    ("dtype", "multiple", "align"),
    [
        (torch.bfloat16, 8, 1),
        (torch.bfloat16, 16, 1),
        (torch.bfloat16, 4, 8),
        (torch.bfloat16, 1, 8),
        (torch.float32, 4, 1),
        (torch.float32, 8, 1),
        (torch.float32, 1, 4),
    ],
)
def test_rows_of_multiples_begin_at_vectors(dtype, multiple, align):
    """Rows of other lengths are in tiles that begin at vectors."""
    fd = row_sum(dtype)

    def inputs(columns):
        return [torch.empty(1024, columns * multiple, dtype=dtype, device="meta")]

    earlier = [inputs(1999), inputs(2001)]
    (kernel,) = fd.kernels(inputs(2003), arch="sm_90", varying=earlier)
    assert "size0" in kernel.text
    (piece,) = fd.segments(inputs(2003), arch="sm_90", varying=earlier).segments
    assert piece.params.align == align
    assert report(kernel, "reduction", "sm_90", (True, True)).max_load_bytes == 16
