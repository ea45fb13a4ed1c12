"""What is read at indices from memory runs along the axes of these indices."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, lowered, record


def streams(body: Any, given: list[torch.Tensor]) -> Any:
    (piece,) = lowered(record(body, given), given, H200).segmented.segments
    return piece.problem.streams


@pytest.mark.parametrize("dim", [0, 1])
def test_rows_of_a_table(dim: int) -> None:
    """Each sum is of other rows: they are as many bytes as are asked for."""
    table, place = noise(500, 500), torch.randint(0, 500, (300,))

    def body(fd: Any, x: Any, index: Any) -> Any:
        return fd.ops.sum(fd.ops.index_select(x, index, dim), [1])

    rows = 300 if dim == 0 else 500
    found = next(s for s in streams(body, [table, place]) if s.item_bytes == 4 and not s.is_store)
    assert found.along_x and found.along_r
    assert found.total_bytes == 4 * rows * (500 if dim == 0 else 300)
    assert found.x_same == found.r_same == 1


def test_one_row_of_a_table_is_that_of_all() -> None:
    """An index that does not run along an axis adds none to what it reads."""
    table, place = noise(50, 1000), torch.randint(0, 50, (1,))

    def body(fd: Any, x: Any, index: Any, y: Any) -> Any:
        return fd.ops.sum(fd.ops.mul(fd.ops.index_select(x, index, 0), y), [1])

    found = streams(body, [table, place, noise(4000, 1000)])
    assert sorted(s.total_bytes for s in found if s.item_bytes == 4 and not s.is_store) == [
        4 * 1000,
        4 * 4000 * 1000,
    ]
