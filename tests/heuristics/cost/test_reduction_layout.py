"""How reductions lie over threads, and the conflicts of what warps exchange."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.heuristics.test_schedulers import H200
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.cost.reduction_layout import ReductionLayouts
from tritonfuser.heuristics.cost.tiles import KernelTile
from tritonfuser.heuristics.params import InnerPersistentParams, ReductionParams
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.search.choice import chosen
from tritonfuser.heuristics.search.model_space import limited_to_rules, with_sizes_varied
from tritonfuser.heuristics.search.spaces import SPACES
from tritonfuser.heuristics.streams import Stream

SIZES = [
    (x, r, warps, wide)
    for x in (8, 32, 128)
    for r in (8, 64)
    for warps in (1, 2, 4, 8)
    for wide in (1, 4, 8)
    if x >= wide and x * r >= wide * 32 * warps and x <= wide * 32 * warps
]
"""Tiles of which each thread has ``wide`` columns of one row at least."""


def sums(columns, rows, item=4, device=H200):
    """Sums of columns."""
    stream = Stream(
        item_bytes=item, x_stride=1, r_stride=columns, total_bytes=item * columns * rows
    )
    return Problem(
        parallel=columns, reduced=rows, reduction_depth=1, streams=(stream,), device=device
    )


def seconds(problem, work, rows, warps):
    params = ReductionParams(block_x=64, block_r=rows, persistent=True, num_warps=warps)
    return predicted(problem, params, work).seconds


def clocks(x, warps, wide):
    """Clocks of shared memory, by the banks of every access of every warp.

    Lanes lie along the columns first, and so do warps; a column's partial results are neighbours.
    """
    beside = min(x // wide, 32)
    along = max(x // wide // 32, 1)
    partial = warps // along
    taken = 0
    for _ in range(warps):
        for place in range(wide):
            words = {(wide * lane + place) * partial for lane in range(beside)}
            taken += max(Counter(word % 32 for word in words).values())
    return 2 * taken if partial > 1 else 0


@pytest.mark.parametrize(("x", "r", "warps", "wide"), SIZES)
def test_conflicts_are_those_of_the_banks(x, r, warps, wide):
    layouts = ReductionLayouts(reductions=1, columns=0, inner=False, lanes=32)
    found = layouts.of_tile(KernelTile(1, 1, 1, x, r), 32 * warps, wide)
    assert found.exchange_clocks == clocks(x, warps, wide)


def test_each_reduction_exchanges_and_rows_along_memory_do_not():
    tile = KernelTile(1, 1, 1, 64, 64)

    def exchanged(reductions, columns=0, inner=False):
        layouts = ReductionLayouts(reductions=reductions, columns=columns, inner=inner, lanes=32)
        return layouts.of_tile(tile, 256, 4.0).exchange_clocks

    assert exchanged(3) == 3 * exchanged(1) > 0
    assert exchanged(1, inner=True) == 0
    assert exchanged(1, columns=2, inner=True) == 2 * exchanged(0, columns=1, inner=True) > 0
    assert exchanged(0) == 0


def test_fewer_warps_take_less_time_for_many_reductions():
    """H100, eight sums of ten rows each: 65 us by one warp, 326 by eight."""
    problem, work = sums(1 << 19, 10), ElementWork(before=2, reducing=8, reductions=8, carried=8)
    one, eight = (seconds(problem, work, 16, warps) for warps in (1, 8))
    assert eight > 2 * one


def test_a_strided_tensor_does_not_widen_the_vectors_of_rows():
    """Rows at odd elements: threads have single elements of many rows.

    H200, the moments of 10.8 million rows of 98, of which a half lies across, by tiles of 32 x 128
    and 8 warps: 3,160 million instructions, 2.6 times as many as of vectors of 8 elements.
    """
    rows = 1 << 20
    along = Stream(item_bytes=2, x_stride=97, r_stride=1, total_bytes=2 * 97 * rows)
    across = Stream(item_bytes=2, x_stride=1, r_stride=rows, total_bytes=97 * rows)
    problem = Problem(
        parallel=rows, reduced=97, reduction_depth=1, streams=(along, across), device=H200
    )
    params = ReductionParams(block_x=32, block_r=128, persistent=True, num_warps=8)
    work = ElementWork(reductions=2, carried=2)
    assert Counting(problem, work).counts(params).results == 16
    whole = replace(along, x_stride=128, total_bytes=256 * rows)
    problem = replace(problem, reduced=128, streams=(whole, across))
    assert Counting(problem, work).counts(params).results == 2


def test_some_reductions_are_in_the_layout_of_a_strided_tensor():
    """Half of what rows are computed of lies along x, with eight neighbours a thread.

    H200, two sums of each of 41.7 million rows of 4: 1,659 us by tiles of 256 x 4 and four warps,
    585 by 512 x 4, of which two warps have a partial result of a row, and not four.
    """
    rows = 1 << 22
    along = Stream(item_bytes=2, x_stride=4, r_stride=1, total_bytes=8 * rows)
    across = Stream(item_bytes=2, x_stride=1, r_stride=rows, total_bytes=8 * rows)
    work = ElementWork(reductions=2, carried=2)

    def exchanged(warps, *streams):
        problem = Problem(parallel=rows, reduced=4, reduction_depth=2, streams=streams, device=H200)
        params = InnerPersistentParams(block_x=256, block_r=4, persistent=True, num_warps=warps)
        return Counting(problem, work).counts(params).exchange_clocks

    assert exchanged(4, along, across) == clocks(256, 4, 8) > 0
    assert exchanged(1, along, across) == exchanged(4, along) == 0


@pytest.mark.parametrize("item", [2, 4])
def test_chosen_tiles_of_columns_have_whole_sectors(item):
    """Or as many columns as those of the rules, where these are fewer."""
    work = ElementWork(before=2, reducing=1, reductions=1, carried=1)
    for columns, rows in ((128, 1792), (1024, 8192), (96, 100_000), (1 << 16, 640)):
        problem = sums(columns, rows, item)
        least = min(32 // item, schedulers.propose(problem).block_x)
        assert chosen(problem, work).block_x >= least


@pytest.mark.parametrize("item", [1, 2, 4, 8, 16])
def test_some_tiles_are_left_of_any_number_of_columns(item):
    """Also where the rules' tile has more columns than there are."""
    for columns in (1, 2, 3, 5, 8, 31, 1000):
        problem = sums(columns, 4096, item)
        for block_x in (1, 8, 2048):
            rules = ReductionParams(block_x=block_x, block_r=8, persistent=False)
            found = with_sizes_varied(
                limited_to_rules(SPACES["reduction"](problem), problem, rules), rules
            )
            assert all(choice.values for each in found.alternatives for choice in each.choices)


def test_the_exchange_of_programs_that_end_together_is_not_hidden():
    """One wave of programs: what they exchange is behind all that they load."""
    problem, work = sums(1024, 8192, 2), ElementWork(before=1, reducing=1, reductions=1, carried=1)
    split = replace(problem, parallel=32 * 1024, reduced=256)
    eight, four = (seconds(split, work, 256, warps) for warps in (8, 4))
    assert eight > 1.05 * four


def test_loads_of_a_later_step_wait_for_a_change_of_layout():
    """The warps meet for it in each step, and no compiler moves loads across that.

    H200, rows of which one tensor lies across: 3,316 us by 3,326 steps of 16 x 32, 2,035 by half as
    many of 16 x 64.
    """
    rows = 4096
    along = Stream(item_bytes=2, x_stride=rows, r_stride=1, total_bytes=2 * rows * rows)
    across = Stream(item_bytes=2, x_stride=1, r_stride=rows, total_bytes=2 * rows * rows)
    work = ElementWork(before=2, reductions=1, carried=1)

    def found(block_x, *streams, persistent=False):
        problem = Problem(
            parallel=rows, reduced=rows, reduction_depth=1, streams=streams, device=H200
        )
        block_r = rows if persistent else 32
        params = ReductionParams(
            block_x=block_x, block_r=block_r, persistent=persistent, num_warps=16
        )
        counts = Counting(problem, work).counts(params)
        return counts.serial_steps, predicted(problem, params, work).resources["latency"]

    assert found(16, along, across)[0] == 1
    assert found(1, along, across)[0] == found(16, along, along)[0] == 0
    assert found(16, along, across, persistent=True)[0] == 0
    assert found(16, along, across)[1] > 2 * found(16, along, along)[1]
