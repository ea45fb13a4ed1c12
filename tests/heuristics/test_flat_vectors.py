"""Widths of loads of flat tiles with one side and with two."""

from __future__ import annotations

import pytest

from tritonfuser.heuristics.cost.footprint import contiguous_run_along, vector_elements
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
