"""Which scheduler takes a problem, with what params: every proposal is one that can run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonfuser.device import MAX_BLOCK_ELEMENTS
from tritonfuser.devices import ARCHITECTURES, known
from tritonfuser.errors import SchedulingError
from tritonfuser.heuristics import inner_outer_persistent, schedulers
from tritonfuser.heuristics.integers import ceil_div, next_power_of_2
from tritonfuser.heuristics.one_wave import wave_efficiency
from tritonfuser.heuristics.params import MAX_TAILS, PARAMS
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.row_tiling import block_and_tails, max_tails
from tritonfuser.heuristics.streams import Stream

H200 = known("sm_90")
CPU = known("cpu")

ROW = Stream(item_bytes=4, x_stride=None, r_stride=1)
COLUMN = Stream(item_bytes=4, x_stride=1, r_stride=None)
FLAT = Stream(item_bytes=4, along_r=False, x_stride=1, r_stride=0)


def norm(rows, columns, **changes):
    problem = Problem(
        parallel=rows,
        reduced=columns,
        reduction_depth=2,
        full_outputs=True,
        dependent_outputs=True,
        streams=(ROW, replace(ROW, is_store=True)),
        device=H200,
    )
    return replace(problem, **changes)


# --- who takes what ----------------------------------------------------------------------

KINDS = {
    "pointwise": Problem(parallel=1 << 20, streams=(FLAT,), device=H200),
    "transpose": Problem(parallel=1 << 20, crossing=1024, streams=(FLAT,), device=H200),
    "reduction": Problem(
        parallel=4096, reduced=4096, reduction_depth=1, streams=(ROW,), device=H200
    ),
    "inner_persistent": norm(4096, 4096),
    "outer_persistent": norm(1 << 15, 4096, streams=(COLUMN,)),
    "inner_outer_persistent": norm(4096, 4096, outer_members=2),
    "scan": norm(4096, 4096, scans=True),
    "no_op": Problem(parallel=0, streams=(FLAT,), device=H200),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_first_that_takes_it(name):
    params = schedulers.propose(KINDS[name])
    chosen = params.scheduler
    assert chosen == params.scheduler == name
    assert schedulers.reject_reason(KINDS[name]) is None


def test_those_before_it_say_why_not():
    reasons = schedulers.refusals(KINDS["reduction"])
    assert "no_op: there are elements to compute" in reasons
    assert "matmul: it has no matrix product" in reasons
    assert "scan: it has no scan" in reasons
    assert "inner_outer_persistent: it does not reduce over rows" in reasons
    assert len(reasons) == 6


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (norm(4096, 16384, outer_members=2), "do not fit in registers"),
        (norm(32, 4096, outer_members=2), "32 rows are too few for partial results"),
        (norm(4096, 4096, outer_members=1, streams=(COLUMN,)), "rows lie across memory"),
        (norm(0, 4096, outer_members=1), "there are no elements to reduce"),
        (norm(4096, 0, outer_members=1), "there are no elements to reduce"),
        (norm(4096, 4096, outer_members=1, scans=True), "it has a scan"),
        (norm(1, 1 << 20), "leave 132 SMs idle"),
        (norm(8, 1 << 20, streams=(COLUMN,)), "of the bandwidth"),
    ],
)
def test_refused_by_all(problem, reason):
    found = schedulers.reject_reason(problem)
    assert found is not None
    assert reason in found
    with pytest.raises(SchedulingError, match="Can not find a scheduler"):
        schedulers.propose(problem)


def test_every_scheduler_has_its_params():
    assert {s.name for s in schedulers.SCHEDULERS} | {"expr_eval"} == set(PARAMS)


# --- any problem -------------------------------------------------------------------------

extents = st.one_of(
    st.integers(0, 70), st.integers(1, 1 << 22), st.sampled_from([1 << n for n in range(32)])
)
strides = st.sampled_from([None, 0, 1, 2, 4096])
streams = st.builds(
    Stream,
    item_bytes=st.sampled_from([1, 2, 4, 8, 16]),
    along_x=st.booleans(),
    along_r=st.booleans(),
    x_stride=strides,
    r_stride=strides,
    is_store=st.booleans(),
)


@st.composite
def problems(draw):
    rows, columns = draw(extents), draw(extents)
    levels = draw(st.integers(0, 3))
    outer = draw(st.integers(0, 3)) if levels else 0
    full = draw(st.booleans())
    batch = draw(st.sampled_from([1, 1, 7, 132])) if outer else 1
    return Problem(
        parallel=rows,
        reduced=columns if levels else 1,
        reduction_depth=levels,
        full_outputs=full,
        dependent_outputs=full and levels > 0 and draw(st.booleans()),
        scans=levels > 0 and draw(st.booleans()),
        outer_members=outer,
        outer_batch=batch,
        rows_split=batch > 1,
        crossing=1 if levels else draw(st.sampled_from([1, 1, 8, 1000, 1 << 20])),
        streams=tuple(draw(st.lists(streams, max_size=4))),
        ops_per_element=draw(st.integers(1, 100)),
        accumulators=draw(st.integers(1, 8)),
        device=draw(st.sampled_from([known(arch) for arch in ARCHITECTURES])),
    )


def test_rows_of_which_nothing_is_read_take_registers_too():
    written = Stream(item_bytes=1, x_stride=None, r_stride=None, is_store=True)
    long = norm(
        1320, 1966081, reduction_depth=2, streams=(written, written), dependent_outputs=False
    )
    assert not schedulers.propose(long).persistent
    short = replace(long, reduced=4096)
    assert schedulers.propose(short).persistent


@settings(max_examples=400)
@given(problems())
def test_proposals_can_run(problem):
    """Params are valid by construction; what is kept whole in registers has room there."""
    if schedulers.reject_reason(problem) is not None:
        return
    params = schedulers.propose(problem)
    name = params.scheduler
    assert name == params.scheduler
    fields = vars(params)
    tile = 1
    for side in (value for key, value in fields.items() if key.startswith("block_")):
        tile *= side
    assert tile <= MAX_BLOCK_ELEMENTS
    tails = sum(fields.get("tails", ()))
    if fields.get("persistent") or name == "inner_outer_persistent":
        assert fields["block_r"] + tails >= problem.reduced
    elif tails:
        assert tails >= problem.reduced % fields["block_r"]
    if name == "inner_outer_persistent" and not problem.device.is_cpu:
        full = [s for s in problem.streams if s.along_x and s.along_r and not s.is_store]
        waiting = (params.num_stages - 1) * tile * sum(s.item_bytes for s in full)
        assert waiting < problem.device.shared_bytes_per_block
    if "block_x" in fields:
        assert fields["block_x"] <= max(2 * problem.parallel, 1 << 13)


@settings(max_examples=400)
@given(problems())
def test_splits_leave_something_to_each_part(problem):
    parts = schedulers.split(problem)
    assert parts >= 1
    if problem.device.is_cpu:
        assert parts == 1
    name = (
        schedulers.propose(problem).scheduler if schedulers.reject_reason(problem) is None else None
    )
    if name == "inner_outer_persistent" and not problem.rows_split:
        assert parts <= max(problem.parallel, 2)
    elif parts > 1:
        assert name == "reduction"
        assert 2 * parts <= problem.reduced


# --- numbers -----------------------------------------------------------------------------


def test_pointwise_moves_sixteen_bytes_a_thread():
    for width in (1, 2, 4, 8):
        stream = replace(FLAT, item_bytes=width)
        problem = Problem(
            parallel=1 << 26, streams=(stream, replace(stream, is_store=True)), device=H200
        )
        params = schedulers.propose(problem)
        items = vars(params)["block_x"] // (32 * params.num_warps)
        assert items * width >= 16


def test_few_elements_are_spread_over_the_device():
    problem = Problem(parallel=1 << 16, streams=(FLAT,), device=H200)
    params = schedulers.propose(problem)
    assert 4 * ceil_div(1 << 16, vars(params)["block_x"]) >= 3 * H200.sm_count


@pytest.mark.parametrize("columns", [1, 7, 64, 1000, 4096, 12000])
def test_rows_that_fit_stay_in_registers(columns):
    params = schedulers.propose(norm(1 << 16, columns))
    assert vars(params)["persistent"]
    held = vars(params)["block_r"] + sum(vars(params)["tails"])
    assert columns <= held <= next_power_of_2(columns)


@pytest.mark.parametrize(
    ("columns", "item_bytes", "loads", "stays"),
    [
        (16384, 4, 1, True),
        (8192, 2, 2, True),
        (8200, 4, 2, True),
        (8192, 4, 3, True),
        (8192, 8, 1, True),
        (8192, 4, 4, False),
        (8192, 8, 2, False),
        (12544, 2, 1, True),
        (12544, 2, 2, False),
        (12544, 4, 2, False),
    ],
)
def test_rows_stay_in_registers_that_have_room_for_two_programs(columns, item_bytes, loads, stays):
    row = replace(ROW, item_bytes=item_bytes)
    streams = (*[row] * loads, replace(row, is_store=True))
    params = schedulers.propose(norm(1 << 14, columns, streams=streams))
    assert vars(params)["persistent"] is stays


@pytest.mark.parametrize("columns", [8192, 12544, 16384])
@pytest.mark.parametrize("sums", [1, 2, 4])
def test_rows_just_too_long_are_read_in_two_steps_of_few_warps(columns, sums):
    """A lone step with tails behind it would be the whole row in registers again."""
    streams = (*[ROW] * 4, replace(ROW, is_store=True))
    params = schedulers.propose(norm(1 << 14, columns, streams=streams, accumulators=sums))
    found = vars(params)
    assert not found["persistent"]
    assert found["tails"] == ()
    assert columns / 2 <= found["block_r"] < columns
    assert found["block_r"] == 512 * found["num_warps"]


def test_a_row_of_many_sums_is_cut_into_fewer_pieces():
    pair = (ROW, ROW, replace(ROW, is_store=True))
    found = [
        schedulers.propose(norm(1 << 14, 3136, streams=pair, accumulators=n)) for n in (1, 2, 4)
    ]
    assert [vars(params)["tails"] for params in found] == [(1024, 64), (1024, 64), ()]
    assert [vars(params)["block_r"] for params in found] == [2048, 2048, 4096]
    assert [params.num_warps for params in found] == [4, 4, 4]


def test_a_short_row_is_one_warp_however_many_its_sums():
    for sums in (1, 4, 8):
        assert schedulers.propose(norm(1 << 14, 784, accumulators=sums)).num_warps == 1


@given(st.integers(1, 1 << 18), st.integers(1, 20))
def test_the_more_sums_a_row_has_the_fewer_its_tiles(row, sums):
    most = max_tails(sums)
    block, tails = block_and_tails(row, most)
    assert row <= block + sum(tails) <= next_power_of_2(row)
    assert 1 <= most <= MAX_TAILS
    assert len(tails) <= most
    assert sum(tails) < block
    assert sums * len(tails) <= max(6, sums)


@given(st.integers(1, 1 << 18))
def test_tiles_of_a_row_waste_little(row):
    block, tails = block_and_tails(row)
    held = block + sum(tails)
    assert row <= held <= max(1.07 * row, 1024, row + 32)
    assert all(size & (size - 1) == 0 for size in (block, *tails))
    assert len(tails) <= MAX_TAILS


def test_rows_that_do_not_fit_are_read_by_loops():
    for columns in (20480, 73728, 152064):
        params = schedulers.propose(norm(4096, columns))
        assert not vars(params)["persistent"]
        block, tails = params.block_r, sum(params.tails)
        whole = ceil_div(columns - tails, block) * block
        assert columns <= whole + tails < 1.1 * columns


@pytest.mark.parametrize("size", [1 << 20, 1 << 26])
def test_one_long_sum_fills_the_device(size):
    problem = Problem(parallel=1, reduced=size, reduction_depth=1, streams=(ROW,), device=H200)
    assert schedulers.split(problem) >= min(H200.sm_count, size >> 15)


def test_a_short_sum_is_one_kernel():
    problem = Problem(parallel=1, reduced=1024, reduction_depth=1, streams=(ROW,), device=H200)
    assert schedulers.split(problem) == 1


def test_powers():
    assert [next_power_of_2(n) for n in (0, 1, 2, 3, 4, 5, 1023, 1025)] == [
        1,
        1,
        2,
        4,
        4,
        8,
        1024,
        2048,
    ]
    assert [ceil_div(a, 4) for a in (0, 1, 4, 5)] == [0, 1, 1, 2]


# --- long rows ---------------------------------------------------------------------------


def long(row, item_bytes=2, loads=1, stores=1, **changes):
    read = replace(ROW, item_bytes=item_bytes)
    streams = (*[read] * loads, *[replace(read, is_store=True)] * stores)
    return norm(2048, row, streams=streams, **changes)


@pytest.mark.parametrize(
    ("problem", "kept"),
    [
        (long(73728), 32768),
        (long(262144, accumulators=2), 32768),
        (long(73728, loads=2, stores=2), 32768),
        (long(36864, loads=2), 16384),
        (long(73728, loads=2), 0),
        (long(73728, accumulators=2, draws_random=True), 32768),
        (long(73728, item_bytes=4, accumulators=2, draws_random=True), 16384),
        (long(36864, accumulators=2, draws_random=True), 8192),
        (long(73728, item_bytes=8), 0),
        (long(36864), 0),
        (long(73728, row_varies=True), 32768),
        (long(73728, loads=3, stores=2), 0),
        (long(73729, draws_random=True), 0),
    ],
)
def test_the_end_of_a_long_row_stays_in_registers(problem, kept):
    params = schedulers.propose(problem)
    assert not params.persistent
    assert sum(params.tails) == kept or (not kept and sum(params.tails) < params.block_r)


@pytest.mark.parametrize("row", [30000, 33000, 36864, 37120, 38000, 40960])
def test_rows_with_two_results_are_whole_as_long_as_an_sm_has_registers(row):
    params = schedulers.propose(long(row, loads=2, stores=2))
    assert params.persistent and params.num_warps == 32


@pytest.mark.parametrize("row", [20480, 24576, 41000])
def test_others_are_looped_over(row):
    """The cache holds the shorter ones, the registers of an SM do not hold the longer ones."""
    assert not schedulers.propose(long(row, loads=2, stores=2)).persistent


def test_loops_alternate_direction_where_rows_are_more_than_the_cache_keeps():
    assert not schedulers.propose(long(20480)).backwards
    assert schedulers.propose(long(73728, loads=2)).backwards


@pytest.mark.parametrize(("rows", "warps"), [(512, 8), (2048, 8), (8192, 4)])
def test_few_programs_have_more_threads(rows, warps):
    row = 4096 if rows > 512 else 2048
    assert schedulers.propose(norm(rows, row)).num_warps == warps


# --- short rows, parts of rows -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "item", "elements"),
    [(27, 4, 8), (56, 4, 8), (16, 2, 8), (128, 2, 16), (144, 2, 32), (151, 2, 32)],
)
def test_rows_within_a_warp_have_few_elements_a_thread(columns, item, elements):
    """Rows that take all lanes, each with the elements of a vector, have more."""
    row = Stream(item_bytes=item, x_stride=columns, r_stride=1)
    streams = (row, replace(row, is_store=True))
    params = schedulers.propose(norm(1 << 18, columns, streams=streams))
    tile = params.block_x * params.block_r
    assert tile == elements * params.num_warps * H200.warp_size == 1024


@pytest.mark.parametrize("rows", [10, 12, 15, 16])
def test_parts_of_few_rows_give_each_sm_one_program_or_two(rows):
    for length in range(1 << 16, 1 << 18, 1 << 12):
        problem = replace(KINDS["reduction"], parallel=rows, reduced=length)
        programs = schedulers.split(problem) * rows
        assert programs <= H200.sm_count or programs >= 2 * H200.sm_count


@pytest.mark.parametrize("rows", [18, 24, 30, 35])
def test_parts_of_more_rows_fill_the_last_wave(rows):
    """18 parts of each of 30 rows are 540 programs: 528 begin together, and 12 behind them."""
    problem = replace(KINDS["reduction"], parallel=rows, reduced=1 << 20)
    programs = schedulers.split(problem) * rows
    assert wave_efficiency(H200, programs) > 0.9


def test_rows_of_elements_in_sectors_of_their_own_are_split():
    """Each element that is read at an index takes as long as all that its sector has."""
    near = Stream(item_bytes=4, along_x=False, x_stride=0, r_stride=1)
    total = Problem(parallel=1, reduced=26272, reduction_depth=1, streams=(near,), device=H200)
    apart = replace(near, r_stride=1702)
    split = schedulers.split(replace(total, streams=(near, apart)))
    assert 4 * schedulers.split(total) <= split <= 26272 // 256


# --- one wave ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("elements", "items"),
    [(1, 1), (4096, 1), (1 << 15, 2), (1 << 17, 4), (1 << 20, 4), (1 << 21, 8), (1 << 26, 16)],
)
def test_elements_of_a_thread_come_from_spreading_them_over_the_device(elements, items):
    narrow = replace(FLAT, item_bytes=2)
    params = schedulers.propose(Problem(parallel=elements, streams=(narrow,), device=H200))
    assert vars(params)["block_x"] == 32 * params.num_warps * items


@pytest.mark.parametrize(
    ("columns", "warps"), [(16, 1), (128, 1), (256, 4), (704, 8), (1600, 8), (4096, 16)]
)
@pytest.mark.parametrize("reads_again", [True, False])
def test_the_warps_of_a_lone_row_grow_with_the_root_of_it(columns, warps, reads_again):
    problem = norm(8, columns)
    if not reads_again:
        problem = replace(problem, reduction_depth=1, full_outputs=False, dependent_outputs=False)
    assert schedulers.propose(problem).num_warps == warps


@pytest.mark.parametrize(("columns", "warps"), [(64, 1), (128, 1), (256, 1), (512, 4)])
def test_rows_reduced_twice_have_one_warp_up_to_longer_ones(columns, warps):
    assert schedulers.propose(norm(8, columns, accumulators=2)).num_warps == warps


def test_a_lone_row_is_not_filled_to_twice_its_length_to_spare_one_tail():
    row = Problem(parallel=32, reduced=4160, reduction_depth=1, streams=(ROW,), device=H200)
    assert (vars(schedulers.propose(row))["block_r"], schedulers.propose(row).num_warps) == (
        4096,
        16,
    )
    assert vars(schedulers.propose(norm(32, 2304)))["block_r"] == 4096


@pytest.mark.parametrize(
    ("elements", "items"), [(1, 1), (1 << 17, 4), (1 << 18, 8), (1 << 19, 16), (1 << 22, 16)]
)
def test_threads_without_loads_have_more_elements(elements, items):
    stored = replace(FLAT, item_bytes=2, is_store=True)
    params = schedulers.propose(Problem(parallel=elements, streams=(stored,), device=H200))
    assert vars(params)["block_x"] == 32 * params.num_warps * items


def test_few_rows_have_one_tile_where_a_tail_would_have_to_be_reduced_by_itself():
    assert vars(schedulers.propose(norm(64, 1600)))["tails"] == ()
    assert vars(schedulers.propose(norm(1 << 16, 1600)))["tails"] == (512, 64)


def test_short_columns_have_threads_enough():
    column = Problem(parallel=768, reduced=32, reduction_depth=1, streams=(COLUMN,), device=H200)
    params = schedulers.propose(column)
    assert vars(params)["block_x"] * 32 <= 128 * params.num_warps


def test_rows_that_shares_of_would_leave_the_device_idle_are_not_shared():
    large = replace(ROW, total_bytes=1 << 22)
    problem = replace(norm(128, 1 << 13), outer_members=1, streams=(large,))
    assert "idle" in (inner_outer_persistent.reject_reason(problem) or "")


@pytest.mark.parametrize("stream", [ROW, COLUMN], ids=["rows", "columns"])
def test_loops_that_move_many_times_the_cache_have_no_hints(stream):
    def hints(bytes):
        rows, columns = (512, bytes // 2048) if stream is ROW else (bytes // 16384, 4096)
        moved = replace(stream, total_bytes=4 * rows * columns)
        problem = Problem(
            parallel=rows, reduced=columns, reduction_depth=1, streams=(moved,), device=H200
        )
        params = schedulers.propose(problem)
        assert not params.persistent
        return params.evict_hints

    assert hints(H200.l2_bytes)
    assert not hints(8 * H200.l2_bytes)


def test_the_time_of_a_kernel_is_found_once():
    """Segmentations have kernels in common, each with a problem of its own."""
    problem, work = KINDS["pointwise"], ElementWork(before=3.0)
    params = schedulers.propose(problem)
    found = schedulers.kernel_seconds(problem, params, work)
    assert schedulers.kernel_seconds(replace(problem), params, work) is found
    slower = schedulers.kernel_seconds(problem, params, ElementWork(before=3000.0))
    assert slower.seconds > found.seconds
