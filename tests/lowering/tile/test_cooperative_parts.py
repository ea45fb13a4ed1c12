"""Rows of any number and length that programs share: uneven shares, short last parts, odd rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.cases import BY_NAME
from tests.lowering.graphs import noise
from tests.lowering.harness import (
    H200,
    compare,
    framed,
    lowered,
    planned,
    poisoned,
    record,
    reference,
    small,
)
from tests.lowering.tile.test_shared_rows import BACKWARDS, inputs_of
from tritonfuser.errors import ParamsError
from tritonfuser.heuristics import inner_outer_persistent
from tritonfuser.heuristics.params import InnerOuterPersistentParams
from tritonfuser.lowering.backend.compile import compile_kernel


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """The interpreter takes a millisecond an op and row."""
    monkeypatch.setattr(inner_outer_persistent, "MIN_ROWS", 8)


def shared(body, inputs, facts=H200, tolerance=2e-4, **changes):
    """What comes of a first kernel whose rows are shared, with float64's; returns the segment."""
    given = [framed(x) for x in inputs]
    fd = record(body, given)
    first, *rest = (piece.params for piece in lowered(fd, given, facts).segmented.segments)
    assert isinstance(first, InnerOuterPersistentParams)
    changes = {"block_m": 1, "align": 1, "num_stages": 3, "prefetch": False, **changes}
    found = lowered(fd, given, facts, [replace(first, **changes), *rest])
    with poisoned():
        results = planned(found, given, facts).run(given)
    compare(results, reference(fd.fusion.ir, given), tolerance)
    return found.segmented.segments[0]


@pytest.mark.parametrize(
    ("columns", "parts", "block", "tails", "dtype"),
    [
        (131, 3, 32, (16,), torch.bfloat16),
        (97, 7, 16, (), torch.float32),
        (130, 5, 16, (8, 4), torch.bfloat16),
        (65, 2, 64, (), torch.float32),
    ],
)
def test_a_last_part_may_be_shorter(columns, parts, block, tails, dtype):
    inputs = inputs_of(11, columns, dtype)
    changes = {"parts": parts, "block_r": block, "tails": tails, "delay": 2}
    shared(BACKWARDS["layernorm"], inputs, small(2), **changes)


@pytest.mark.parametrize(("delay", "stages"), [(1, 3), (3, 1)])
def test_shares_of_rows_may_be_uneven(delay, stages):
    found = shared(
        BACKWARDS["layernorm"],
        inputs_of(19, 96, torch.float32),
        small(4),
        parts=3,
        block_r=32,
        delay=delay,
        num_stages=stages,
    )
    assert found.shares and not found.shares[0].interleaved


@pytest.mark.parametrize(
    ("rows", "dtype", "columns", "align", "parts", "block", "tails", "stages"),
    [
        (19, torch.float32, 517, 4, 3, 128, (64, 16), 3),
        (16, torch.float32, 518, 4, 2, 256, (16, 32), 1),
        pytest.param(17, torch.bfloat16, 515, 8, 5, 64, (32, 8, 16), 3, marks=pytest.mark.slow),
        pytest.param(19, torch.bfloat16, 1030, 8, 3, 256, (128, 16), 1, marks=pytest.mark.slow),
    ],
)
def test_parts_begin_at_vectors_where_rows_do_not(
    rows, dtype, columns, align, parts, block, tails, stages
):
    found = shared(
        BACKWARDS["layernorm"],
        inputs_of(rows, columns, dtype),
        small(4),
        parts=parts,
        block_r=block,
        tails=tails,
        align=align,
        num_stages=stages,
    )
    assert bool(found.shares) == (rows != 16)
    assert all(share.interleaved for share in found.shares)


def test_what_no_program_publishes_changes_no_maximum():
    """Seven programs publish to eight lanes: the eighth has the least there is."""

    def body(fd, x):
        shifted = fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True))
        return shifted, fd.ops.sum(shifted, [0])

    x = -1 - noise(19, 97).abs()
    shared(body, [x], small(2), parts=7, block_r=16)


def test_not_finite_elements_stay_in_their_rows_and_columns():
    x, dy, *rest = inputs_of(19, 517, torch.float32)
    x[1, 516], dy[2, 0], x[4] = torch.nan, torch.inf, 0.0
    changes = {"parts": 3, "block_r": 128, "tails": (64, 16), "align": 4}
    shared(BACKWARDS["rmsnorm"], [x, dy, *rest], small(4), **changes)


@pytest.mark.parametrize(
    ("align", "block", "tails", "parts", "message"),
    [
        (4, 128, (16,), 3, "3 parts of block_r=128 and tails=.16,. hold 384 elements"),
        (4, 128, (64, 4), 3, "and 4 beside them"),
        (1, 128, (64, 16), 2, "which 2 parts of 208 do not cut up"),
        (1, 256, (16,), 3, "which 3 parts of 272 do not cut up"),
    ],
)
def test_parts_that_do_not_hold_a_row(align, block, tails, parts, message):
    inputs = inputs_of(19, 517, torch.float32)
    changes = {"align": align, "block_r": block, "tails": tails, "parts": parts}
    with pytest.raises(ParamsError, match=message):
        shared(BACKWARDS["rmsnorm"], inputs, small(4), **changes)


# --- what a GPU is given -------------------------------------------------------------------------

LONG = [
    ("layernorm_bwd", (5893, 25134), torch.bfloat16),
    ("dropout_layernorm_bwd", (3001, 20001), torch.bfloat16),
    ("layernorm_bwd", (3047, 20003), torch.float32),
    ("rmsnorm_residual_bwd", (2999, 30008), torch.bfloat16),
]


@pytest.mark.parametrize(("case", "size", "dtype"), LONG, ids=lambda x: str(x))
def test_long_rows_of_any_number_and_length_are_shared(case, size, dtype):
    """By vectors of 16 bytes, without a spill, and whole rows in one kernel."""
    inputs = BY_NAME[case].inputs(size, dtype, "meta")
    found = lowered(BY_NAME[case].record(size, dtype), inputs)
    walk, finish = found.segmented.segments
    assert walk.params.parts > 1 and finish.scheduler == "reduction"
    assert walk.params.align > 1 or size[1] * dtype.itemsize % 16 == 0
    source = found.sources[0]
    kernel = compile_kernel(source, "sm_90", tuple(arg.is_tensor for arg in source.args))
    ptx = kernel.asm["ptx"]
    assert "cp.async.cg.shared.global [ %" in ptx and ", 0x10" in ptx
    assert "st.global.v4.b32" in ptx
