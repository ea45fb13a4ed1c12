"""How many programs share a long row, and when none do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tritonfuser.device import known
from tritonfuser.heuristics import inner_outer_persistent, schedulers
from tritonfuser.heuristics.cooperative_rows import (
    MAX_PART_ELEMENTS,
    PROGRAMS_PER_SM,
    cooperative_split,
)
from tritonfuser.heuristics.params import InnerOuterPersistentParams
from tritonfuser.heuristics.problem import Problem, Stream

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
    ("rows", "columns", "groups", "parts"),
    [
        (16384, 20480, 64, 4),
        (16384, 36864, 32, 8),
        (2048, 73728, 16, 16),
        (128, 262144, 4, 64),
        (30000, 20480, 16, 16),
    ],
)
def test_programs_fill_the_device(rows, columns, groups, parts):
    found = cooperative_split(backward(rows, columns))
    assert (found.groups, found.parts) == (groups, parts)
    assert found.width * parts == columns and found.width <= MAX_PART_ELEMENTS
    assert groups * parts <= PROGRAMS_PER_SM * H200.sm_count


def test_the_split_of_the_rows_and_the_params_go_together():
    problem = backward(16384, 20480)
    assert schedulers.split(problem) == 64
    params = schedulers.propose(replace(problem, outer_batch=64, rows_split=True))
    name = params.scheduler
    assert name == "inner_outer_persistent" and isinstance(params, InnerOuterPersistentParams)
    assert params.parts * (params.block_r + sum(params.tails)) == 20480
    registers = params.max_registers * 32 * params.num_warps * PROGRAMS_PER_SM
    assert registers <= H200.registers_per_sm


@pytest.mark.parametrize(
    "changes",
    [
        {"published_sums": 0},
        {"outer_members": 3},
        {"reduced": 20481},
        {"parallel": 16411},  # a prime number of rows is not cut into groups
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
