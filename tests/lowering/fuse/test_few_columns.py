"""Sums over very many rows of few columns: programs enough, each with rows that lie together."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.harness import H200, lowered, record
from tritonfuser.heuristics.integers import ceil_div


def summed(fd, x, y):
    product = fd.ops.mul(x, fd.ops.permute(y, [1, 0]))
    return fd.ops.sum(product, [0]), fd.ops.neg(product)


@pytest.mark.parametrize("columns", [2, 5, 31])
def test_a_tile_has_columns_of_one_part(columns):
    rows = 3 << 20
    given = [torch.empty(*shape, device="meta") for shape in ((rows, columns), (columns, rows))]
    found = lowered(record(summed, given), given, H200)
    first = found.segmented.segments[0]
    assert first.scheduler == "reduction" and first.params.block_x < 2 * columns
    assert ceil_div(first.problem.parallel, first.params.block_x) >= H200.sm_count


def pair(fd, x):
    """A sum over all dims but the last, and one over all but the first two, whose rows are few."""
    return fd.ops.sum(x, [0, 1, 2]), fd.ops.sum(x, [0, 2])


def test_no_first_step_is_shared_by_too_few_programs():
    given = [torch.empty(2048, 31, 64, 31, device="meta")]
    found = lowered(record(pair, given), given, H200)
    for piece in found.segmented.segments:
        if piece.problem is not None and piece.problem.reduced > 4096:
            assert ceil_div(piece.problem.parallel, piece.params.block_x) >= H200.sm_count // 2
