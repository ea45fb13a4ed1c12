"""Rows shorter than their tile: what does not exist is left out of lines once, not twice."""

from __future__ import annotations

import pytest

from tritonfuser.devices import known
from tritonfuser.heuristics.cost.kernels import Times
from tritonfuser.heuristics.params import ReductionParams
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.streams import Stream, StrideTerm

ROWS = 1 << 20


def problem(length: int) -> Problem:
    """Sums of rows whose elements are all far apart in memory."""
    terms = StrideTerm(0, 1, ROWS, 64), StrideTerm(1, 1, length, 64 * ROWS)
    far = Stream(
        item_bytes=2,
        along_x=True,
        along_r=True,
        x_stride=64,
        r_stride=64 * ROWS,
        contiguous_run=1,
        total_bytes=2 * ROWS * length,
        stride_terms=terms,
    )
    return Problem(
        device=known("sm_90"),
        parallel=ROWS,
        reduced=length,
        reduction_depth=1,
        axes=(ROWS, length),
        row_axes=1,
        streams=(far,),
    )


@pytest.mark.parametrize("length", [3, 5, 8, 25, 32])
def test_each_element_that_is_far_from_others_takes_a_line(length: int) -> None:
    block_r = 1 << (length - 1).bit_length()
    params = ReductionParams(block_x=2048 // block_r, block_r=block_r, persistent=True, num_warps=4)
    found = Times(problem(length), ElementWork(before=1.0))._counting(params).counts(params)
    assert found.lines == pytest.approx(2048 // block_r * length, rel=0.05)
