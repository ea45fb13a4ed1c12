"""Tiles of columns: whole lines of memory, bytes in flight, full waves of programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tritonfuser.devices import known
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.cost.tiles import tile_of
from tritonfuser.heuristics.integers import ceil_div
from tritonfuser.heuristics.params import ReductionParams, TransposeParams
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.row_tiling import peeled_step
from tritonfuser.heuristics.search.choice import chosen, difference
from tritonfuser.heuristics.search.masked_steps import with_masks_for_programs
from tritonfuser.heuristics.search.model_space import limited_to_rules
from tritonfuser.heuristics.search.spaces import SPACES
from tritonfuser.heuristics.search.warps import Kernels
from tritonfuser.heuristics.streams import Stream

H200 = known("sm_90")
SMS = H200.sm_count


def matrix(rows, columns, item_bytes=2, is_store=False):
    return Stream(
        item_bytes=item_bytes,
        x_stride=1,
        r_stride=columns,
        is_store=is_store,
        total_bytes=rows * columns * item_bytes,
    )


def summed(rows, columns, item_bytes=2, *others):
    streams = (matrix(rows, columns, item_bytes), *others)
    return Problem(parallel=columns, reduced=rows, reduction_depth=1, streams=streams, device=H200)


def normalised(rows, columns, loads=1, item_bytes=2, depth=2):
    streams = [matrix(rows, columns, item_bytes)] * loads
    return Problem(
        parallel=columns,
        reduced=rows,
        reduction_depth=depth,
        full_outputs=True,
        dependent_outputs=True,
        streams=(*streams, matrix(rows, columns, item_bytes, is_store=True)),
        device=H200,
    )


def proposed(problem):
    params = schedulers.propose(problem)
    name = params.scheduler
    return name, vars(params)


@pytest.mark.parametrize("item_bytes", [1, 2, 4, 8])
def test_a_program_of_a_sum_has_whole_lines(item_bytes):
    name, params = proposed(summed(1 << 16, 8192, item_bytes))
    assert name == "reduction"
    assert params["block_x"] * item_bytes == 128


@pytest.mark.parametrize("columns", [8193, 8194])
def test_so_has_one_of_rows_that_begin_inside_lines(columns):
    _, params = proposed(summed(1 << 16, columns))
    assert params["block_x"] * 2 == 128


@pytest.mark.parametrize(("columns", "bytes_of_a_row", "warps"), [(8192, 128, 4), (8193, 256, 8)])
def test_one_wave_has_lines_of_rows_or_two_where_rows_begin_inside_lines(
    columns, bytes_of_a_row, warps
):
    assert schedulers.split(summed(8192, columns)) == 8
    cut = summed(1024, columns * 8)
    _, params = proposed(cut)
    assert (params["block_x"] * 2, params["num_warps"]) == (bytes_of_a_row, warps)
    wave = 32 // warps * H200.sm_count
    assert cut.parallel // params["block_x"] <= wave < 2 * cut.parallel // params["block_x"]


def test_one_wave_is_for_what_the_cache_does_not_hold():
    problem = summed(8192, 8192)
    larger = replace(H200, l2_bytes=2 * problem.streams[0].total_bytes)
    assert schedulers.split(replace(problem, device=larger)) > schedulers.split(problem)


def test_few_columns_of_a_large_tensor_fill_a_program_by_their_rows():
    _, params = proposed(summed(1 << 24, 4))
    assert params["block_x"] == 4 and params["block_r"] >= 256
    assert schedulers.split(summed(1 << 24, 4)) <= 8 * H200.sm_count


def test_few_rows_of_many_columns_fill_a_program():
    """One of a line with four elements a column would be a program of one load."""
    _, params = proposed(replace(summed(4, 1 << 20), accumulators=2))
    assert params["persistent"] and params["block_x"] * params["block_r"] >= 1024


@pytest.mark.parametrize(("columns", "warps"), [(73728, 4), (147456, 8)])
def test_programs_have_few_warps_where_all_of_them_run_at_once(columns, warps):
    """Else those that have no room begin when the others end."""
    assert proposed(summed(2048, columns))[1]["num_warps"] == warps


@pytest.mark.parametrize(
    ("columns", "warps", "rows"), [(30001, 8, 64), (70001, 4, 32), (147001, 8, 64)]
)
def test_so_have_those_of_odd_rows_where_programs_of_more_warps_do_not(columns, warps, rows):
    """Threads have 64 registers for single elements: four programs of 8 warps have room."""
    _, params = proposed(summed(2047, columns))
    assert (params["num_warps"], params["block_r"]) == (warps, rows)


@pytest.mark.parametrize(("columns", "warps"), [(33901, 4), (33501, 8)])
def test_one_wave_of_odd_rows_has_programs_that_all_sms_have_as_many_of(columns, warps):
    """265 programs of 128 columns are one more than two for each SM."""
    _, params = proposed(summed(1120, columns))
    assert params["block_x"] == 16 * warps and params["num_warps"] == warps


def test_steps_of_several_numbers_for_each_element_are_half_as_long():
    one = summed(58653, 3473)
    _, params = proposed(one)
    _, several = proposed(replace(one, accumulators=3))
    assert several["block_r"] * several["block_x"] == 8 * 32 * several["num_warps"]
    assert params["block_r"] * params["block_x"] == 16 * 32 * params["num_warps"]


@pytest.mark.parametrize(("rows", "columns"), [(2, 98304), (7, 73728), (4, 90112)])
def test_programs_of_short_columns_have_as_many_as_keep_the_device_busy(rows, columns):
    name, params = proposed(summed(rows, columns, 4))
    assert name == "reduction" and params["persistent"]
    assert columns // params["block_x"] >= 4 * SMS > columns // (2 * params["block_x"])


@pytest.mark.parametrize(("columns", "tensors", "hints"), [(8448, 1, False), (128, 1, True)])
def test_loops_over_columns_ask_the_cache_to_keep_what_it_can(columns, tensors, hints):
    read = [matrix(16384, columns) for _ in range(tensors)]
    again = replace(summed(16384, columns, 2, *read), reduction_depth=1, dependent_outputs=True)
    name, params = proposed(again)
    assert name == "outer_persistent" and not params["persistent"]
    assert params["backwards"] and params["evict_hints"] is hints


@pytest.mark.parametrize(("columns", "of"), [(8192, 0), (8193, 64), (8194, 32), (8200, 8)])
def test_parts_are_interleaved(columns, of):
    """A step of all parts is a row then, which begins where a vector does."""
    assert schedulers.interleave(summed(8192, columns)) == of
    assert schedulers.split(summed(8192, columns)) == 8


def test_rows_that_begin_inside_vectors_are_read_by_more_programs():
    """An odd number of them has no parts that begin at vectors."""
    assert schedulers.split(summed(8191, 8193)) > 8
    assert proposed(summed(8191, 8193))[1]["block_x"] * 2 == 128


def test_wide_short_columns_are_read_by_long_runs():
    wide = summed(128, 262144)
    _, params = proposed(wide)
    assert params["block_x"] * 2 == 4096 and schedulers.split(wide) == 1
    assert params["num_stages"] == 3
    assert proposed(replace(wide, accumulators=2))[1]["block_x"] * 2 <= 256


@pytest.mark.parametrize(("loads", "item_bytes"), [(1, 4), (3, 4), (4, 4), (4, 8), (12, 4)])
def test_loads_ahead_fit_in_shared_memory(loads, item_bytes):
    others = [matrix(64, 1 << 19, item_bytes)] * (loads - 1)
    for full in (False, True):
        problem = replace(summed(64, 1 << 19, item_bytes, *others), full_outputs=full)
        _, params = proposed(problem)
        step = params["block_x"] * params["block_r"] * loads * item_bytes
        assert (params["num_stages"] - 1) * step <= H200.shared_bytes_per_block


def test_a_result_of_another_width_changes_no_tile():
    wide = summed(128, 262144, 4)
    result = {"along_r": False, "is_store": True, "total_bytes": 2 * 262144}
    narrow = replace(wide.streams[0], item_bytes=2, **result)
    assert proposed(replace(wide, streams=(*wide.streams, narrow))) == proposed(wide)


def test_many_columns_are_not_cut():
    assert schedulers.split(summed(2048, 73728)) == 1
    assert schedulers.split(summed(16384, 20480)) > 1


def test_loads_run_ahead_where_more_than_sums_is_written():
    sums = summed(8192, 8192, 2, matrix(8192, 8192))
    assert proposed(sums)[1]["num_stages"] == 1
    assert proposed(replace(sums, full_outputs=True))[1]["num_stages"] == 3


@pytest.mark.parametrize("step", [8, 9])
def test_no_loads_run_ahead_element_by_element(step):
    """Whatever runs along both axes is copied, small tensors too."""
    small = replace(
        matrix(8192, 8192, 4), x_stride=None, r_stride=None, total_bytes=4 * 8192 * step
    )
    sums = replace(summed(8192, 8192, 2, matrix(8192, 8192)), full_outputs=True)
    assert proposed(sums)[1]["num_stages"] == 3
    assert proposed(replace(sums, streams=(*sums.streams, small)))[1]["num_stages"] == 1


@pytest.mark.parametrize("rows", [4096, 8192, 65536])
@pytest.mark.parametrize("columns", [512, 8192, 20480])
def test_sums_of_large_tensors_fill_the_device_several_times(rows, columns):
    problem = summed(rows, columns)
    _, params = proposed(problem)
    programs = ceil_div(columns, params["block_x"]) * schedulers.split(problem)
    assert programs >= (3 if rows * columns >= 1 << 25 else 1) * SMS
    assert programs <= 32 * SMS


def test_many_columns_are_one_kernel():
    assert schedulers.split(summed(128, 1 << 18)) == 1


def test_a_small_sum_is_spread_over_programs_and_not_over_kernels():
    problem = summed(512, 1024)
    _, params = proposed(problem)
    assert schedulers.split(problem) == 1
    assert ceil_div(1024, params["block_x"]) >= SMS // 3


def test_a_vector_does_not_decide_which_rows_are_contiguous():
    vector = Stream(item_bytes=4, x_stride=2048, r_stride=1, total_bytes=4 * 8192)
    _, params = proposed(summed(2048, 8200, 2, vector))
    assert params["block_x"] == 64


def test_columns_that_fit_stay_in_registers():
    for rows in (100, 512, 1024):
        name, params = proposed(normalised(rows, 1 << 16))
        assert name == "outer_persistent"
        assert params["persistent"]
        assert params["block_x"] * params["block_r"] <= 64 * 32 * params["num_warps"]


def test_columns_that_never_fit_the_cache_are_read_by_whole_lines():
    _, params = proposed(normalised(1 << 16, 8192))
    assert params["block_x"] == 64


def test_narrower_tiles_leave_no_sm_idle():
    _, params = proposed(normalised(8192, 4096))
    assert params["block_x"] == 32
    assert ceil_div(4096, params["block_x"]) >= 0.9 * SMS


@pytest.mark.parametrize("loads", [1, 2])
def test_a_loop_has_enough_bytes_in_flight(loads):
    _, params = proposed(normalised(8192, 8192, loads))
    step = params["block_x"] * params["block_r"] * 2 * loads
    assert 32 << 10 <= step <= 64 << 10
    assert params["num_warps"] == 32


# --- rows that begin inside lines ----------------------------------------------------------------

INSIDE = "its rows begin inside lines of memory, and columns of"


@pytest.mark.parametrize(
    ("columns", "item_bytes"), [(8193, 2), (8194, 2), (8200, 2), (8193, 4), (8208, 4), (8193, 8)]
)
def test_one_sum_of_columns_in_pieces_of_lines_is_a_kernel_of_its_own(columns, item_bytes):
    problem = normalised(8192, columns, 2, item_bytes, depth=1)
    refused = schedulers.reject_reason(problem)
    assert refused is not None
    assert f"outer_persistent: {INSIDE} 8192 do not fit" in refused


@pytest.mark.parametrize("loads", [1, 2])
@pytest.mark.parametrize("columns", [8193, 8194, 8200])
def test_sums_that_need_one_another_stay_together(columns, loads):
    assert proposed(normalised(8192, columns, loads))[0] == "outer_persistent"


@pytest.mark.parametrize(
    "problem",
    [
        normalised(8192, 8192, 2, depth=1),
        normalised(8192, 8256, 2, depth=1),  # a line is 64 of them
        normalised(8192, 8224, 2, 4, depth=1),  # and 32 of these
        normalised(128, 262145, 2, depth=1),  # columns fit in registers
        normalised(2048, 513, 2, depth=1),  # read in the time of a launch
        replace(normalised(8192, 8193, 2, depth=1), device=known("cpu")),
    ],
)
def test_whole_lines_whole_columns_and_small_tensors_are_one_kernel(problem):
    assert proposed(problem)[0] == "outer_persistent"


def test_only_what_is_read_counts_and_only_where_its_rows_are_known():
    aligned = normalised(8192, 8192, 2, depth=1)
    vector = Stream(item_bytes=4, along_x=False, x_stride=0, r_stride=1, total_bytes=4 * 8192)
    elsewhere = replace(matrix(8192, 8192), r_stride=None)
    store = matrix(8192, 8193, is_store=True)
    for stream in (vector, elsewhere, store):
        problem = replace(aligned, streams=(*aligned.streams, stream))
        assert proposed(problem)[0] == "outer_persistent"


@pytest.mark.parametrize(("rows", "columns"), [(50176, 512), (50176, 128), (12544, 1024)])
def test_few_columns_of_many_rows_are_summed_in_parts(rows, columns):
    """Images with channels last: a program of a vector of channels would read part of a sector."""
    problem = normalised(rows, columns, depth=1)
    refused = schedulers.reject_reason(problem)
    assert refused is not None and "columns reach" in refused
    cpu = replace(problem, device=known("cpu"))
    assert proposed(cpu)[0] == "outer_persistent"


# --- the last step of a loop ----------------------------------------------------------------------

SUM = ElementWork(before=1, reducing=1, reductions=1, carried=1)


@pytest.mark.parametrize(("rows", "peeled"), [(1000, True), (1024, False), (1031, True)])
def test_what_a_loop_leaves_is_one_more_step_behind_it(rows, peeled):
    _, params = proposed(summed(rows, 1 << 16))
    assert not params["persistent"]
    assert params["tails"] == ((params["block_r"],) if peeled else ())
    chosen_params = chosen(summed(rows, 1 << 16), SUM)
    assert bool(chosen_params.tails) == peeled


@pytest.mark.parametrize(
    ("rows", "block", "varies", "tails"),
    [
        (392, 32, False, (32,)),
        (384, 32, False, ()),
        (384, 32, True, (32,)),
        (63, 32, False, ()),
        (64, 32, True, ()),
        (65, 32, False, (32,)),
    ],
)
def test_no_step_is_behind_a_loop_of_one_step_or_where_none_is_left(rows, block, varies, tails):
    problem = replace(summed(rows, 4096), row_varies=varies)
    assert peeled_step(problem, block) == tails


def test_both_ends_of_a_loop_are_in_the_space_and_the_model_is_asked_about_one():
    problem = summed(1000, 1 << 16)
    rules = schedulers.propose(problem)
    space = SPACES["reduction"](problem)

    def ends(space):
        return {
            value
            for alternative in space.alternatives
            if not alternative.fixed["persistent"]
            for choice in alternative.choices
            if choice.fields == ("block_r", "tails")
            for value in choice.values
        }

    assert {(128, ()), (128, (128,))} <= ends(space)
    assert {(128, (128,)), (512, ())} <= ends(limited_to_rules(space, problem, rules))
    assert (128, ()) not in ends(limited_to_rules(space, problem, rules))
    assert all(tails in ((), (block,)) for block, tails in ends(space))


def with_registers(problem, wanted):
    """The kernels of a problem, of which all take so many registers."""
    kernels = Kernels(problem, SUM)
    predicted = kernels.time(PEELED).registers
    return Kernels(problem, replace(SUM, registers=wanted / float(predicted)))


PEELED = ReductionParams(
    num_warps=8, block_x=64, block_r=32, persistent=False, tails=(32,), evict_hints=True
)


@pytest.mark.parametrize(
    ("wanted", "columns", "masks"),
    [
        (60, 1 << 17, True),  # four programs of 64 registers, three of 76
        (45, 1 << 17, True),  # five of 48, four of 64
        (28, 1 << 17, False),  # five have 48
        (100, 1 << 17, False),  # two of 116 too
        (60, 1 << 14, False),  # two programs for each multiprocessor
    ],
)
def test_a_loop_has_masks_where_the_step_behind_it_would_cost_one_of_few_programs(
    wanted, columns, masks
):
    kernels = with_registers(summed(1000, columns), wanted)
    assert with_masks_for_programs(kernels, PEELED) == replace(PEELED, tails=() if masks else (32,))


def test_a_report_says_what_masks_are_for():
    problem = summed(1000, 1 << 17)
    rules = schedulers.propose(problem)
    assert rules.tails
    masks = replace(rules, tails=(), axes=(0,))
    assert "fewer programs" in difference(problem, SUM, masks)
    assert str(rules) in difference(problem, SUM, masks)
    for other in (replace(masks, num_warps=2), replace(rules, num_warps=2)):
        assert "fewer programs" not in difference(problem, SUM, other)


def test_other_tails_stay():
    kernels = with_registers(summed(1000, 1 << 17), 60)
    for params in (
        replace(PEELED, tails=(16,)),
        replace(PEELED, tails=()),
        TransposeParams(block_x=32, block_y=32),
    ):
        assert with_masks_for_programs(kernels, params) == params


@pytest.mark.parametrize(("tails", "steps"), [((), 32), ((32,), 32), ((8,), 31.25)])
def test_a_tail_behind_a_loop_is_a_part_of_a_step(tails, steps):
    tile = tile_of(summed(1000, 4096), replace(PEELED, tails=tails))
    assert (tile.steps, tile.loops, tile.masked) == (steps, True, not tails)
    # One that is as wide as a step is added to what the others have.
    assert tile.pieces == (2 if tails == (8,) else 1)


def test_edges_as_wide_as_a_block_are_reduced_separately():
    """They are the elements beside the whole vectors of a row, and lie at both of its ends."""
    params = replace(PEELED, block_x=1, block_r=16, tails=(16,), align=8)
    rows = summed(1000, 4096)
    assert tile_of(rows, params).pieces == 2
    assert tile_of(rows, replace(params, tails=(16, 16))).pieces == 2
    assert tile_of(rows, replace(params, align=1)).pieces == 1


@pytest.mark.parametrize("persistent", [False, True])
def test_what_one_step_and_its_tails_hold_is_no_loop(persistent):
    """Both are the same kernel: it has no loop."""
    params = replace(PEELED, block_r=512, tails=(512,), persistent=persistent)
    tile = tile_of(summed(520, 4096), params)
    assert (tile.steps, tile.r, tile.loops) == (1, 1024, False)
