"""Mean and variance of rows in a walk: by neighbours that a thread has, and one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import lowered, planned, record, small
from tests.lowering.sass import disassembled, loops
from tritonfuser import DataType


def moments(fd, x):
    var, mean = fd.ops.var_mean(x, [1], correction=0)
    return var, mean


def walked(x, **changes):
    fd = record(moments, [x])
    params = replace(fd.heuristics([x])[0], persistent=False, **changes)
    plan = fd.plan([x], params=[params])
    return plan([x]), plan.kernels[0].text


@pytest.mark.covering
@pytest.mark.parametrize("shift", [0.0, 1e4, -1e5])
@pytest.mark.parametrize(
    ("columns", "block", "tails", "lanes"),
    [(256, 64, (), True), (200, 64, (8,), True), (250, 64, (), False), (96, 4, (), True)],
)
@pytest.mark.parametrize("rows", [1, 2])
def test_as_accurate_as_float32_can_be(rows, columns, block, tails, lanes, shift):
    x = noise(6, columns) + shift
    (var, mean), text = walked(x, block_x=rows, block_r=block, tails=tails)
    assert ("lane_sum" in text) is lanes
    exact = x.double()
    # A mean is no nearer than its last place, and distances from it are about 1.
    last = 1e-5 + torch.finfo(torch.float32).eps * abs(shift)
    torch.testing.assert_close(mean.double(), exact.mean(1), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(var.double(), exact.var(1, correction=0), rtol=last, atol=0)


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("rows", [1, 2])
def test_rows_that_begin_at_odd_elements(rows, shift):
    """Loaded element by element: a thread has every 32nd, and joins those without the others."""
    x = noise(6, 1029) + shift
    (var, mean), text = walked(x, block_x=rows, block_r=256, tails=(8,), num_warps=1, align=1)
    assert "lane_spread(tv3_part, 8, True)" in text
    exact = x.double()
    last = 1e-5 + torch.finfo(torch.float32).eps * abs(shift)
    torch.testing.assert_close(mean.double(), exact.mean(1), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(var.double(), exact.var(1, correction=0), rtol=last, atol=0)


@pytest.mark.parametrize("columns", [350192, 350194, 350193])
def test_no_walk_exchanges_elements(columns, tmp_path):
    """Rows of whole vectors, of pairs, and of odd lengths."""
    step = 5 * columns + (3 if columns % 2 else 0)  # rows of odd lengths begin anywhere
    x = torch.empty_strided(
        (116, 5, columns), (step, columns, 1), dtype=torch.bfloat16, device="meta"
    )
    fd = record(lambda fd, x: fd.ops.var_mean(fd.ops.cast(x, dtype=DataType.Float), [2]), [x])
    report = fd.compile_for("sm_90", [x])[0]
    _, walks = loops(disassembled(report.asm["cubin"], tmp_path))
    assert walks
    assert not any(walk["SHFL"] for walk in walks)


def test_over_the_rows_beside_sums_along_them():
    """A program that walks over rows one by one has a mean for each column."""
    x = noise(64, 5)

    def body(fd, x):
        rest = fd.ops.sub(x, fd.ops.sum(x, [1], keepdim=True))
        return fd.ops.var_mean(rest, [0], correction=0)

    found = lowered(body, [x], small(1), block_m=1)
    first = found.segmented.segments[0].params
    assert (first.scheduler, first.block_m) == ("inner_outer_persistent", 1)
    var, mean = planned(found, [x]).run([x])
    rest = (x - x.sum(1, keepdim=True)).double()
    torch.testing.assert_close(mean.double(), rest.mean(0), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(var.double(), rest.var(0, correction=0), rtol=1e-5, atol=1e-6)


def test_what_is_not_finite_stays_in_its_row():
    x = noise(5, 256)
    x[1, 3], x[2, 200], x[3, 0] = torch.nan, torch.inf, -torch.inf
    (var, mean), _ = walked(x, block_x=1, block_r=64)
    assert torch.equal(var.isnan(), torch.tensor([False, True, True, True, False]))
    assert not mean[[1, 2, 3]].isfinite().any()
    torch.testing.assert_close(mean[[0, 4]], x[[0, 4]].mean(1))
