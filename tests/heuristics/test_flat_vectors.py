"""Widths of loads of flat tiles with one side and with two."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser.heuristics.cost.memory.runs import contiguous_run_along, vector_elements
from tritonfuser.heuristics.streams import Stream, StrideTerm


def rows_of(length: int) -> Stream:
    """A bfloat16 tensor of 64 rows, one behind the other."""
    terms = StrideTerm(0, 1, 64, length), StrideTerm(1, 1, length, 1)
    return Stream(item_bytes=2, stride_terms=terms)


@pytest.mark.parametrize(("length", "wide"), [(8192, 8), (8194, 2), (8193, 1), (8196, 4)])
def test_rows_of_odd_lengths_are_loaded_element_by_element(length: int, wide: int) -> None:
    stream, extents = rows_of(length), (64, length)
    for places, expected in (((1,), wide), ((0, 1), 8)):
        run = contiguous_run_along(stream, extents, places)
        assert run == 0
        assert vector_elements(stream, places, run, 8) == expected


@pytest.mark.parametrize(("start", "wide"), [(0, 8), (8, 8), (4, 4), (2, 2), (3, 1)])
def test_a_slice_is_loaded_by_vectors_that_divide_where_it_starts(start: int, wide: int) -> None:
    """H200, norms of rows that are the right halves of rows of 98: 1506 us, 651 predicted by
    vectors of two and their lanes."""
    stream = replace(rows_of(8192), start=start)
    assert vector_elements(stream, (1,), 0, 8) == wide


@pytest.mark.parametrize(("start", "inside"), [(0, 0), (3, 3), (19, 3)])
def test_where_a_slice_starts_in_a_sector(start: int, inside: int) -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.neg(fd.ops.slice(x, [0, start], [64, start + 4096]))

    given = [torch.empty(64, 8192, dtype=torch.bfloat16, device="meta")]
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    assert piece.problem is not None
    assert [s.start for s in piece.problem.streams] == [inside, 0]
