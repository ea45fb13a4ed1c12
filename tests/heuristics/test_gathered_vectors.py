"""How many neighbours threads have where short rows are read at indices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from tests.lowering.harness import record
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.params import PointwiseParams
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.search.choice import chosen

WORK = ElementWork(before=2)


def embedded(fd: Any, x: Any, table: Any, index: Any) -> Any:
    return fd.ops.add(x, fd.ops.embedding_fwd(index, table))


def of_one_side(row: int) -> tuple[PointwiseParams, Problem]:
    """The params of tiles of one side for rows of a table."""
    rows = 1 << 20
    x = torch.empty(rows, row, dtype=torch.bfloat16, device="meta")
    table = torch.empty(50_000, row, dtype=torch.bfloat16, device="meta")
    given = [x, table, torch.empty(rows, dtype=torch.int64, device="meta")]
    (piece,) = record(embedded, given).segments(given, arch="sm_90").segments
    problem = replace(piece.problem, across=(), crossing=1)
    found = chosen(problem, WORK)
    assert isinstance(found, PointwiseParams)
    return found, problem


def test_few_neighbours_where_each_thread_would_have_a_row_of_its_own() -> None:
    """Eight neighbours of 32 threads lie in 37 rows of 7, those of two in 10.

    H200, 62 million elements of such rows with a dropout: 177 us by four neighbours.
    """
    params, problem = of_one_side(7)
    assert params.vectorization_factor in (1, 2)
    wide = replace(params, vectorization_factor=0)
    assert predicted(problem, params, WORK).seconds < 0.7 * predicted(problem, wide, WORK).seconds


def test_whole_vectors_of_long_rows() -> None:
    assert of_one_side(512)[0].vectorization_factor in (0, 8)
