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
from tritonfuser.heuristics.cost.registers import programs_per_sm
from tritonfuser.heuristics.params import (
    InnerOuterPersistentParams,
    KernelParams,
    ReductionParams,
    TransposeParams,
)
from tritonfuser.heuristics.problem import ElementWork
from tritonfuser.heuristics.schedulers import kernel_seconds
from tritonfuser.heuristics.search.choice import chosen
from tritonfuser.heuristics.search.compiled_registers import CompiledRegisters
from tritonfuser.heuristics.search.masked_steps import with_masks_for_programs
from tritonfuser.heuristics.search.other_prefetch import with_other_prefetch
from tritonfuser.heuristics.search.register_feedback import (
    has_short_pieces,
    is_much_faster,
    rechosen_params,
    takes_too_many,
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
    return CompiledRegisters(problem, work, params, round(factor * float(time.registers)))


def test_the_model_takes_known_registers_for_all_params():
    taken = kernel(3)
    times = Kernels(taken.problem, taken.corrected_work), Kernels(taken.problem, taken.work)
    assert times[0].time(taken.params).registers == pytest.approx(taken.registers)
    other = replace(taken.params, block_r=2 * taken.params.block_r)
    known, predicted = (each.time(other).registers for each in times)
    assert known == pytest.approx(taken.register_factor * predicted)
    # Which loads are begun at once is among them already.
    assert times[0].registers_per_element(True) < 3 * times[1].registers_per_element(True)
    assert times[0].registers_per_element(True) * FILLED < 3 * times[1].registers_per_element(True)


def test_a_program_by_itself_overlaps_less():
    """Its loads, instructions and stores follow one another, where its registers are known."""
    wide = kernel(1)
    alone = replace(wide, params=replace(wide.params, num_warps=16), registers=100)
    for taken, is_alone in ((alone, True), (replace(wide, registers=50), False)):
        time = kernel_seconds(WIDE, taken.params, taken.corrected_work)
        more = time.busy - busy_seconds(time.resources)
        assert (more > 0.05 * time.busy) == is_alone


@pytest.mark.parametrize("factor", [0.5, 1, 1.02])
def test_about_as_many_registers_as_predicted_change_nothing(factor):
    assert not takes_too_many(kernel(factor), MANY)
    assert rechosen_params(kernel(factor), MANY) is None


def test_fewer_programs_count_only_where_the_grid_has_them():
    """A few registers more than predicted, and one program less runs at a time."""
    taken = next(
        found
        for found in (kernel(1 + 0.01 * n, COLUMNS, WORK) for n in range(1, 10))
        if takes_too_many(found, MANY)
    )
    assert taken.register_factor < 1 / FILLED
    device, warps = COLUMNS.device, taken.params.num_warps
    assert not takes_too_many(taken, programs_per_sm(device, warps, taken.registers))


def test_many_more_registers_lead_to_less_for_a_thread():
    few = replace(LARGE, num_warps=8)
    wanted = float(kernel_seconds(WIDE, few, HEAVY).registers)
    taken = CompiledRegisters(WIDE, HEAVY, few, round(3 * wanted))
    found = rechosen_params(taken, MANY)
    assert found is not None
    before, after = (params.block_x * params.block_r for params in (taken.params, found))
    assert after / found.num_warps < before / taken.params.num_warps
    after = kernel_seconds(WIDE, found, taken.corrected_work)
    assert float(after.seconds) < GAIN * taken.seconds


@pytest.mark.parametrize(("words", "again"), [(0, False), (16, False), (64, True), (500, True)])
def test_a_kernel_that_spills_much_is_rescheduled(words, again):
    """Whatever registers it takes: the compiler gives a program fewer than it may have."""
    half = kernel(0.5)
    taken = replace(half, spilled=words)
    assert takes_too_many(taken, MANY) == again
    more = words / float(taken.predicted.registers) if again else 0.0
    assert taken.register_factor == pytest.approx(half.register_factor + more)
    assert (taken.seconds > half.seconds) == again


def test_others_are_looked_for_by_what_the_model_predicts_of_them():
    """What one kernel spills is not expected of others."""
    taken = replace(kernel(0.5), spilled=500)
    found = rechosen_params(taken, MANY)
    assert found is not None
    by_others = kernel_seconds(WIDE, found, HEAVY)
    assert not by_others.may_spill
    assert float(by_others.seconds) < GAIN * taken.seconds
    assert kernel_seconds(WIDE, found, taken.corrected_work).may_spill


def test_a_kernel_that_spills_gives_up_prefetches_into_registers():
    """They wait in shared memory then, if the model finds nothing else."""
    loops = InnerOuterPersistentParams(num_warps=8, block_m=1, block_r=8192, prefetch=True)
    taken = CompiledRegisters(COLUMNS, WORK, loops, 255, spilled=100)
    start = taken.start
    assert not start.prefetch and start.num_stages > 1
    assert replace(start, prefetch=True, num_stages=1) == loops
    assert replace(taken, spilled=8).start == loops


@cache
def norm():
    """The backward of a layer norm with dropout: its kernel, said to spill 16 words."""
    case, size = BY_NAME["dropout_layernorm_bwd"], (8192, 8704)
    given = list(case.inputs(size, torch.bfloat16, "meta"))
    segments = case.record(size, torch.bfloat16).segments(given, arch="sm_90").segments
    params = InnerOuterPersistentParams(num_warps=8, block_m=1, block_r=8192, tails=(512,))
    work = segment_element_work(segments[0])
    return CompiledRegisters(segments[0].problem, work, params, 255, spilled=16)


@pytest.mark.parametrize("prefetch", [True, False])
def test_a_few_spills_lead_to_the_other_prefetch(prefetch):
    stages = 1 if prefetch else 3
    loops = replace(norm().params, num_stages=stages, prefetch=prefetch)
    taken = replace(norm(), params=replace(loops, max_registers=200), registers=200)
    params = rechosen_params(taken, MANY)
    assert params == replace(loops, prefetch=not prefetch, num_stages=4 - stages)
    assert with_other_prefetch(taken.problem, params) == loops
    other = replace(taken, params=replace(params, max_registers=128), spilled=0)
    said = f"spills nothing, and {taken.params} 16 words of a thread"
    assert why_better(other, taken) == said
    assert why_better(replace(other, spilled=1), taken) == ""


def test_the_other_prefetch_needs_about_as_much_predicted_time():
    """The loads of 64 rows have no room in shared memory."""
    ahead = replace(norm(), params=replace(norm().params, prefetch=True))
    assert ahead.other_prefetch is not None
    many = replace(ahead.params, block_m=64)
    assert ahead.problem.max_stages(64 * 8704) == 1
    assert with_other_prefetch(ahead.problem, many) is None
    assert replace(ahead, params=many).other_prefetch is None
    # A pipeline of two stages is predicted to take longer than loads in registers.
    wide = replace(ahead.params, block_m=4)
    assert with_other_prefetch(ahead.problem, wide).num_stages == 2
    assert replace(ahead, params=wide).other_prefetch is None
    # Those of kernels without loads that are begun ahead stay, as do those of what spills much.
    assert norm().other_prefetch is None
    assert replace(ahead, spilled=99).other_prefetch is None
    # The limit for a second program is worth what it spills.
    half = H200.registers_per_sm // (2 * 32 * ahead.params.num_warps)
    for limit, begins in ((half, False), (half + 8, True)):
        limited = replace(ahead, params=replace(ahead.params, max_registers=limit))
        assert (limited.other_prefetch is not None) == begins
    assert replace(ahead, spilled=0).other_prefetch is None


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
    assert rechosen_params(replace(taken, problem=replace(WIDE, co_reduced=2)), MANY) is None


def test_the_registers_of_both_kernels_decide():
    wanted = float(kernel_seconds(WIDE, LARGE, HEAVY).registers)
    taken = CompiledRegisters(WIDE, HEAVY, LARGE, round(3 * wanted))
    params = rechosen_params(taken, MANY)
    predicted = float(kernel_seconds(WIDE, params, HEAVY).registers)
    other = CompiledRegisters(WIDE, HEAVY, params, round(predicted))
    assert is_much_faster(other, taken) and not is_much_faster(taken, other)
    # One that takes as many more as the first is at most as much faster as was predicted.
    assert not is_much_faster(replace(other, registers=250), taken)
    said = why_better(other, taken)
    assert why_better(replace(other, registers=250), taken) == ""
    assert why_better(replace(other, spilled=1), taken) == ""
    assert f"{taken.registers} registers a thread" in said and str(taken.params) in said


def test_unknown_registers_say_nothing():
    taken = replace(kernel(3), registers=0)
    assert taken.corrected_work == taken.work and not takes_too_many(taken, MANY)


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
    start = CompiledRegisters(problem, WORK, loops, 255, spilled=100).start
    assert start.num_stages == min(3, problem.max_stages(8192)) == stages


def test_rechosen_params_have_masks_where_a_step_behind_the_loop_costs_a_program():
    problem = summed(500, 1 << 19)
    found = replace(LARGE, num_warps=4, block_x=128)
    wanted = float(kernel_seconds(problem, found, SUM).registers)
    taken = CompiledRegisters(problem, SUM, found, round(1.2 * wanted))
    again = rechosen_params(taken, 16)
    assert again is not None
    free = replace(again, max_registers=0)
    assert with_masks_for_programs(Kernels(problem, taken.corrected_work), free) == free
