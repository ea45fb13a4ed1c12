"""Rows whose results are reduced further: one program has them all, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.heuristics.test_schedulers import COLUMN, CPU, FLAT, H200, norm
from tritonfuser.device import MAX_BLOCK_ELEMENTS
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.cost.tiles import tile_of
from tritonfuser.heuristics.integers import next_power_of_2
from tritonfuser.heuristics.params import InnerPersistentParams
from tritonfuser.heuristics.requirements import MAX_CO_REDUCED


def proposed(problem):
    params = schedulers.propose(problem)
    name = params.scheduler
    assert name == "inner_persistent"
    assert isinstance(params, InnerPersistentParams)
    return params


@pytest.mark.parametrize("device", [H200, CPU], ids=["h200", "cpu"])
@pytest.mark.parametrize("co_reduced", [2, 3, 10, 40, MAX_CO_REDUCED])
@pytest.mark.parametrize("row", [1, 49, 3136, 3249, 12544, 65536])
def test_the_tile_has_all_of_them(row, co_reduced, device):
    params = proposed(norm(8192 * co_reduced, row, co_reduced=co_reduced, device=device))
    assert params.block_x == next_power_of_2(co_reduced)
    assert params.block_x * params.block_r <= MAX_BLOCK_ELEMENTS
    if params.persistent:
        assert params.block_r + sum(params.tails) >= row


def test_they_share_what_a_program_takes_in_a_step():
    two, four = (proposed(norm(4096 * n, 40000 // n, co_reduced=n)) for n in (2, 4))
    assert not two.persistent and not four.persistent
    assert two.block_r == 2 * four.block_r
    assert two.num_warps == four.num_warps
    assert two.tails == four.tails == ()


REFUSED = {
    "65 rows are too many to reduce together": norm(65 * 512, 64, co_reduced=65),
    "8 programs of 131072 elements a row leave 132 SMs idle": norm(64, 16384, co_reduced=8),
    "it reduces over rows as well": norm(4096, 64, co_reduced=2, outer_members=1),
    "it has a scan": norm(4096, 64, co_reduced=2, scans=True),
    "rows lie across memory": norm(4096, 64, co_reduced=2, streams=(COLUMN,)),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused(reason):
    assert schedulers.reject_reason(REFUSED[reason]) == f"inner_persistent: {reason}"


def test_no_other_scheduler_is_asked():
    problem = replace(norm(4096, 64, co_reduced=2), streams=(FLAT,), reduction_depth=1)
    problem = replace(problem, dependent_outputs=False)
    assert schedulers.reject_reason(problem) is not None


def test_they_take_no_pass_of_their_own():
    """Results of rows are reduced without another loop: two passes, and not three."""
    params = InnerPersistentParams(block_x=2, block_r=2048, persistent=False, num_warps=8)
    problem = norm(4096, 16384, co_reduced=2, reduction_depth=2)
    passes = [
        tile_of(replace(problem, reduction_passes=number), params).passes for number in (0, 1)
    ]
    assert passes == [3, 2]
