"""What can be tried for rows that several programs share: all of it is legal, compiles and runs."""

from __future__ import annotations

import json
import random
from dataclasses import fields, replace
from functools import cache

import pytest
import torch

from bench.cases import BY_NAME
from tests.lowering.harness import compare, lowered, planned, record, reference
from tests.lowering.tile.test_shared_rows import BACKWARDS, inputs_of
from tritonfuser.devices import known
from tritonfuser.frontend.tune.candidates import neighbours
from tritonfuser.heuristics.search.near import params_near
from tritonfuser.heuristics.search.spaces import SPACES

SHARED = [
    ("layernorm_bwd", (2048, 73728), torch.bfloat16),
    ("rmsnorm_bwd", (4096, 20480), torch.bfloat16),
    ("layernorm_bwd", (3047, 20003), torch.float32),  # rows begin inside vectors
    ("dropout_rmsnorm_bwd", (128, 262144), torch.bfloat16),
]
H200 = known("sm_90")
SLOW = replace(
    H200, sm_count=8, registers_per_sm=16384, bandwidth_bytes_per_s=2e10, l2_bytes=1 << 16
)
"""Of few registers, for which a row of 3000 is long, and of which to read it again takes longer."""


@cache
def found_in(name, size, dtype):
    """The definition, its inputs, its segments, and the params that programs which share rows may
    have."""
    fd = BY_NAME[name].record(size, dtype)
    inputs = BY_NAME[name].inputs(size, dtype, "meta")
    segmented = fd.segments(inputs, arch="sm_90")
    first = segmented.segments[0]
    space = SPACES[first.scheduler](first.problem)
    return fd, inputs, segmented, [params for params in space if params.parts > 1]


def scheduled(fd, inputs, params, **options):
    data = fd.schedule(inputs, **options).to_dict()
    data["segments"][0]["params"] = {k: v for k, v in params.to_dict().items() if k != "scheduler"}
    return data


def sample(params, count):
    """Some params, and for each field some of those with its least and with its largest value."""
    rng = random.Random(len(params))
    found = rng.sample(params, min(count, len(params)))
    for name in ("parts", "num_warps", "max_registers", "num_stages", "delay", "block_r", "align"):
        values = sorted({getattr(each, name) for each in params})
        for value in (values[0], values[-1]):
            found.append(rng.choice([p for p in params if getattr(p, name) == value]))
    return found


@pytest.mark.parametrize(("name", "size", "dtype"), SHARED, ids=str)
def test_fields_of_shared_rows_can_be_varied(name, size, dtype):
    """The rules' own choice is among them."""
    _, _, segmented, params = found_in(name, size, dtype)
    own = segmented.segments[0].params
    assert own.parts > 1
    for field in ("parts", "num_warps", "num_stages", "delay", "max_registers", "block_r"):
        assert len({getattr(each, field) for each in params}) > 1, field
    assert replace(own, axes=()) in params


@pytest.mark.parametrize(("name", "size", "dtype"), SHARED, ids=str)
def test_all_of_it_is_legal(name, size, dtype):
    fd, inputs, _, params = found_in(name, size, dtype)
    for each in sample(params, 10):
        data = scheduled(fd, inputs, each, arch="sm_90")
        assert fd.is_legal(data, inputs, arch="sm_90"), each


@pytest.mark.parametrize(("name", "size", "dtype"), SHARED, ids=str)
def test_it_is_plain_data_of_a_search_space(name, size, dtype):
    fd, inputs, _, params = found_in(name, size, dtype)
    space = fd.search_space(inputs, arch="sm_90")
    (first, *_) = json.loads(json.dumps(space.to_dict()))["segments"]
    assert first["spaces"][0]["scheduler"] == "inner_outer_persistent"
    shared = [a for a in first["spaces"][0]["alternatives"] if "parts" not in a["fixed"]]
    assert shared and all(choice["values"] for a in shared for choice in a["choices"])
    drawn = [space.draw(random.Random(n)) for n in range(20)]
    assert any(schedule.segments[0].params in params for schedule in drawn)


@pytest.mark.parametrize(("name", "size", "dtype"), SHARED, ids=str)
def test_a_tuner_takes_a_step_of_each_field(name, size, dtype):
    fd, inputs, segmented, _ = found_in(name, size, dtype)
    own = segmented.segments[0].params
    near = [schedule.segments[0].params for schedule in neighbours(segmented, splits=False)]
    names = [field.name for field in fields(own)]
    changed = {name for each in near for name in names if getattr(each, name) != getattr(own, name)}
    assert {"parts", "num_warps", "num_stages", "delay"} <= changed
    for each in near:
        data = scheduled(fd, inputs, each, arch="sm_90")
        assert fd.is_legal(data, inputs, arch="sm_90"), each


def test_tuning_without_a_gpu_varies_them():
    fd, inputs, _, _ = found_in(*SHARED[0])
    report = fd.autotune(inputs, arch="sm_90", level="params", progress=False)
    tried = [trial.schedule.segments[0].params for trial in report.trials if not trial.failure]
    assert len({params.parts for params in tried}) > 1
    assert len({params.num_warps for params in tried}) > 1


@pytest.mark.parametrize(
    ("name", "size", "dtype"),
    [*SHARED[:1], *(pytest.param(*each, marks=pytest.mark.slow) for each in SHARED[1:])],
    ids=str,
)
def test_all_programs_run_at_a_time(name, size, dtype):
    """By registers and shared memory of what is compiled: they wait for one another."""
    fd, inputs, segmented, params = found_in(name, size, dtype)
    groups = segmented.segments[0].problem.outer_batch
    for each in sample(params, 0):
        data = scheduled(fd, inputs, each, arch="sm_90")
        report = fd.compile_for("sm_90", inputs, schedule=data)[0]
        registers = -(-report.registers // 8) * 8 * 32 * each.num_warps
        fitting = min(
            H200.registers_per_sm // registers,
            H200.max_threads_per_sm // (32 * each.num_warps),
            H200.shared_bytes_per_sm // (report.shared_bytes + 1024),
        )
        assert groups * each.parts <= fitting * H200.sm_count, (each, report)
        assert report.shared_bytes <= H200.shared_bytes_per_block


@pytest.mark.parametrize(
    ("kind", "columns", "count"),
    [
        ("rmsnorm", 3000, 1),
        ("rmsnorm", 3001, 2),
        pytest.param("rmsnorm", 3000, 12, marks=pytest.mark.slow),
        pytest.param("rmsnorm", 3001, 12, marks=pytest.mark.slow),
    ],
)
def test_what_is_drawn_gives_the_same_numbers(kind, columns, count):
    """Kernels for a small and slow device, in the interpreter."""
    inputs = inputs_of(20, columns, torch.float32)
    fd = record(BACKWARDS[kind], inputs)
    first, *others = lowered(fd, inputs, SLOW).segmented.segments
    params = [each for each in SPACES[first.scheduler](first.problem) if each.parts > 1]
    assert (
        replace(first.params, axes=()) in params and first.params.align == (4, 1)[columns == 3000]
    )
    exact, rest = reference(fd.fusion.ir, inputs), [piece.params for piece in others]
    for each in random.Random(columns).sample(params, count):
        found = lowered(fd, inputs, SLOW, [each, *rest])
        compare(planned(found, inputs, SLOW).run(inputs), exact, 2e-4)


def test_rows_of_one_program_are_not_shared():
    """Its rows fit: programs would only wait for one another."""
    _, _, segmented, params = found_in("layernorm_bwd", (8192, 4096), torch.bfloat16)
    (first, *_) = segmented.segments
    assert first.params.parts == 1 and not params
    near = params_near(SPACES[first.scheduler](first.problem), first.params)
    assert {each.parts for each in near} == {1}


def test_rows_of_a_device_without_shared_rows():
    fd, inputs, _, _ = found_in(*SHARED[0])
    for piece in fd.segments(inputs, arch="gfx942").segments:
        space = SPACES[piece.scheduler](piece.problem)
        assert all(params.row_parts == 1 for params in space)
