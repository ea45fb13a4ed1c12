"""What the cost model counts of scans beside reductions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.heuristics.test_cost import rows
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.counts import Counts
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.params import ScanParams
from tritonfuser.heuristics.problem import ElementWork, Problem

WORK = ElementWork(before=4, after=4, reducing=1, reductions=1, carried=0)
SCANNED = replace(rows(4096, 2048), scans=True, reduction_depth=1, dependent_outputs=True)
ONE_STEP = ScanParams(block_x=1, block_r=2048, num_warps=4)
EIGHT_STEPS = ScanParams(block_x=8, block_r=256, num_warps=4)


def counts(params: ScanParams, problem: Problem = SCANNED, work: ElementWork = WORK) -> Counts:
    return Counting(problem, work).counts(params)


def test_a_scan_is_done_in_each_step_and_its_result_is_there() -> None:
    one, eight = counts(ONE_STEP), counts(EIGHT_STEPS)
    assert (one.passes, eight.passes) == (1, 1)
    assert (one.reduced_steps, eight.reduced_steps) == (1, 8)
    assert one.scans == eight.scans == 1


def test_each_run_of_neighbours_has_a_result() -> None:
    found = counts(ONE_STEP)
    assert found.results == found.elements / 4  # float32: 16 bytes a thread
    reduced = replace(SCANNED, scans=False)
    assert Counting(reduced, replace(WORK, carried=1)).counts(ONE_STEP).results == 1


def test_what_follows_a_sum_of_the_scan_reads_the_row_again() -> None:
    deeper = replace(SCANNED, reduction_depth=2)
    found = counts(EIGHT_STEPS, deeper, replace(WORK, reductions=2, carried=1))
    assert found.passes == 2
    assert found.scans == 1
    assert found.reduced_steps == 1 + 0.5 * (2 * 8 - 1)


def test_steps_cost_what_a_scan_carries() -> None:
    work = replace(WORK, reductions=2, carried=1)
    deeper = replace(SCANNED, reduction_depth=2)
    steps = ScanParams(block_x=1, block_r=256, num_warps=4)
    assert predicted(deeper, steps, work).seconds > predicted(deeper, ONE_STEP, work).seconds


@pytest.mark.parametrize("params", [ONE_STEP, EIGHT_STEPS])
def test_a_scan_of_one_position_is_no_reduction(params: ScanParams) -> None:
    found = counts(params, work=replace(WORK, reductions=0, reducing=0))
    assert found.scans == 0
    assert found.reduced_steps == 1
