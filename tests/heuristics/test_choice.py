"""Where the cost model overrules the rules for params, and what it may choose then."""

from __future__ import annotations

import random
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from math import inf

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cases import BY_NAME
from tests.heuristics.test_schedulers import CPU, H200, KINDS, norm
from tritonfuser import DataType, FusionDefinition
from tritonfuser.device import VECTOR_BYTES
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.cost.constants import H200_CONSTANTS
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.cost.least.launches import launches_of
from tritonfuser.heuristics.cost.registers import HOISTED_RATIO, hoisted_registers
from tritonfuser.heuristics.cost.work import KernelWork, NodeWork, element_work
from tritonfuser.heuristics.params import (
    InnerOuterPersistentParams,
    InnerPersistentParams,
    ReductionParams,
)
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.row_tiling import loop_tails, peeled_step
from tritonfuser.heuristics.search import choice
from tritonfuser.heuristics.search.choice import GAIN_OF_FLAT, chosen, difference
from tritonfuser.heuristics.search.masked_steps import with_masks_for_programs
from tritonfuser.heuristics.search.model_space import limited_to_rules
from tritonfuser.heuristics.search.spaces import SPACES
from tritonfuser.heuristics.search.thresholds import GAIN
from tritonfuser.heuristics.search.warps import MODEL_ERROR, Kernels, spread_over_warps
from tritonfuser.heuristics.streams import Stream
from tritonfuser.lowering.cost import segment_time

WORK = ElementWork(before=4, reducing=1, reductions=1, carried=1)

COLUMNS = Problem(
    parallel=1 << 16,
    reduced=512,
    reduction_depth=1,
    streams=(Stream(item_bytes=2, x_stride=1, r_stride=1 << 16, total_bytes=2 << 25),),
    device=H200,
)
POOR = ReductionParams(block_x=1, block_r=32, persistent=False, num_warps=4)
"""For sums over columns: a sector is read for each element."""


def seconds(problem, params, work=WORK):
    return predicted(problem, params, work).seconds


def poor(problem):
    """Rules that propose poor params for reductions."""
    found = schedulers.propose(problem)
    return POOR if isinstance(found, ReductionParams) else found


@contextmanager
def poor_rules():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(choice, "propose", poor)
        chosen.cache_clear()
        yield
    chosen.cache_clear()


def test_far_from_the_bound_the_model_chooses():
    with poor_rules():
        params = chosen(COLUMNS, WORK)
        said = difference(COLUMNS, WORK, params)
    before, after = seconds(COLUMNS, POOR), seconds(COLUMNS, params)
    assert after < GAIN * before and after < 1.5 * seconds(COLUMNS, schedulers.propose(COLUMNS))
    assert params.block_x * 2 >= 32
    assert f"{1e6 * after:.3g} us" in said and str(POOR) in said


def test_short_runs_are_not_stored_for_fewer_instructions():
    """H200, a gelu backward and its bias gradient, 128 x 262144 in bf16: 1.7 times as long."""
    wide = Stream(
        item_bytes=2, along_r=True, x_stride=1, r_stride=262144, total_bytes=128 * 262144 * 2
    )
    streams = (wide, wide, replace(wide, is_store=True))
    problem = Problem(parallel=262144, reduced=128, reduction_depth=1, streams=streams, device=H200)
    heavy = ElementWork(before=30, special_before=3, reducing=1, reductions=1)
    rules = schedulers.propose(problem)
    assert predicted(problem, rules, heavy).limit == "instructions"
    assert chosen(problem, heavy) == rules


def sums(rows, columns, item=4, inner=True):
    """Sums of the rows of a matrix, or of its columns."""
    steps = {"x_stride": columns, "r_stride": 1} if inner else {"x_stride": 1, "r_stride": columns}
    size = item * rows * columns
    is_inside = inner and columns * item % VECTOR_BYTES  # rows begin inside vectors
    results = rows if inner else columns
    stored = Stream(
        item_bytes=item, along_r=False, r_stride=0, is_store=True, total_bytes=item * results
    )
    return Problem(
        parallel=results,
        reduced=columns if inner else rows,
        reduction_depth=1,
        streams=(Stream(item_bytes=item, total_bytes=size, **steps), stored),
        vector_elements=VECTOR_BYTES // item if is_inside else 1,
        device=H200,
    )


def test_short_rows_of_odd_length_are_not_spread_over_all_warps():
    """H200, 1057481 x 139 in float32: 363 us by 8 warps that each have a part of all rows, where
    torch.compile took 165."""
    problem, work = sums(1057481, 139), ElementWork(reducing=1, reductions=1, carried=1)
    rules, params = schedulers.propose(problem), chosen(problem, work)
    assert params.block_r < 256 or params.num_warps < rules.num_warps
    assert seconds(problem, params, work) < 0.6 * seconds(problem, rules, work)


def test_wide_columns_that_begin_inside_vectors_have_tiles_of_lines():
    """H200, columns of 544 x 296898 in bfloat16: 226 us by runs of 2048, torch.compile 98."""
    problem, work = sums(544, 296898, 2, inner=False), ElementWork(reducing=1, reductions=1)
    rules, params = schedulers.propose(problem), chosen(problem, work)
    assert rules.block_x > params.block_x
    assert seconds(problem, params, work) < GAIN * seconds(problem, rules, work)


def test_what_is_gathered_from_a_row_is_gathered_by_few_programs():
    """H200, 4096 indices in each of 8192 rows of 8192, float32: 193 us by the rules' four programs
    a row, 110 by one, which finds sectors in the L1 cache that were read before."""
    with FusionDefinition() as fd:
        table = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float)
        index = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Int)
        fd.add_output(fd.ops.gather(table, index, 1))
    inputs = [
        torch.empty(8192, 8192, device="meta"),
        torch.empty(8192, 4096, dtype=torch.int64, device="meta"),
    ]
    (piece,) = fd.segments(inputs, arch="sm_90").segments
    rules = schedulers.propose(piece.problem)
    assert piece.params.block_x == 4096 >= 4 * rules.block_x
    before, after = (float(segment_time(piece, each).seconds) for each in (rules, piece.params))
    assert after < 0.7 * before


def kept(problem, work=WORK):
    rules = schedulers.propose(problem)
    assert difference(problem, work, rules) == ""
    return chosen(problem, work) == rules


@pytest.mark.parametrize("name", [n for n in KINDS if n not in ("reduction", "outer_persistent")])
def test_near_the_bound_the_rules_choose(name):
    problem = KINDS[name]
    flat = replace(problem, axes=(problem.parallel,))  # as a kernel without rows has
    assert kept(flat if name == "pointwise" else problem)


@pytest.mark.parametrize("ops", [1, 100])
@pytest.mark.parametrize("name", ["pointwise", "reduction", "inner_persistent", "columns"])
def test_no_params_take_less_than_the_bound_by_which_a_search_is_skipped(name, ops):
    """And the bound is near the fastest: else nothing would be skipped."""
    problem = COLUMNS if name == "columns" else KINDS[name]
    streams = tuple(
        replace(s, total_bytes=problem.parallel * problem.reduced * s.item_bytes)
        for s in problem.streams
    )
    problem = replace(problem, streams=streams)
    work = replace(WORK, before=ops, special_before=ops / 8)
    rules = schedulers.propose(problem)
    kernels = Kernels(problem, work)
    times = (kernels.time(p) for p in SPACES[rules.scheduler](problem))
    fastest = min(t.seconds for t in times if t is not None) + kernels.launch_s
    assert kernels.least_s <= fastest < 1.5 * kernels.least_s


@pytest.mark.parametrize("columns", [4096, 8192, 8200, 20480, 73728])
def test_sums_that_were_measured_near_the_bound_are_the_rules(columns):
    work = ElementWork(before=1, reducing=1, reductions=1, carried=1)
    assert kept(sums(16384, columns, 2), work)
    # The columns of 8192 x 8192 in 8 parts, and those of 2048 x 73728.
    assert kept(sums(1024, 65536, 2, inner=False), work)
    assert kept(sums(2048, 73728, 2, inner=False), work)


def copies(rows, columns, **changes):
    """A normalization in bfloat16."""
    row = Stream(item_bytes=2, x_stride=columns, total_bytes=2 * rows * columns)
    return norm(rows, columns, streams=(row, replace(row, is_store=True)), **changes)


@pytest.mark.parametrize("columns", [64, 1000, 1024, 4096, 8193, 20480, 36864, 73728])
@pytest.mark.parametrize("rows", [512, 16384])
def test_norms_that_were_measured_are_the_rules(rows, columns):
    work = ElementWork(before=2, after=4, reducing=2, reductions=2, carried=2)
    assert kept(copies(rows, columns), work)


def test_rows_of_several_passes_stay_where_the_rules_have_them():
    heavy = ElementWork(before=60, after=60, reducing=2, reductions=2, carried=2)
    for columns in (4096, 12544, 16384, 20480, 36864):
        problem = copies(16384, columns, accumulators=2)
        assert chosen(problem, heavy).persistent == schedulers.propose(problem).persistent


@pytest.mark.parametrize("row", [4, 12, 100])
def test_tiles_begin_at_vectors_only_where_those_of_the_rules_do(row):
    """A step of the search took them, for rows of 4 too: the kernel did not compile."""
    problem = copies(4096, row, vector_elements=8)
    rules = InnerPersistentParams(block_x=64, block_r=128, persistent=True, num_warps=2)
    every = SPACES["inner_persistent"](problem)
    assert 8 not in alignments(limited_to_rules(every, problem, rules))
    assert (8 in alignments(every)) == (row >= 8)


@pytest.mark.parametrize("vector", [1, 8])
def test_loops_begin_at_vectors_where_rows_begin_inside_of_them(vector):
    """A part of a sum, or of the largest of all numbers, with results over all of them."""
    sums = {"reduction_depth": 1, "dependent_outputs": False}
    problem = copies(283, 474_322, vector_elements=vector, **sums)
    found = schedulers.propose(problem)
    assert (found.persistent, found.align) == (False, vector)
    space = SPACES["reduction"](problem)
    assert {a.fixed["align"] for a in space.alternatives if "align" in a.fixed} == (
        {1, 8} if vector > 1 else set()
    )
    unaligned = replace(found, align=1, tails=())
    assert vector == 1 or seconds(problem, unaligned) > 1.2 * seconds(problem, found)


@pytest.mark.parametrize("row", [471_040, 471_042, 471_047, 474_320, 474_327])
def test_tails_of_loops_hold_what_blocks_leave_of_vectors(row):
    """Of rows of 471,040 some have 8 elements less in whole vectors, and so a block less."""
    problem = copies(283, row, vector_elements=8)
    *middle, edges = loop_tails(problem, 4096, align=8)
    least, most = (row - 7) // 8 * 8, row // 8 * 8
    assert edges == 16 and most - least // 4096 * 4096 <= sum(middle)
    varying = replace(problem, row_varies=True)
    assert loop_tails(varying, 4096, align=8) == (4096, 16)


def alignments(space):
    """Of tiles of whole rows."""
    tiles = [c for a in space.alternatives for c in a.choices if "align" in c.fields]
    return {value[c.fields.index("align")] for c in tiles for value in c.values}


def test_what_hangs_together_is_left_as_it_is():
    together = copies(1 << 14, 3249, co_reduced=4)
    slow = ElementWork(before=200, after=200, reducing=2, reductions=4, carried=4)
    assert kept(together, slow)
    shared = norm(16384, 20480, outer_members=2, outer_batch=64, rows_split=True, published_sums=2)
    rules = schedulers.propose(shared)
    assert isinstance(rules, InnerOuterPersistentParams) and rules.parts > 1
    assert kept(shared, slow)


def test_the_interpreter_has_the_rules():
    with poor_rules():
        assert chosen(replace(COLUMNS, device=CPU), WORK) == POOR


# --- whatever the problem is ---------------------------------------------------------------------

SIZES = st.sampled_from([1, 7, 32, 100, 961, 4096, 28_000, 200_000])


@st.composite
def streams(draw, rows, row):
    item = draw(st.sampled_from([1, 2, 4, 8]))
    along = draw(st.sampled_from(["both", "x", "r", "across", "broken"]))
    x, r = along != "r", along != "x"
    strides = {"across": (1, rows), "broken": (None, 17), "x": (1, 0), "r": (0, 1)}
    x_step, r_step = strides.get(along, (row, 1))
    total = item * (rows if x else 1) * (row if r else 1)
    store = draw(st.booleans())
    return Stream(
        item_bytes=item,
        along_x=x,
        along_r=r,
        x_stride=x_step,
        r_stride=r_step,
        is_store=store,
        contiguous_run=0 if x_step == 1 else 1,
        total_bytes=total,
    )


@st.composite
def problems(draw):
    rows, row = draw(SIZES), draw(SIZES)
    tensors = draw(st.lists(streams(rows, row), min_size=1, max_size=6))
    depth = draw(st.integers(0, 2))
    return Problem(
        parallel=rows,
        reduced=row if depth else 1,
        reduction_depth=depth,
        dependent_outputs=depth > 0 and draw(st.booleans()),
        full_outputs=draw(st.booleans()),
        row_varies=draw(st.booleans()),
        may_split=False,
        streams=tuple(tensors),
        device=H200,
    )


WORKS = st.builds(
    ElementWork,
    before=st.floats(0, 100),
    after=st.floats(0, 100),
    reducing=st.floats(0, 8),
    reductions=st.integers(1, 4),
)


def without_masks(problem, work, params):
    """The params of a loop over columns as they were chosen, if masks then took the place of the
    step behind it."""
    if not isinstance(params, ReductionParams) or params.persistent:
        return params
    whole = replace(params, tails=peeled_step(problem, params.block_r))
    return whole if with_masks_for_programs(Kernels(problem, work), whole) == params else params


def are_more_warps(rules, params):
    return rules.num_warps < params.num_warps <= 16


@settings(deadline=None, max_examples=150)
@given(problems(), WORKS, st.booleans())
def test_other_params_are_much_faster_and_fit_the_registers(problem, work, are_poor):
    if schedulers.reject_reason(problem) is not None:
        return
    with poor_rules() if are_poor else nullcontext():
        rules, params = choice.propose(problem), chosen(problem, work)
        chosen.cache_clear()
        assert chosen(problem, work) == params
        found = choice._by_rules_or_model(Kernels(problem, work), rules)
    params = without_masks(problem, work, params)
    if params == rules:
        return
    assert type(params) is type(rules)
    before, after = (predicted(problem, each, work) for each in (rules, params))
    launch = H200_CONSTANTS.launch_s
    gain = GAIN_OF_FLAT if problem.is_flat else GAIN
    is_much_faster = after.seconds + launch <= gain * (before.seconds + launch)
    same_tile = replace(rules, num_warps=params.num_warps) == params
    is_of_rules = found == rules and same_tile and are_more_warps(rules, params)
    if is_of_rules and Kernels(problem, work).may_spill_registers(rules, before):
        # More warps for a tile that the model left as it is, which may be too large for them all.
        assert after.seconds + launch <= MODEL_ERROR * (before.seconds + launch)
        return
    assert is_much_faster and not after.may_spill
    if found != rules:
        shown = choice._seconds_with_far_stores(problem, found, predicted(problem, found, work))
        assert shown + launch <= gain * (
            choice._seconds_with_far_stores(problem, rules, before) + launch
        )
    assert (
        hoisted_registers(problem, params, after.registers) <= HOISTED_RATIO * after.register_limit
    )
    tiling = params.row_tiling
    if tiling is not None and tiling.in_registers:
        assert tiling.block + sum(tiling.tails) >= problem.reduced
    elif tiling is not None and tiling.tails:
        assert sum(tiling.tails) >= problem.reduced % tiling.block


@settings(deadline=None, max_examples=60)
@given(problems(), WORKS, st.integers(0, 1 << 30))
def test_kernels_asked_of_one_after_another_have_the_times_of_each_alone(problem, work, seed):
    """And what is said of registers, and of the time, without a time is true with one."""
    if schedulers.reject_reason(problem) is not None:
        return
    space, kernels = SPACES[schedulers.propose(problem).scheduler](problem), Kernels(problem, work)
    rng = random.Random(seed)
    for params in filter(None, (space.draw(rng) for _ in range(8))):
        time = kernels.time(params)
        assert time == predicted(problem, params, work)
        if time is None:
            continue
        if getattr(params, "axes", ()) or getattr(params, "across", ()):
            continue
        (least,) = kernels.least_seconds(launches_of(problem, [params])).tolist()
        if least == inf:
            assert kernels.may_spill_registers(params, time)
        else:
            assert least <= time.seconds * (1 + 1e-12)


def across(loads):
    """Sums of rows that as many tensors lie along as across."""
    along = Stream(item_bytes=4, x_stride=4096, total_bytes=4 << 24)
    other = replace(along, x_stride=1, r_stride=4096)
    streams = (along,) * loads + (other,) * (loads - 1)
    return Problem(parallel=4096, reduced=4096, reduction_depth=1, streams=streams, device=H200)


@pytest.mark.parametrize("loads", [2, 8])
def test_16_warps_have_no_more_registers_than_8(loads):
    """A thread of 16 has half of them, however many the loads of a step take together."""
    problem = across(loads)
    rules = schedulers.propose(problem)
    assert rules.num_warps == 8 and chosen(problem, WORK) == rules


def test_tiles_of_many_loads_have_more_warps():
    problem, kernels = across(8), Kernels(across(8), WORK)
    few = replace(schedulers.propose(problem), num_warps=4)
    assert kernels.may_spill_registers(few, kernels.time(few))
    assert spread_over_warps(kernels, few) == replace(few, num_warps=8)


def test_columns_have_no_more_warps_where_they_would_take_longer():
    """Their warps exchange what each has reduced: 93 us by 4 warps, 124 by 8 (H200)."""
    stream = Stream(item_bytes=2, x_stride=1, r_stride=9728, total_bytes=2 * 1089536 * 112)
    result = Stream(item_bytes=4, along_r=False, r_stride=0, is_store=True, total_bytes=4358144)
    problem = Problem(
        parallel=1089536,
        reduced=112,
        reduction_depth=2,
        streams=(stream, result, result),
        device=H200,
    )
    rules = schedulers.propose(problem)
    kernels = Kernels(problem, WORK)
    more = replace(rules, num_warps=2 * rules.num_warps)
    assert kernels.time(more).seconds > kernels.time(rules).seconds
    assert spread_over_warps(kernels, rules) == rules


@pytest.mark.parametrize("outer_members", [0, 2])
def test_rows_in_registers_have_no_more_warps_than_hold_all_registers(outer_members):
    """Rows that stay in registers take as many of 16 warps as of 8."""
    stream = Stream(item_bytes=4, x_stride=8192, total_bytes=4 << 25)
    weight = Stream(item_bytes=4, along_x=False, x_stride=0, total_bytes=4 << 13)
    problem = Problem(
        parallel=4096,
        reduced=8192,
        reduction_depth=2,
        dependent_outputs=True,
        full_outputs=True,
        outer_members=outer_members,
        outer_batch=132 if outer_members else 1,
        rows_split=bool(outer_members),
        streams=(*[stream] * 5, *[weight] * 8, replace(stream, is_store=True)),
        device=H200,
    )
    kind = InnerOuterPersistentParams if outer_members else InnerPersistentParams
    rows = {"block_m": 1} if outer_members else {"block_x": 1, "persistent": True}
    params = kind(**rows, block_r=8192, num_warps=4)
    kernels = Kernels(problem, WORK)
    assert kernels.may_spill_registers(params, predicted(problem, params, WORK))
    assert spread_over_warps(kernels, params) == replace(params, num_warps=8)


# --- registers and instructions ------------------------------------------------------------------


def test_elements_with_addresses_of_their_own_take_registers():
    params = ReductionParams(block_x=4, block_r=1024, persistent=False, num_warps=8)
    row = Stream(item_bytes=4, x_stride=4096, total_bytes=4 << 24)
    straight = Problem(parallel=4096, reduced=4096, reduction_depth=1, streams=(row,), device=H200)
    broken = replace(straight, streams=(replace(row, x_stride=64),))
    repeated = replace(straight, streams=(replace(row, total_bytes=4 << 20),))
    elements = 16
    assert hoisted_registers(straight, params, 20) == 20 + elements
    assert hoisted_registers(broken, params, 20) == 20 + 3 * elements
    assert hoisted_registers(repeated, params, 20) == 20 + 3 * elements
    # What is written has no place of its own before it is computed.
    written = replace(straight, streams=(row, replace(row, is_store=True)))
    assert hoisted_registers(written, params, 20) == 20 + elements


@pytest.mark.parametrize(("staged", "each"), [(False, 32), (True, 1)])
def test_a_thread_with_whole_rows_has_one_element_of_what_rows_have(staged, each):
    """sm_90, a cross entropy of rows of 18, which looks up three elements of a row: 32 registers if
    threads have whole rows, which was not tried for want of registers."""
    row = Stream(item_bytes=4, x_stride=32, total_bytes=4 << 20)
    of_rows = Stream(item_bytes=4, along_r=False, r_stride=0, total_bytes=4 << 15)
    problem = Problem(
        parallel=1 << 15, reduced=32, reduction_depth=1, streams=(row, of_rows), device=H200
    )
    params = InnerPersistentParams(block_x=64, block_r=32, persistent=True, num_warps=2)
    assert hoisted_registers(problem, replace(params, staged=staged), 20) == 20 + 32 + each


def test_what_has_fewer_elements_counts_by_its_share():
    work = KernelWork(
        nodes=(
            NodeWork(elements=1 << 20, before=3, special_before=1, reducing=1, reductions=1),
            NodeWork(elements=1 << 10, before=8, after=16, special_after=4),
            NodeWork(elements=1 << 24, after=2),
        ),
    )
    found = element_work(work, norm(1 << 10, 1 << 10))
    assert (found.before, found.after) == (3 + 8 / 1024, 2 + 16 / 1024)
    assert (found.special_before, found.special_after) == (1, 4 / 1024)
    assert (found.reducing, found.reductions) == (1, 1)


def test_reductions_of_the_results_of_rows_take_nothing_along_them():
    along = NodeWork(elements=1 << 20, reducing=2, reductions=2, carried=2)
    results = NodeWork(elements=1 << 10, reducing=1, reductions=1, carried=1)
    found = element_work(KernelWork(nodes=(along, results)), norm(1 << 10, 1 << 10))
    assert (found.reducing, found.reductions, found.carried) == (2, 2, 2)
    alone = element_work(KernelWork(nodes=(results,)), norm(1, 1 << 10))
    assert (alone.reducing, alone.reductions, alone.carried) == (1, 1, 1)


# --- rows in pieces ------------------------------------------------------------------------------


def piecewise(run, rows=96, row=57015):
    """An rmsnorm in float32 of rows of which ``run`` elements lie together, with weights and
    biases of one run."""
    x = Stream(item_bytes=4, x_stride=run, total_bytes=4 * rows * row)
    weight = Stream(item_bytes=4, along_x=False, x_stride=None, total_bytes=4 * min(run, row))
    streams = (x, weight, weight, replace(x, is_store=True))
    return norm(rows, row, reduction_depth=1, streams=streams)


KEPT_END = InnerPersistentParams(
    block_x=1, block_r=8192, tails=(32768,), persistent=False, num_warps=32
)
"""Compiled for sm_90: 64 registers and 3,628 bytes spilled with runs of 1629."""


def test_ends_of_rows_in_pieces_are_predicted_to_spill():
    work = ElementWork(before=1, after=3, reducing=1, reductions=1, carried=1)
    broken, whole = (predicted(piecewise(n), KEPT_END, work) for n in (1629, 57015))
    assert broken.registers > broken.register_limit
    assert not whole.may_spill and broken.seconds > 3 * whole.seconds
    # Pieces that begin at vectors have an address for each vector.
    aligned = predicted(piecewise(1632, row=57120), KEPT_END, work)
    assert whole.registers < aligned.registers < broken.registers


def test_rows_in_pieces_keep_no_end_that_spills():
    work = ElementWork(before=1, after=3, reducing=1, reductions=1, carried=1)
    problem = piecewise(1629)
    assert schedulers.propose(problem) == KEPT_END
    params = chosen(problem, work)
    found = predicted(problem, params, work)
    assert not params.tails and not found.may_spill
    assert chosen(piecewise(57015), work) == schedulers.propose(piecewise(57015))


def test_instructions_of_programs_that_leave_the_device_idle_are_no_rough_limit():
    """312 rows of 430336 elements, 32 to a program: 10 of 132 multiprocessors have one."""
    stream = Stream(item_bytes=4, x_stride=430336, total_bytes=312 * 430336 * 4)
    problem = Problem(
        parallel=312,
        reduced=430336,
        reduction_depth=1,
        full_outputs=True,
        streams=(stream, replace(stream, is_store=True)),
        device=H200,
    )
    work = replace(WORK, before=30)
    rules = ReductionParams(block_x=32, block_r=128, persistent=False, num_warps=8)
    first = predicted(problem, rules, work)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(choice, "propose", lambda problem: rules)
        chosen.cache_clear()
        found = chosen(problem, work)
    chosen.cache_clear()
    assert first.limit == "instructions"
    assert 4 * seconds(problem, found, work) < first.seconds


def test_what_saves_little_has_few_elements_in_a_thread():
    """1300 x 1000 in float32: tiles of 32 x 512 by 4 warps are predicted to save 0.7 us, and load
    128 elements a thread in turns."""
    problem, work = sums(1300, 1000, inner=False), ElementWork(reducing=1, reductions=1, carried=1)
    found = chosen(problem, work)
    assert found.block_x * found.block_r <= 64 * 32 * found.num_warps


@pytest.mark.parametrize(
    ("size", "dtype", "padded"),
    [((30839, 1410), torch.float32, False), ((12974, 5133), torch.bfloat16, True)],
)
def test_rows_are_rounded_up_in_the_place_of_tails_where_much_is_gained(size, dtype, padded):
    """The model predicts 0.93 and 0.75 of the rules' time. H200: 1.04 and 0.63."""
    case = BY_NAME["layernorm"]
    inputs = list(case.inputs(size, dtype, "meta"))
    (segment,) = case.record(size, dtype).segments(inputs, arch="sm_90").segments
    assert schedulers.propose(segment.problem).tails
    assert (not segment.params.tails, segment.params.block_x) == (padded, 2 if padded else 1)
