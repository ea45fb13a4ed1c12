"""Results of rows are stored as blocks with one dim where loads are pipelined.

Triton reads shared memory in any layout. It took that of a stored ``[X, 1]``: an element a thread.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import record
from tests.lowering.sass import disassembled, instructions


def sums_of_rows_and_columns(fd: Any, x: Any, y: Any) -> list[Any]:
    product = fd.ops.mul(x, y)
    return [fd.ops.sum(product, [1]), fd.ops.sum(x, [0])]


def made(rows: int = 4096, columns: int = 64) -> tuple[Any, list[torch.Tensor], Any]:
    inputs = [noise(rows, columns, seed=n) for n in range(2)]
    fd = record(sums_of_rows_and_columns, inputs)
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    data = fd.schedule(meta, arch="sm_90").to_dict()
    place = next(n for n, s in enumerate(data["segments"]) if "block_m" in s["params"])
    return fd, inputs, (data, place)


def given(made: Any, **params: Any) -> Any:
    data, place = made
    data["segments"][place]["params"].update(block_m=4, num_warps=1, **params)
    return data


@pytest.mark.parametrize("stages", [1, 3])
def test_values(stages: int) -> None:
    fd, inputs, found = made()
    schedule = given(found, num_stages=stages)
    for one, other in zip(fd.run(inputs, schedule=schedule), fd.run(inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_pipelined_loads_are_read_by_vectors(tmp_path: Path) -> None:
    fd, inputs, found = made()
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    schedule = given(found, num_stages=3)
    reports = fd.compile_for("sm_90", meta, schedule=schedule)
    report = next(r for r in reports if r.scheduler == "inner_outer_persistent")
    assert "flat_column(" in report.source
    counts = instructions(disassembled(report.asm["cubin"], tmp_path))
    assert counts["LDS.128"] > 0
