"""Programs that loop over rows: registers say which rows they take, and how long a step is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.heuristics.test_cooperative_rows import H200, backward
from tritonfuser.heuristics import inner_outer_persistent
from tritonfuser.heuristics.looped_rows.residency import fits
from tritonfuser.heuristics.looped_rows.steps import fits_row, step_of


@pytest.mark.parametrize(("sums", "longest"), [(1, 15360), (2, 12288), (4, 7680)])
def test_the_more_sums_over_rows_the_shorter_the_rows_that_registers_hold(sums, longest):
    problem = backward(4096, longest, outer_members=sums)
    more = replace(problem, outer_members=sums + 1)
    tiles = 1 << longest.bit_length() - 1, (longest - (1 << longest.bit_length() - 1),)
    assert fits_row(problem, *tiles) and not fits_row(more, *tiles)


def test_rows_of_many_sums_are_cut_into_fewer_pieces_where_these_fit():
    found = [
        inner_outer_persistent.propose(backward(1 << 14, 2896, accumulators=n)) for n in (1, 3, 6)
    ]
    assert [vars(params)["tails"] for params in found] == [(512, 256, 128), (512, 512), (1024,)]
    # With few tails a row of 12296 would be rounded up to 16384, which registers do not hold.
    long = inner_outer_persistent.propose(backward(1 << 14, 12296, accumulators=6))
    assert (vars(long)["block_r"], vars(long)["tails"]) == (8192, (4096, 16))


def test_they_are_those_of_the_device():
    few = replace(H200, registers_per_sm=H200.registers_per_sm // 2)
    problem = backward(4096, 8192, published_sums=0)
    assert inner_outer_persistent.reject_reason(problem) is None
    reason = inner_outer_persistent.reject_reason(replace(problem, device=few))
    assert reason is not None and "do not fit in registers" in reason


@pytest.mark.parametrize("block", [32, 256, 1024, 4096])
@pytest.mark.parametrize("sums", [1, 4, 12])
def test_steps_of_lone_programs_have_no_more_rows_than_registers_hold(block, sums):
    problem = backward(1 << 14, block, outer_members=sums)
    step = step_of(problem, 1 << 14, block, ())
    assert step.rows == 1 or fits(problem, step, block)
