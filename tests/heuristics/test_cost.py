"""The cost model: what has to hold of it whatever its constants are, and where it is."""

from __future__ import annotations

import math
from dataclasses import replace
from timeit import timeit

import pytest

from tests.heuristics.test_schedulers import COLUMN, FLAT, H200, KINDS, ROW, norm
from tritonfuser.device import CACHE_LINE_BYTES
from tritonfuser.devices import known
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.cost.constants import H200_CONSTANTS
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.cost.model import (
    REGISTER_SLACK,
    SHARPNESS,
    busy_seconds,
    resident_programs,
    wanted_registers,
)
from tritonfuser.heuristics.cost.numbers import PLAIN
from tritonfuser.heuristics.cost.product_time import product_time
from tritonfuser.heuristics.cost.work import KernelWork, NodeWork, element_work
from tritonfuser.heuristics.params import (
    InnerOuterPersistentParams,
    InnerPersistentParams,
    MatmulParams,
    OuterPersistentParams,
    PointwiseParams,
    ReductionParams,
)
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.product import Product
from tritonfuser.heuristics.streams import Stream, StrideTerm

WORK = ElementWork(before=4, after=4, reducing=2, reductions=2, carried=1)
ROW_KEPT = InnerPersistentParams(block_x=1, block_r=4096, persistent=True, num_warps=8)


def copied(count, item=4, device=H200):
    """Copying ``count`` elements."""
    stream = Stream(item_bytes=item, along_r=False, r_stride=0, total_bytes=count * item)
    return Problem(parallel=count, streams=(stream, replace(stream, is_store=True)), device=device)


def rows(count, length, **changes):
    """A normalization of rows of float32."""
    row = replace(ROW, x_stride=length, total_bytes=4 * count * length)
    return norm(count, length, streams=(row, replace(row, is_store=True)), **changes)


def seconds(problem, params, work=WORK):
    return predicted(problem, params, work).seconds


FLAT_PARAMS = PointwiseParams(block_x=1024)


def test_more_bytes_take_longer():
    times = [seconds(copied(1 << n), FLAT_PARAMS) for n in range(10, 31)]
    assert times == sorted(times)
    assert times[-1] > 1.9 * times[-2]


def test_a_long_copy_reaches_the_bandwidth_of_the_device():
    problem = copied(1 << 29)
    least = 2 * 4 * (1 << 29) / H200.bandwidth_bytes_per_s
    assert 0.9 * least < seconds(problem, FLAT_PARAMS, ElementWork()) < 1.2 * least


def test_a_short_copy_takes_microseconds():
    assert 1e-6 < seconds(copied(100), FLAT_PARAMS) < 5e-6


def test_instructions_bound_what_computes_much():
    found = predicted(copied(1 << 26), FLAT_PARAMS, ElementWork(before=300))
    assert max(found.resources, key=found.resources.get) == "instructions"


def test_special_functions_have_a_pipe_of_their_own():
    found = predicted(copied(1 << 26), FLAT_PARAMS, ElementWork(before=20, special_before=20))
    assert max(found.resources, key=found.resources.get) == "special functions"


@pytest.mark.parametrize("register_factor", [1.0, 4.0])
def test_flat_kernels_of_few_warps_overlap_less(register_factor):
    """Few programs, or many registers: what one warp leaves idle no other uses."""
    work = ElementWork(before=20, registers=register_factor)
    programs = {"many": copied(1 << 28), "few": copied(1 << 14)}
    order = {name: predicted(each, FLAT_PARAMS, work).order for name, each in programs.items()}
    assert order["few"] < order["many"] <= SHARPNESS
    assert (order["many"] == SHARPNESS) == (register_factor == 1)


def test_more_warps_help_one_long_row():
    problem = rows(8, 1 << 15)
    params = InnerPersistentParams(block_x=1, block_r=4096, persistent=False)
    times = [seconds(problem, replace(params, num_warps=n)) for n in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 2 * times[-1]


def test_a_pipeline_hides_latency():
    problem = replace(rows(132, 1 << 15), reduction_depth=1, dependent_outputs=False)
    params = ReductionParams(block_x=1, block_r=512, persistent=False, num_warps=2)
    assert seconds(problem, replace(params, num_stages=4)) < seconds(problem, params)


def column_sums_beside_a_result(rows, columns):
    """Sums over columns of two tensors, with a result along them: a bias and gelu backwards."""
    stream = Stream(item_bytes=2, x_stride=1, r_stride=columns, total_bytes=2 * rows * columns)
    streams = (stream, stream, replace(stream, is_store=True))
    return norm(columns, rows, streams=streams, reduction_depth=1, dependent_outputs=False)


def test_loads_and_instructions_that_follow_one_another_add_up():
    """H200, 8 parts of the rows of 8192 x 8192 in bfloat16: 144 us by the loop, 105 by the
    pipeline."""
    problem = column_sums_beside_a_result(1024, 65536)
    work = ElementWork(before=18, reducing=1, reductions=1, carried=1)
    loop = ReductionParams(block_x=64, block_r=32, persistent=False, num_warps=4)
    one, piped = (predicted(problem, replace(loop, num_stages=n), work) for n in (1, 3))
    longest, second = sorted((float(x) for x in one.resources.values()), reverse=True)[:2]
    assert second > 0.8 * longest
    assert one.busy > 1.3 * longest and piped.busy < 1.25 * max(piped.resources.values())
    # Short steps are unrolled: loads of some of them are under way together.
    short = predicted(problem, replace(loop, block_r=2, num_warps=8), replace(work, before=1))
    assert busy_seconds(short.resources) == pytest.approx(float(short.busy))


def lines(problem, params, work=WORK):
    """Seconds of the L1 cache, whose lines spilled registers move."""
    return float(predicted(problem, params, work).resources["L1 cache"])


def test_registers_of_what_is_begun_early_are_given_up_before_any_is_spilled():
    problem, narrow = rows(4096, 4096), replace(ROW_KEPT, num_warps=2)
    wanted = int(predicted(problem, narrow, WORK).registers)
    assert wanted > 2 * REGISTER_SLACK
    free = lines(problem, narrow)
    assert lines(problem, replace(narrow, max_registers=wanted - REGISTER_SLACK + 1)) == free
    assert lines(problem, replace(narrow, max_registers=wanted - REGISTER_SLACK - 8)) > 1.1 * free


def test_weights_take_registers_of_each_row_where_rows_begin_inside_vectors():
    """H200, layer norms of 8192 x 8193 in float32: 254 registers for two rows at a time, each with
    weights that are shifted against it, 128 for one."""
    row = Stream(item_bytes=4, along_x=False, x_stride=0, total_bytes=4 * 8193)
    plain = rows(8192, 8193)
    problem = replace(plain, streams=(*plain.streams, row, row))
    params = InnerPersistentParams(
        block_x=2, block_r=8192, tails=(16,), persistent=True, num_warps=8
    )

    def weights(params):
        with_weights, without = (predicted(each, params, WORK) for each in (problem, plain))
        return float(with_weights.registers - without.registers)

    loads = 2 * H200_CONSTANTS.registers_load
    shared, apart = weights(params) - loads, weights(replace(params, align=4)) - loads
    assert apart == pytest.approx(2 * shared) and shared > 0


def test_spilled_registers_cost():
    """A row of 64 Ki in 4 warps would take 512 registers of a thread for a tensor."""
    problem = rows(2048, 1 << 16)
    kept = InnerPersistentParams(block_x=1, block_r=1 << 16, persistent=True, num_warps=32)
    spilled = replace(kept, num_warps=4)
    assert predicted(problem, spilled, WORK).may_spill
    assert not predicted(problem, replace(kept, block_r=1 << 14), WORK).may_spill
    assert seconds(problem, spilled) > 1.5 * seconds(problem, replace(spilled, block_r=1 << 14))


def test_a_limit_on_registers_below_what_is_wanted_costs():
    problem = rows(4096, 4096)
    assert seconds(problem, replace(ROW_KEPT, max_registers=16)) > 1.2 * seconds(problem, ROW_KEPT)


def test_reading_rows_twice_costs_where_caches_do_not_hold_them():
    problem = rows(1 << 14, 1 << 16)
    loop = InnerPersistentParams(block_x=1, block_r=8192, persistent=False, num_warps=16)
    once = replace(problem, reduction_depth=1, dependent_outputs=False)
    assert seconds(problem, loop) > 1.3 * seconds(once, loop)


def test_short_runs_of_columns_cost():
    length = 4096
    column = replace(COLUMN, r_stride=8192, total_bytes=4 * 8192 * length)
    problem = norm(8192, length, streams=(column, replace(column, is_store=True)))
    wide = OuterPersistentParams(block_x=32, block_r=64, persistent=False, num_warps=8)
    narrow = replace(wide, block_x=2, block_r=1024)
    assert seconds(problem, narrow) > 1.5 * seconds(problem, wide)


def test_a_row_of_several_axes_is_as_many_runs_of_memory():
    """Rows of 6400 x 4 whose neighbours lie between: each run of 4 is in a line of its own."""
    apart = StrideTerm(1, 1, 6400, 2464), StrideTerm(2, 1, 4, 1), StrideTerm(0, 1, 385, 4)
    whole = StrideTerm(0, 1, 385, 25600), StrideTerm(1, 1, 6400, 4), StrideTerm(2, 1, 4, 1)
    stream = Stream(item_bytes=2, x_stride=4, total_bytes=2 * 385 * 25600)
    problems = [
        Problem(
            parallel=385,
            reduced=25600,
            reduction_depth=1,
            axes=(385, 6400, 4),
            row_axes=2,
            streams=(replace(stream, stride_terms=terms),),
            device=H200,
        )
        for terms in (apart, whole)
    ]
    one = ReductionParams(block_x=1, block_r=2048, persistent=False, num_warps=16)
    several = replace(one, block_x=32, block_r=64)
    lines = [
        [Counting(p, WORK).counts(params).lines for params in (one, several)] for p in problems
    ]
    # A warp has vectors of 4 elements, or of 8 where a row is one run; steps are of 2048 elements.
    assert lines[0][0] == pytest.approx(2048 / 4, rel=0.1)
    assert lines[1][0] < 2048 * 2 / CACHE_LINE_BYTES * 1.5
    # Two rows a warp: their runs are neighbours.
    assert lines[0][1] < 0.6 * lines[0][0]


def test_pipelined_loads_pass_through_shared_memory():
    problem = rows(1 << 14, 4096)
    loop = ReductionParams(block_x=1, block_r=1024, persistent=False, num_warps=8)
    plain, ahead = (Counting(problem, WORK).counts(replace(loop, num_stages=n)) for n in (1, 3))
    assert ahead.accesses > plain.accesses and ahead.lines > plain.lines
    once = replace(loop, block_r=4096, persistent=True)
    whole = [Counting(problem, WORK).counts(replace(once, num_stages=n)) for n in (1, 3)]
    assert whole[0].accesses == whole[1].accesses and whole[0].lines == whole[1].lines


def test_a_small_tensor_that_all_programs_read_past_the_l1_cache_is_slow():
    """Its bytes are in few slices of the L2 cache."""
    shared = Stream(item_bytes=2, along_x=False, x_stride=0, total_bytes=2 * 1024)
    loop = ReductionParams(block_x=1, block_r=512, persistent=False, num_warps=1)
    found = {}
    for stages in (1, 3):
        for name, more in (("alone", ()), ("shared", (shared,))):
            problem = rows(1 << 18, 1024)
            problem = replace(problem, streams=(*problem.streams, *more))
            found[stages, name] = predicted(problem, replace(loop, num_stages=stages), WORK)
    assert found[3, "shared"].limit == "L2 slice"
    assert found[3, "shared"].seconds > 1.5 * found[3, "alone"].seconds
    assert found[1, "shared"].resources["L2 slice"] == 0
    # 2 bytes of each of 1024 elements, of which every 256 are in one slice, 64 bytes a clock.
    clocks = (1 << 18) * 512 / 64
    wanted = pytest.approx(clocks / H200.clock_hz)
    assert found[3, "shared"].resources["L2 slice"] == wanted


def test_steps_of_a_loop_wait_for_themselves_where_tensors_are_pieced_together():
    """A load under a mask is not begun with those of other steps: ptxas unrolls no such loop."""
    loop = ReductionParams(block_x=1, block_r=512, persistent=False, num_warps=4, num_stages=1)
    whole = rows(1 << 10, 1 << 16)
    halves = [replace(stream, accessed=(1, 2)) for stream in whole.streams if not stream.is_store]
    stores = [stream for stream in whole.streams if stream.is_store]
    joined = replace(whole, streams=(*halves, *halves, *stores))
    plain, pieced = (predicted(problem, loop, WORK) for problem in (whole, joined))
    assert pieced.resources["latency"] > 1.2 * plain.resources["latency"]
    wide = replace(loop, block_r=1 << 16, num_warps=32, persistent=True)
    steps = [Counting(problem, WORK).counts(wide).serial_steps for problem in (whole, joined)]
    assert steps == [0, 0]


def test_what_all_rows_share_is_loaded_once_before_a_loop_over_rows():
    shared = Stream(item_bytes=4, along_x=False, x_stride=0, total_bytes=4 * 2048)
    alone = rows(1 << 14, 2048, outer_members=1, outer_batch=128)
    problem = replace(alone, streams=(*alone.streams, shared))
    loop = InnerOuterPersistentParams(block_m=2, block_r=2048, num_warps=8, num_stages=1)
    more, less = (Counting(p, WORK).counts(loop) for p in (problem, alone))
    assert more.steps == 64
    each = 2048 / more.steps
    assert more.loaded_bytes - less.loaded_bytes == pytest.approx(4 * each)
    assert (more.loaded - less.loaded) * 2 * 2048 == pytest.approx(each)


def test_narrow_loads_have_the_layout_of_the_widest_of_their_tile():
    """Triton lays all loads of a tile out alike: those of single elements leave gaps."""
    wide = Stream(item_bytes=2, x_stride=4096, total_bytes=2 * 4096 * 4096)
    narrow = replace(wide, x_stride=4097, total_bytes=2 * 4096 * 4097)
    kept = InnerPersistentParams(block_x=1, block_r=4096, persistent=True, num_warps=4)
    lines = [
        Counting(replace(rows(4096, 4096), streams=streams), WORK).counts(kept).lines
        for streams in ((wide,), (narrow,), (wide, narrow))
    ]
    assert lines[2] > 2 * (lines[0] + lines[1])


def test_flat_kernels_compute_what_is_broadcast_at_each_position():
    problem = replace(copied(1 << 20), axes=(1 << 20,))
    few = KernelWork(nodes=(NodeWork(elements=1 << 10, before=3.0),))
    assert element_work(few, problem).before == 3.0
    assert element_work(few, rows(1 << 10, 1 << 10)).before == 3.0 / (1 << 10)
    once = KernelWork(nodes=(NodeWork(elements=1, before=3.0),))
    assert element_work(once, problem).before == 3.0 / (1 << 20)


def test_idle_multiprocessors_cost():
    problem = rows(1 << 12, 1024)
    many = InnerPersistentParams(block_x=1, block_r=1024, persistent=True, num_warps=4)
    few = replace(many, block_x=64, num_warps=32)
    assert seconds(problem, few) > seconds(problem, many)


def test_programs_that_wait_for_others_take_longer():
    problem = rows(4096, 8192, outer_members=2, outer_batch=33)
    alone = InnerOuterPersistentParams(block_m=1, block_r=2048, num_warps=8)
    shared = replace(alone, parts=4)
    assert (
        predicted(problem, shared, WORK).resources["latency"]
        > (predicted(problem, alone, WORK).resources["latency"])
    )


def test_resident_programs_are_limited_by_threads_and_registers():
    counts = Counting(rows(4096, 4096), WORK).counts(ROW_KEPT)
    assert resident_programs(counts, 24.0, H200, PLAIN) == 8  # 2048 threads of 256
    assert resident_programs(counts, 128.0, H200, PLAIN) == 2  # 65536 registers
    assert wanted_registers(counts, H200_CONSTANTS) < 255


def test_a_product_is_bound_by_tensor_cores():
    product = Product(batch=1, m=8192, n=8192, k=8192)
    stream = Stream(item_bytes=2, total_bytes=2 * 8192 * 8192)
    problem = Problem(
        parallel=1 << 26, reduced=8192, streams=(stream,) * 3, core=product, device=H200
    )
    large = MatmulParams(block_m=128, block_n=256, block_k=64, num_warps=8, num_stages=3)
    found = product_time(problem, large, ElementWork())
    assert max(found.resources, key=found.resources.get) == "tensor cores"
    small = replace(large, block_m=16, block_n=16)
    assert product_time(problem, small, ElementWork()).seconds > 3 * found.seconds


DEVICES = ("sm_80", "sm_90", "sm_100", "gfx942")


@pytest.mark.parametrize("arch", DEVICES)
@pytest.mark.parametrize("name", [n for n in KINDS if n != "no_op"])
def test_every_scheduler_has_a_time_on_every_device(name, arch):
    problem = replace(KINDS[name], device=known(arch))
    found = predicted(problem, schedulers.propose(problem), WORK)
    assert 1e-6 < found.seconds < 1.0
    assert all(math.isfinite(s) and s >= 0 for s in found.resources.values())
    assert found.seconds >= max(found.resources.values())


@pytest.mark.parametrize("arch", DEVICES)
def test_a_long_copy_is_about_as_fast_as_each_device_allows(arch):
    device = known(arch)
    least = 2 * 4 * (1 << 28) / device.bandwidth_bytes_per_s
    params = PointwiseParams(block_x=2048)
    assert seconds(copied(1 << 28, device=device), params, ElementWork()) < 1.5 * least


@pytest.mark.parametrize("extents", [(0, 1), (1, 1), (1, 0), (3, 7), (1 << 31, 1), (1, 1 << 31)])
def test_any_extents_have_a_time(extents):
    count, length = extents
    problem = norm(count, length)
    for params in (ROW_KEPT, replace(ROW_KEPT, persistent=False, block_r=64)):
        assert math.isfinite(seconds(problem, params))
    flat = Problem(parallel=count, streams=(FLAT,), device=H200)
    assert math.isfinite(seconds(flat, FLAT_PARAMS))


def test_nothing_is_predicted_where_no_kernel_of_a_gpu_runs():
    assert predicted(KINDS["no_op"], schedulers.propose(KINDS["no_op"]), WORK) is None
    on_cpu = replace(KINDS["reduction"], device=known("cpu"))
    assert predicted(on_cpu, schedulers.propose(on_cpu), WORK) is None


def test_a_prediction_takes_a_fraction_of_a_millisecond():
    problem = rows(4096, 4096)
    best = min(timeit(lambda: seconds(problem, ROW_KEPT), number=20) / 20 for _ in range(5))
    assert best < 0.5e-3


def test_what_reductions_do_not_need_is_read_once():
    """Rows are read by each pass over them, the weight of a norm by the last alone."""
    problem = rows(1 << 14, 36864)
    weight = Stream(item_bytes=4, along_x=False, x_stride=0, total_bytes=4 * 36864)
    params = InnerPersistentParams(block_x=1, block_r=4096, persistent=False, num_warps=16)
    counted = [
        Counting(replace(problem, streams=(*problem.streams, *more)), WORK).counts(params)
        for more in ((), (weight,), (replace(weight, is_late=True),))
    ]
    passes, row = counted[0].passes, 4 * 4096
    assert passes > 1
    loaded = [count.fetched_bytes * passes for count in counted]
    assert loaded == pytest.approx([row * passes, 2 * row * passes, row * (passes + 1)])
    assert [count.reloaded_bytes for count in counted] == [row, 2 * row, row]
    assert all(count.stored_bytes * passes == pytest.approx(row) for count in counted)


def gathered(entries, count=1 << 22):
    """Elements of a tensor at indices of another one."""
    table = 4 * entries
    # No two elements that are read share a sector.
    anywhere = StrideTerm(axis=0, div=1, extent=count, step=1 << 20, is_indexed=True)
    streams = (
        Stream(item_bytes=8, total_bytes=8 * count, stride_terms=(StrideTerm(0, 1, count, 1),)),
        Stream(
            item_bytes=4,
            x_stride=None,
            total_bytes=min(table, 4 * count),
            held_bytes=table,
            stride_terms=(anywhere,),
        ),
    )
    return Problem(parallel=count, reduced=1, axes=(count,), streams=streams, device=H200)


def test_memory_moves_whole_sectors_around_what_is_read_at_an_index():
    params = PointwiseParams(block_x=1024)
    small, large = (predicted(gathered(1 << n), params, WORK).resources for n in (10, 30))
    indices = 8 * (1 << 22)
    rate = H200.bandwidth_bytes_per_s * H200_CONSTANTS.bandwidth
    assert large["memory"] * rate == pytest.approx(indices + 64 * (1 << 22), rel=0.02)
    assert small["memory"] * rate == pytest.approx(indices, rel=0.02)


def test_with_fewer_instructions():
    problem = rows(64, 1 << 16)
    params = ReductionParams(block_x=1, block_r=2048, persistent=False, num_warps=16)
    time = predicted(problem, params, ElementWork(before=200, reducing=1, reductions=1))
    half = time.with_instructions(0.5)
    fewer = time.resources["instructions"] / 2
    assert half.resources["instructions"] == pytest.approx(fewer)
    assert half.resources["latency"] == pytest.approx(time.resources["latency"] - fewer)
    assert half.resources["memory"] == time.resources["memory"]
    assert half.seconds - half.busy == pytest.approx(time.seconds - time.busy)
    assert half.seconds < 0.7 * time.seconds
    assert time.with_instructions(1.0) is time


def test_warps_of_one_program_wait_for_one_another():
    """The wait for memory and the instructions of a program alone on a multiprocessor add up."""
    problem = rows(64, 1 << 16)
    times = [
        predicted(
            problem, ReductionParams(block_x=1, block_r=2048, persistent=False, num_warps=16), work
        )
        for work in (ElementWork(before=n, reducing=1, reductions=1) for n in (1, 200))
    ]
    more = times[1].resources["instructions"] - times[0].resources["instructions"]
    assert times[1].resources["latency"] - times[0].resources["latency"] > 0.5 * more


@pytest.mark.parametrize(
    ("problem", "params"),
    [
        (rows(1 << 16, 3968), replace(ROW_KEPT, block_r=2048)),
        (rows(1 << 16, 3968, outer_members=1), InnerOuterPersistentParams(block_m=1, block_r=2048)),
    ],
    ids=["rows kept", "over rows"],
)
def test_pieces_that_not_all_threads_have_are_reduced_by_themselves(problem, params):
    threads = params.num_warps * 32
    assert threads <= 256
    several = [(2048,), (1024, 512, 512), (2048, threads // 2, threads // 4)]
    fewer, more, short = (replace(params, tails=tails) for tails in several)
    found = [Counting(problem, WORK).counts(each).reduced_steps for each in (fewer, more, short)]
    assert found[0] == found[1] and found[2] == 3 * found[0]
    assert seconds(problem, fewer) < seconds(problem, short)


@pytest.mark.parametrize(("warps", "turns"), [(1, 9), (2, 5), (4, 3), (8, 2), (16, 1)])
def test_elements_behind_the_end_of_rows_are_computed_in_whole_turns(warps, turns):
    """Of 2048 positions for rows of 1152 float32, 32 threads with 4 each take 128 at a time."""
    problem = rows(1 << 14, 1152)
    params = replace(ROW_KEPT, block_r=2048, num_warps=warps)
    counts = Counting(problem, WORK).counts(params)
    assert counts.computed == turns * warps * 128 / 2048
    assert counts.elements == counts.computed * 2048 / (32 * warps)
    tails = replace(params, block_r=1024, tails=(128,))
    assert Counting(problem, WORK).counts(tails).computed == 1.0
