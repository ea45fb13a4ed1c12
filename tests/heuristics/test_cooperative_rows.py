"""How many programs share a long row, and when none do."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.cases import BY_NAME
from tests.lowering.harness import lowered
from tritonfuser.cache import dry_run
from tritonfuser.devices import known
from tritonfuser.heuristics import inner_outer_persistent, schedulers
from tritonfuser.heuristics.cooperative_rows import (
    PROGRAMS_PER_SM,
    WARPS,
    cooperative_split,
)
from tritonfuser.heuristics.looped_rows.row_parts import Residents, elements_per_thread
from tritonfuser.heuristics.params import InnerOuterPersistentParams
from tritonfuser.heuristics.problem import Problem
from tritonfuser.heuristics.streams import Stream
from tritonfuser.lowering.run_options import RunOptions

H200 = known("sm_90")
ROW = Stream(item_bytes=2, x_stride=None, r_stride=1)


def backward(rows, columns, **changes):
    problem = Problem(
        parallel=rows,
        reduced=columns,
        reduction_depth=1,
        full_outputs=True,
        dependent_outputs=True,
        outer_members=2,
        published_sums=2,
        streams=(ROW, ROW, replace(ROW, is_store=True)),
        device=H200,
    )
    return replace(problem, **changes)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (16384, 20480),
        (16411, 20480),  # a prime number of rows
        (16384, 20488),
        (2048, 73728),
        (128, 262144),
        (397, 60008),
    ],
)
def test_programs_fill_the_device_and_hold_the_rows(rows, columns):
    problem = backward(rows, columns)
    found = cooperative_split(problem)
    room = PROGRAMS_PER_SM * H200.sm_count
    assert 0.9 * room <= found.groups * found.parts <= room
    assert (found.parts - 1) * found.width < columns <= found.parts * found.width
    residents = Residents(H200, PROGRAMS_PER_SM, WARPS)
    assert found.width <= elements_per_thread(problem, residents.registers) * residents.threads


@pytest.mark.parametrize("columns", [60001, 60002, 60004])
def test_rows_of_a_group_begin_at_the_same_place_of_a_vector(columns):
    problem = backward(5000, columns, vector_elements=8)
    found = cooperative_split(problem)
    assert found.align == 8 and found.groups * columns % 8 == 0
    assert found.parts * found.width >= columns // 8 * 8


def test_parts_begin_at_vectors_only_where_rows_are_shared_out_so():
    """Groups that the rows do not lie in by turns have rows that begin anywhere."""
    problem = backward(5000, 60002, vector_elements=8, outer_batch=5, may_split=False)
    found = cooperative_split(problem)
    assert found is None or found.align == 1


def test_results_that_join_do_not_change_whether_rows_are_shared():
    """Else rows would be shared out for a kernel that is then not made."""
    for rows in range(20, 400, 3):
        for columns in (30000, 49960, 100000):
            full = backward(rows, columns)
            bare = replace(full, outer_members=1, streams=(ROW, ROW), full_outputs=False)
            first = cooperative_split(bare)
            if first is not None:
                batch = {"outer_batch": first.groups, "rows_split": True, "may_split": False}
                assert cooperative_split(replace(full, **batch)) is not None, (rows, columns)


def test_the_split_of_the_rows_and_the_params_go_together():
    problem = backward(16384, 20480)
    groups = schedulers.split(problem)
    params = schedulers.propose(replace(problem, outer_batch=groups, rows_split=True))
    assert isinstance(params, InnerOuterPersistentParams)
    assert groups == cooperative_split(problem).groups
    assert params.parts * (params.block_r + sum(params.tails)) >= 20480
    registers = params.max_registers * 32 * params.num_warps * PROGRAMS_PER_SM
    assert registers <= H200.registers_per_sm


@pytest.mark.parametrize(
    "changes",
    [
        {"published_sums": 0},
        {"parallel": 4},  # rows so few that reading them again takes less time
        {"device": known("gfx942")},
    ],
)
def test_otherwise_rows_are_not_shared(changes):
    problem = replace(backward(16384, 20480), **changes)
    assert cooperative_split(problem) is None
    reason = inner_outer_persistent.reject_reason(problem)
    assert reason is not None and "its programs cannot share rows" in reason


def test_rows_that_fit_one_program_stay_there():
    params = schedulers.propose(backward(8192, 8192, outer_batch=128, rows_split=True))
    assert params.parts == 1


@pytest.mark.parametrize("rows", [8, 16384])
@pytest.mark.parametrize("columns", [20480, 26_843_545])
def test_rows_that_are_computed_of_columns_alone_are_not_shared(rows, columns):
    """Nothing of them is read, so that nothing would be read twice."""
    weight = Stream(item_bytes=4, along_x=False, x_stride=0, r_stride=1)
    assert cooperative_split(backward(rows, columns, streams=(weight,))) is None


def outer_product(fd, u, v):
    """Sums of the rows of an outer product, and of its columns."""
    sizes = [u.size(0), v.size(0)]
    wide = (fd.ops.broadcast_in_dim(x, sizes, [dim]) for dim, x in enumerate((u, v)))
    terms = fd.ops.mul(*wide)
    row = fd.ops.sum(terms, [1], keepdim=True)
    return row, fd.ops.sum(fd.ops.mul(terms, row), [0])


@pytest.mark.parametrize(("rows", "columns"), [(80, 26_843_545), (16384, 20480), (1 << 20, 70_000)])
def test_long_rows_that_are_computed_of_columns_alone(rows, columns):
    inputs = [torch.empty(rows, device="meta"), torch.empty(columns, device="meta")]
    assert lowered(outer_product, inputs).sources


@pytest.mark.parametrize(("rows", "columns"), [(700, 10240), (700, 14336), (130, 32768)])
def test_rows_that_are_shared_out_would_be_read_a_third_time(rows, columns):
    """One kernel keeps them, beside the one that joins the partial results."""
    case, size = BY_NAME["layernorm_bwd"], (rows, columns)
    fusion = case.record(size, torch.bfloat16).fusion.ir
    found = dry_run.lower_for(
        fusion, case.inputs(size, torch.bfloat16, "meta"), RunOptions(arch="sm_90")
    )
    assert len(found[0].segmented.segments) == 2
