"""What the cost model counts of scans beside reductions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.heuristics.cost.test_reduction_layout import sums
from tests.heuristics.test_cost import rows
from tests.heuristics.test_schedulers import H200
from tritonfuser.heuristics.cost.constants import constants_of
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.counts import Counts
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.cost.numbers import PLAIN
from tritonfuser.heuristics.cost.programs_time import programs_time
from tritonfuser.heuristics.cost.tile_counts import TileCounting
from tritonfuser.heuristics.cost.tiles import tile_of
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


@pytest.mark.parametrize("block_r", [256, 512, 1024])
def test_what_one_step_has_behind_the_end_of_rows_is_not_scanned(block_r: int) -> None:
    """Rows of 132 float32: 32 threads with 4 each have them in two turns, however long the tile."""
    short = rows(4096, 132, scans=True, reduction_depth=1, dependent_outputs=True)
    found = counts(ScanParams(block_x=1, block_r=block_r, num_warps=1), short)
    assert found.computed == 2 * 128 / block_r
    assert (found.elements, found.results) == (8, 2)


def test_a_loop_scans_whole_blocks() -> None:
    found = counts(ScanParams(block_x=1, block_r=128, num_warps=1), replace(SCANNED, reduced=132))
    assert (found.steps, found.computed) == (2, 1.0)


def test_columns_that_end_within_a_tile_are_computed_in_whole_turns() -> None:
    """Tiles of 32 columns and 128 rows by 128 threads: 8 lanes across, so 16 rows are a turn."""
    problem = sums(4096, 20)
    tile = tile_of(problem, ScanParams(block_x=32, block_r=128, num_warps=4))
    assert TileCounting(problem, WORK).computed_share(tile, 128, 4.0, PLAIN) == 2 * 16 / 128


def test_results_cost_more_where_more_warps_have_the_row() -> None:
    """Each reads what all others have."""

    def instructions(found: Counts, warps: int) -> float:
        found = found._replace(lanes=32.0 * warps)
        c = constants_of(H200)
        return float(programs_time(found, 4.0, 0.0, H200, c, PLAIN).resources["instructions"])

    one, two, four = (instructions(counts(ONE_STEP), warps) for warps in (1, 2, 4))
    assert four - one == pytest.approx(3 * (two - one)) and two > one
    reduced = counts(ONE_STEP)._replace(scans=0.0)
    assert instructions(reduced, 4) == instructions(reduced, 1)
