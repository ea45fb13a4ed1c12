"""Params that are chosen again, by registers that a compiled kernel is said to take."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from bench.cases import BY_NAME
from tests.heuristics.test_choice import COLUMNS, WORK, sums
from tests.heuristics.test_columns import SUM, summed
from tritonfuser.devices import known
from tritonfuser.heuristics.cost.model import FILLED, busy_seconds
from tritonfuser.heuristics.cost.registers import programs_at_once
from tritonfuser.heuristics.params import (
    InnerOuterPersistentParams,
    KernelParams,
    ReductionParams,
    TransposeParams,
)
from tritonfuser.heuristics.problem import ElementWork
from tritonfuser.heuristics.schedulers import kernel_seconds
from tritonfuser.heuristics.search.choice import chosen
from tritonfuser.heuristics.search.masked_steps import with_masks_for_programs
from tritonfuser.heuristics.search.other_prefetch import with_other_prefetch
from tritonfuser.heuristics.search.taken_registers import (
    Taken,
    chosen_again,
    has_short_pieces,
    is_much_faster,
    takes_more,
    why_better,
    why_spills_less,
    with_more_warps,
)
from tritonfuser.heuristics.search.thresholds import GAIN
from tritonfuser.heuristics.search.warps import Kernels
from tritonfuser.lowering.cost import segment_element_work

H200 = known("sm_90")
WIDE = sums(544, 296898, 2, inner=False)
HEAVY = ElementWork(before=30, special_before=3, reducing=1, reductions=1, carried=1)
LARGE = ReductionParams(num_warps=16, block_x=64, block_r=32, persistent=False, evict_hints=False)
"""More elements of a thread than the model chooses for ``WIDE`` and ``HEAVY``."""

MANY = 100
"""Programs for each multiprocessor: more than run at a time."""


def kernel(factor, problem=WIDE, work=HEAVY):
    """The chosen kernel, of so many times the predicted registers."""
    params = chosen(problem, work)
    assert isinstance(params, KernelParams)
    time = kernel_seconds(problem, params, work)
    return Taken(problem, work, params, round(factor * float(time.registers)))


def test_the_model_takes_known_registers_for_all_params():
    taken = kernel(3)
    times = Kernels(taken.problem, taken.known_work), Kernels(taken.problem, taken.work)
    assert times[0].time(taken.params).registers == pytest.approx(taken.registers)
    other = replace(taken.params, block_r=2 * taken.params.block_r)
    known, predicted = (each.time(other).registers for each in times)
    assert known == pytest.approx(taken.factor * predicted)
    # Which loads are begun at once is among them already.
    assert times[0].registers_each(True) < 3 * times[1].registers_each(True)
    assert times[0].registers_each(True) * FILLED < 3 * times[1].registers_each(True)


def test_a_program_by_itself_overlaps_less():
    """Its loads, instructions and stores follow one another, where its registers are known."""
    wide = kernel(1)
    alone = replace(wide, params=replace(wide.params, num_warps=16), registers=100)
    for taken, is_alone in ((alone, True), (replace(wide, registers=50), False)):
        time = kernel_seconds(WIDE, taken.params, taken.known_work)
        more = time.busy - busy_seconds(time.resources)
        assert (more > 0.05 * time.busy) == is_alone


@pytest.mark.parametrize("factor", [0.5, 1, 1.02])
def test_what_takes_about_as_many_as_predicted_is_not_chosen_again(factor):
    assert not takes_more(kernel(factor), MANY)
    assert chosen_again(kernel(factor), MANY) is None


def test_fewer_programs_count_only_where_the_grid_has_them():
    """A few registers more than predicted, and one program less runs at a time."""
    taken = next(
        found
        for found in (kernel(1 + 0.01 * n, COLUMNS, WORK) for n in range(1, 10))
        if takes_more(found, MANY)
    )
    assert taken.factor < 1 / FILLED
    device, warps = COLUMNS.device, taken.params.num_warps
    assert not takes_more(taken, programs_at_once(device, warps, taken.registers))


def test_many_more_registers_lead_to_less_for_a_thread():
    few = replace(LARGE, num_warps=8)
    wanted = float(kernel_seconds(WIDE, few, HEAVY).registers)
    taken = Taken(WIDE, HEAVY, few, round(3 * wanted))
    found = chosen_again(taken, MANY)
    assert found is not None
    before, after = (params.block_x * params.block_r for params in (taken.params, found))
    assert after / found.num_warps < before / taken.params.num_warps
    after = kernel_seconds(WIDE, found, taken.known_work)
    assert float(after.seconds) < GAIN * taken.seconds


@pytest.mark.parametrize(("words", "again"), [(0, False), (16, False), (64, True), (500, True)])
def test_what_spills_much_is_chosen_again(words, again):
    """Whatever registers it takes: the compiler gives a program fewer than it may have."""
    half = kernel(0.5)
    taken = replace(half, spilled=words)
    assert takes_more(taken, MANY) == again
    more = words / float(taken.predicted.registers) if again else 0.0
    assert taken.factor == pytest.approx(half.factor + more)
    assert (taken.seconds > half.seconds) == again


def test_others_are_looked_for_by_what_the_model_predicts_of_them():
    """What one kernel spills is not expected of others."""
    taken = replace(kernel(0.5), spilled=500)
    found = chosen_again(taken, MANY)
    assert found is not None
    by_others = kernel_seconds(WIDE, found, HEAVY)
    assert not by_others.may_spill
    assert float(by_others.seconds) < GAIN * taken.seconds
    assert kernel_seconds(WIDE, found, taken.known_work).may_spill


def test_what_spills_gives_up_loads_that_wait_in_registers():
    """They wait in shared memory then, if the model finds nothing else."""
    loops = InnerOuterPersistentParams(num_warps=8, block_m=1, block_r=8192, prefetch=True)
    taken = Taken(COLUMNS, WORK, loops, 255, spilled=100)
    near = taken.near
    assert not near.prefetch and near.num_stages > 1
    assert replace(near, prefetch=True, num_stages=1) == loops
    assert replace(taken, spilled=8).near == loops


@cache
def norm():
    """The backward of a layer norm with dropout: its kernel, said to spill 16 words."""
    case, size = BY_NAME["dropout_layernorm_bwd"], (8192, 8704)
    given = list(case.inputs(size, torch.bfloat16, "meta"))
    segments = case.record(size, torch.bfloat16).segments(given, arch="sm_90").segments
    params = InnerOuterPersistentParams(num_warps=8, block_m=1, block_r=8192, tails=(512,))
    work = segment_element_work(segments[0])
    return Taken(segments[0].problem, work, params, 255, spilled=16)


@pytest.mark.parametrize("prefetch", [True, False])
def test_what_spills_a_little_begins_its_loads_elsewhere(prefetch):
    stages = 1 if prefetch else 3
    loops = replace(norm().params, num_stages=stages, prefetch=prefetch)
    taken = replace(norm(), params=replace(loops, max_registers=200), registers=200)
    params = chosen_again(taken, MANY)
    assert params == replace(loops, prefetch=not prefetch, num_stages=4 - stages)
    assert with_other_prefetch(taken.problem, params) == loops
    other = replace(taken, params=replace(params, max_registers=128), spilled=0)
    said = f"spills nothing, and {taken.params} 16 words of a thread"
    assert why_better(other, taken) == said
    assert why_better(replace(other, spilled=1), taken) == ""


def test_loads_go_elsewhere_only_where_the_model_predicts_about_as_much_time():
    """The loads of 64 rows have no room in shared memory."""
    ahead = replace(norm(), params=replace(norm().params, prefetch=True))
    assert ahead.loads_elsewhere is not None
    many = replace(ahead.params, block_m=64)
    assert ahead.problem.max_stages(64 * 8704) == 1
    assert with_other_prefetch(ahead.problem, many) is None
    assert replace(ahead, params=many).loads_elsewhere is None
    # A pipeline of two stages is predicted to take longer than loads in registers.
    wide = replace(ahead.params, block_m=4)
    assert with_other_prefetch(ahead.problem, wide).num_stages == 2
    assert replace(ahead, params=wide).loads_elsewhere is None
    # Those of kernels without loads that are begun ahead stay, as do those of what spills much.
    assert norm().loads_elsewhere is None
    assert replace(ahead, spilled=99).loads_elsewhere is None
    # The limit for a second program is worth what it spills.
    half = H200.registers_per_sm // (2 * 32 * ahead.params.num_warps)
    for limit, begins in ((half, False), (half + 8, True)):
        limited = replace(ahead, params=replace(ahead.params, max_registers=limit))
        assert (limited.loads_elsewhere is not None) == begins
    assert replace(ahead, spilled=0).loads_elsewhere is None


def test_what_spills_more_is_tried_with_more_warps():
    ahead = replace(norm(), params=replace(norm().params, prefetch=True), spilled=30)
    found = with_more_warps(ahead, MANY)
    assert found == replace(ahead.params, num_warps=16)
    other = replace(ahead, params=found, registers=128)
    said = f"spills 2 words of a thread, and {ahead.params} 30"
    assert why_spills_less(replace(other, spilled=2), ahead) == said
    assert why_spills_less(replace(other, spilled=20), ahead) == ""
    # Not of what spills few, of the most warps, or for a second program; nor where rows are shared.
    half = H200.registers_per_sm // (2 * 32 * ahead.params.num_warps)
    assert with_more_warps(replace(ahead, spilled=8), MANY) is None
    assert with_more_warps(replace(ahead, params=found), MANY) is None
    limited = replace(ahead, params=replace(ahead.params, max_registers=half))
    assert with_more_warps(limited, MANY) is None
    assert with_more_warps(replace(ahead, params=replace(ahead.params, parts=2)), MANY) is None


def test_rows_that_programs_share_stay():
    taken = kernel(3)
    assert chosen_again(replace(taken, problem=replace(WIDE, co_reduced=2)), MANY) is None


def test_the_registers_of_both_kernels_decide():
    wanted = float(kernel_seconds(WIDE, LARGE, HEAVY).registers)
    taken = Taken(WIDE, HEAVY, LARGE, round(3 * wanted))
    params = chosen_again(taken, MANY)
    predicted = float(kernel_seconds(WIDE, params, HEAVY).registers)
    other = Taken(WIDE, HEAVY, params, round(predicted))
    assert is_much_faster(other, taken) and not is_much_faster(taken, other)
    # One that takes as many more as the first is at most as much faster as was predicted.
    assert not is_much_faster(replace(other, registers=250), taken)
    said = why_better(other, taken)
    assert why_better(replace(other, registers=250), taken) == ""
    assert why_better(replace(other, spilled=1), taken) == ""
    assert f"{taken.registers} registers a thread" in said and str(taken.params) in said


def test_unknown_registers_say_nothing():
    taken = replace(kernel(3), registers=0)
    assert taken.known_work == taken.work and not takes_more(taken, MANY)


@pytest.mark.parametrize(("sides", "short"), [((16, 16), True), ((32, 16), True), ((8, 64), False)])
def test_no_tile_has_two_short_sides(sides, short):
    problem = replace(WIDE, streams=tuple(replace(s, item_bytes=2) for s in WIDE.streams))
    params = TransposeParams(block_x=sides[0], block_y=sides[1], num_warps=4)
    assert has_short_pieces(problem, params) is short


@pytest.mark.parametrize(("bytes_each", "stages"), [(2, 3), (4, 3), (8, 2)])
def test_a_pipeline_has_the_stages_that_shared_memory_holds(bytes_each, stages):
    loads = tuple(replace(s, item_bytes=bytes_each) for s in COLUMNS.streams if not s.is_store)
    problem = replace(COLUMNS, streams=loads * 2)
    loops = InnerOuterPersistentParams(num_warps=8, block_m=1, block_r=8192, prefetch=True)
    near = Taken(problem, WORK, loops, 255, spilled=100).near
    assert near.num_stages == min(3, problem.max_stages(8192)) == stages


def test_what_is_chosen_again_has_masks_where_a_step_behind_the_loop_costs_a_program():
    problem = summed(500, 1 << 19)
    found = replace(LARGE, num_warps=4, block_x=128)
    wanted = float(kernel_seconds(problem, found, SUM).registers)
    taken = Taken(problem, SUM, found, round(1.2 * wanted))
    again = chosen_again(taken, 16)
    assert again is not None
    free = replace(again, max_registers=0)
    assert with_masks_for_programs(Kernels(problem, taken.known_work), free) == free
