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
    ("dtype", "multiple", "width"),
    [
        (torch.bfloat16, 8, 16),
        (torch.bfloat16, 16, 16),
        (torch.bfloat16, 4, 8),
        (torch.bfloat16, 1, 2),
        (torch.float32, 4, 16),
        (torch.float32, 8, 16),
    ],
)
def test_rows_of_multiples_begin_at_vectors(dtype, multiple, width):
    fd = row_sum(dtype)

    def inputs(columns):
        return [torch.empty(1024, columns * multiple, dtype=dtype, device="meta")]

    (kernel,) = fd.kernels(inputs(2003), arch="sm_90", varying=[inputs(1999), inputs(2001)])
    assert "size0" in kernel.text
    assert report(kernel, "reduction", "sm_90", (True, True)).max_load_bytes == width
