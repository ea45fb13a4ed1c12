"""Limits on the registers of loops over sums, and the loads that are begun together with them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from tests.heuristics.test_schedulers import CPU, H200, norm
from tests.lowering.sass import begun_together, disassembled
from tritonfuser import DataType, FusionDefinition
from tritonfuser.devices import known
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.params import ReductionParams
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.search.load_registers import register_limit_for_loads
from tritonfuser.heuristics.streams import Stream, StrideTerm

WORK = ElementWork(before=1, reducing=1, reductions=1, carried=1)
LOOP = ReductionParams(block_x=64, block_r=64, persistent=False, num_warps=8)


def columns(count, rows=2168):
    """Sums of columns that begin inside of vectors, by programs of 64 of them."""
    stream = Stream(
        item_bytes=2, x_stride=1, r_stride=64 * count - 1, total_bytes=128 * rows * count
    )
    return Problem(
        parallel=64 * count - 1, reduced=rows, reduction_depth=1, streams=(stream,), device=H200
    )


def limit(problem, params=LOOP, work=WORK):
    return register_limit_for_loads(problem, work, params)


def programs(registers, params=LOOP):
    """Programs that a multiprocessor has at a time."""
    return H200.registers_per_sm // (registers * 32 * params.num_warps)


def wanted(problem, params=LOOP):
    return schedulers.kernel_seconds(problem, params, WORK).registers


@pytest.mark.parametrize("count", [132, 264, 265, 396, 528])
def test_programs_that_all_run_at_a_time_still_do(count):
    found = limit(columns(count))
    assert found >= 1.1 * wanted(columns(count))
    assert programs(found) >= count / H200.sm_count


def test_of_more_programs_fewer_run_at_a_time():
    waiting = replace(WORK, before=0)
    found = limit(columns(1320), work=waiting)
    assert 1 <= programs(found) < 10
    assert found == limit(columns(13200), work=waiting) >= 1.5 * wanted(columns(1320))


def test_programs_that_compute_most_of_the_time_stay_as_many():
    busy = replace(WORK, before=40)
    time = schedulers.kernel_seconds(columns(1320), LOOP, busy)
    assert time.limit == "instructions"
    assert limit(columns(1320), work=busy) == 0
    assert limit(columns(264), work=busy) == 128


def test_what_moments_carry_is_counted():
    """Threads carry two numbers of each element, of a sum one."""
    sums = replace(WORK, before=2)
    moments = replace(sums, carried=0)
    assert limit(columns(264), work=moments) == limit(columns(264), work=sums) == 128
    assert limit(columns(660), work=sums) == 48 and limit(columns(660), work=moments) == 80


def parts_of_columns(parts, count, block_x):
    """Sums of parts of columns side by side, in tiles of so many of them."""
    rows = 1024
    stream = Stream(
        item_bytes=2,
        x_stride=1,
        r_stride=count,
        contiguous_run=count,
        total_bytes=2 * parts * rows * count,
        stride_terms=(
            StrideTerm(axis=1, div=1, extent=count, step=1),
            StrideTerm(axis=0, div=1, extent=parts, step=rows * count),
            StrideTerm(axis=2, div=1, extent=rows, step=count),
        ),
    )
    problem = Problem(
        parallel=parts * count,
        reduced=rows,
        reduction_depth=1,
        axes=(parts, count, rows),
        row_axes=1,
        streams=(stream,),
        device=H200,
    )
    return problem, replace(LOOP, block_x=block_x, block_r=32, num_warps=4)


def test_parts_of_columns_keep_their_programs():
    """Tiles that end with a part have elements at offsets from one address, as those of one part
    have. H200, 8192 x 8192 in bfloat16: 39.6 us with a limit for addresses of single elements, with
    which seven of eight programs run at a time, 37.4 without any."""
    whole, params = parts_of_columns(8, 8192, 64)
    found = limit(whole, params)
    assert found and programs(found, params) >= 8 * 8192 / 64 / H200.sm_count
    straddling, params = parts_of_columns(8, 8160, 64)
    assert programs(limit(straddling, params), params) < 8 * 8160 / 64 / H200.sm_count


def test_addresses_of_single_elements_are_counted():
    """Registers hold two words of each beside what is loaded: with too few they are spilled."""
    apart = columns(264)
    strided = replace(apart, streams=(replace(apart.streams[0], x_stride=None),))
    assert limit(apart) == 128 and limit(strided) == 0


def test_few_steps_leave_as_many_programs():
    waiting = replace(WORK, before=0)
    assert limit(columns(1320, 128), work=waiting) == 0 < limit(columns(1320, 640), work=waiting)
    assert limit(columns(264, 128), work=waiting) > 0


def test_alike_numbers_of_programs_have_one_limit():
    assert len({limit(columns(count)) for count in range(270, 528, 10)}) == 1
    narrow = replace(LOOP, block_r=16, num_warps=4)
    counts = range(1060, 2100, 50)
    assert limit(columns(1060), narrow) > 0
    assert len({limit(columns(count), narrow) for count in counts}) == 1


@pytest.mark.parametrize(
    ("problem", "params"),
    [
        (columns(1320), replace(LOOP, num_stages=3)),
        (columns(1320, 64), replace(LOOP, persistent=True)),
        (columns(1320, 64), LOOP),
        (replace(columns(1320), device=CPU), LOOP),
        (replace(columns(264), device=known("gfx942")), LOOP),
        (norm(4096, 1 << 16), schedulers.propose(norm(4096, 1 << 16))),
    ],
)
def test_none_where_no_step_waits_for_loads_alone(problem, params):
    assert limit(problem, params) == 0


def sums(rows, length, dim):
    """Sums of a tensor of BFloat16."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.BFloat16)
        total = fd.ops.sum(fd.ops.cast(x, dtype=DataType.Float), dims=[dim])
        fd.add_output(fd.ops.cast(total, dtype=DataType.BFloat16))
    return fd, torch.empty(rows, length, dtype=torch.bfloat16, device="meta")


@pytest.mark.parametrize(
    ("rows", "length", "dim", "steps"), [(4336, 35195, 0, 1), (168, 149881, 1, 3)]
)
def test_all_loads_of_a_step_are_begun_together(rows, length, dim, steps, tmp_path):
    """Without the limit one was waited for before the next was begun. Of a loop of few loads ptxas
    unrolls some steps, and begins the loads of all of them."""
    fd, x = sums(rows, length, dim)
    piece = fd.segments([x], arch="sm_90").segments[0]
    report = fd.compile_for("sm_90", [x])[0]
    params = piece.params
    step = params.block_x * params.block_r // (32 * params.num_warps)
    loads = step * x.element_size() // report.max_load_bytes
    assert report.max_registers == params.max_registers > 0 and not report.spill_bytes
    assert max(begun_together(disassembled(report.asm["cubin"], tmp_path))) == steps * loads


def softmax_backward(*sizes):
    """What a softmax over the last dim passes back, and its sums over the first one."""
    with FusionDefinition() as fd:
        kind = {"shape": [-1] * len(sizes), "contiguity": True, "dtype": DataType.BFloat16}
        given = (fd.define_tensor(**kind) for _ in "ab")
        grad, made = (fd.ops.cast(x, dtype=DataType.Float) for x in given)
        total = fd.ops.sum(fd.ops.mul(grad, made), dims=[-1], keepdim=True)
        back = fd.ops.mul(made, fd.ops.sub(grad, total))
        fd.add_output(fd.ops.cast(back, dtype=DataType.BFloat16))
        fd.add_output(fd.ops.sum(back, dims=[0]))
    return fd, [torch.empty(*sizes, dtype=torch.bfloat16, device="meta") for _ in "ab"]


def begun_before_reductions(text):
    """Loads before the first exchange between lanes, with those before the loop."""
    names = re.findall(r"\s(LDG|SHFL)\.", text)
    return names.index("SHFL")


def test_a_loop_over_rows_begins_the_loads_of_the_next_step_before_it_reduces(tmp_path):
    """Without the limit ptxas began them behind the reductions of a step."""
    fd, inputs = softmax_backward(1024, 196, 49)
    data = fd.schedule(inputs, arch="sm_90").to_dict()
    own = data["segments"][0]["params"]
    assert own["prefetch"] and own["max_registers"] > 0
    found = []
    for limit in (own["max_registers"], 0):
        own["max_registers"] = limit
        report = fd.compile_for("sm_90", inputs, schedule=data)[0]
        text = disassembled(report.asm["cubin"], tmp_path)
        assert not report.spill_bytes
        found.append(begun_before_reductions(text))
    assert found[0] == 2 * found[1]


def test_a_loop_over_rows_has_no_limit_that_leaves_little():
    fd, inputs = softmax_backward(8192, 4000)
    params = fd.segments(inputs, arch="sm_90").segments[0].params
    assert params.prefetch and params.max_registers == 0


def test_what_shares_a_launch_has_no_limit():
    with FusionDefinition() as fd:
        given = [
            fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float) for _ in "ab"
        ]
        for x in given:
            fd.add_output(fd.ops.sum(x, dims=[1]))
    inputs = [torch.empty(256, n, device="meta") for n in (20480, 20481)]
    found = fd.segments(inputs, arch="sm_90").segments
    assert any(piece.beside for piece in found)
    assert all(not piece.params.max_registers for piece in found)


@pytest.mark.parametrize(("rows", "length"), [(4954, 18504), (3011, 22040)])
def test_two_programs_of_32_warps_have_room_where_steps_are_for_two(rows, length):
    """The compiler took 46 registers, with which there is room for one."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float)
        variance, mean = fd.ops.var_mean(x, dims=[1], correction=0)
        scale = fd.ops.rsqrt(fd.ops.add(variance, 1e-5))
        centered = fd.ops.sub(x, fd.ops.broadcast(mean, [False, True]))
        fd.add_output(fd.ops.mul(centered, fd.ops.broadcast(scale, [False, True])))
    x = torch.empty(rows, length, device="meta")
    (piece,) = fd.segments([x], arch="sm_90").segments
    (report,) = fd.compile_for("sm_90", [x])
    assert piece.params.num_warps == 32 and not piece.params.persistent
    assert report.registers <= piece.params.max_registers == 32 and not report.spill_bytes
