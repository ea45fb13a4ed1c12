"""Results of rows are stored as blocks with one dim where loads are pipelined.

Triton reads shared memory in any layout. It may take that of a stored ``[X, 1]``, whose threads lie
along the rows with an element each.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import in_one_line_each, record


def sums_of_rows_and_columns(fd: Any, x: Any, y: Any) -> list[Any]:
    scaled = fd.ops.mul(x, 0.015625)
    return [fd.ops.var(fd.ops.mul(scaled, y), [2], 1), fd.ops.sum(fd.ops.mul(scaled, scaled), [1])]


def made(batch: int = 16) -> tuple[Any, list[torch.Tensor], Any]:
    inputs = [noise(batch, 172, 64, seed=n).to(t) for n, t in enumerate((torch.float, torch.half))]
    fd = record(sums_of_rows_and_columns, inputs)
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    data = fd.schedule(meta, arch="sm_90").to_dict()
    place = next(n for n, s in enumerate(data["segments"]) if "block_m" in s["params"])
    return fd, inputs, (data, place)


def given(made: Any, **params: Any) -> Any:
    data, place = made
    data["segments"][place]["params"].update(block_m=8, num_warps=1, prefetch=False, **params)
    return data


@pytest.mark.parametrize("stages", [1, 3])
def test_values_are_those_of_torch(stages: int) -> None:
    fd, inputs, found = made()
    schedule = given(found, num_stages=stages)
    for one, other in zip(fd.run(inputs, schedule=schedule), fd.run(inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("stages", "apart"), [(1, False), (3, True)])
def test_columns_have_one_dim_where_loads_are_pipelined(stages: int, apart: bool) -> None:
    fd, inputs, found = made()
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    kernels = fd.kernels(meta, arch="sm_90", schedule=given(found, num_stages=stages))
    body = in_one_line_each(kernels[found[1]].text).partition("@triton.jit")[2]
    stores = [line.strip() for line in body.splitlines() if "tl.store(" in line]
    columns = [line for line in stores if " + m" in line or "172 + m" in line]
    assert columns and all(("flat_column(" in line) == apart for line in columns)
