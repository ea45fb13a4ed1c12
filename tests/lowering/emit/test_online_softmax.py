"""A maximum and its sum of exponentials in one walk over columns: numbers, and what a GPU runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.cases import BY_NAME
from tests.lowering.graphs import softmax
from tests.lowering.harness import lowered, record
from tritonfuser.heuristics.params import InnerPersistentParams, OuterPersistentParams
from tritonfuser.lowering.backend.compile import compile_kernel


def of_columns(x, block_x, block_r, warps):
    """The softmax of columns, the rows of a thread so far apart as that many warps reach."""
    params = OuterPersistentParams(
        block_x=block_x, block_r=block_r, persistent=False, num_warps=warps
    )
    fd = record(lambda fd, x: softmax(fd, x, 0), [x])
    (actual,) = fd.run([x], params=[params])
    return actual


@pytest.mark.covering
@pytest.mark.parametrize(("block_x", "block_r"), [(4, 256), (8, 128), (16, 64), (32, 512)])
@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_any_tile_gives_the_same(dtype, warps, block_x, block_r):
    x = (torch.randn(700, 50) * 10).to(dtype)
    expected = torch.softmax(x.double(), 0)
    found = of_columns(x, block_x, block_r, warps)
    torch.testing.assert_close(
        found.double(), expected, atol=1e-6, rtol=1e-2 if dtype is torch.bfloat16 else 1e-5
    )


@pytest.mark.parametrize("warps", [1, 8])
def test_of_what_is_not_finite(warps):
    x = torch.randn(1000, 40)
    x[:, 3], x[:900, 4], x[950:, 4] = -torch.inf, -torch.inf, -torch.inf
    x[7, 5], x[999, 6], x[:, 7] = torch.inf, torch.nan, 1e30
    found = of_columns(x, 16, 128, warps)
    torch.testing.assert_close(found, torch.softmax(x, 0), equal_nan=True)


def compiled(size, **changes):
    case = BY_NAME["softmax_columns"]
    inputs = case.inputs(size, torch.bfloat16, "meta")
    found = lowered(case.record(size, torch.bfloat16), inputs, **changes)
    (source,) = found.sources
    assert source is not None
    return compile_kernel(source, "sm_90", tuple(True for _ in source.args))


def test_one_exponential_an_element_and_one_a_thread_and_column():
    """512 threads of 64 numbers: 8 rows of 8 columns each, whose sums are rescaled together."""
    kernel = compiled((8192, 8192), block_x=64, block_r=512, num_warps=16, persistent=False)
    walk, rest = kernel.asm["ptx"].split("bar.sync", 1)
    assert walk.count("ex2.approx.ftz.f32") == 64 + 8
    assert "shfl" not in walk.partition("bra")[0]
    assert "ex2.approx.ftz.f32" in rest


def test_a_walk_leaves_room_for_a_thousand_threads():
    size = (8192, 8192)
    case = BY_NAME["softmax_columns"]
    fd = case.record(size, torch.bfloat16)
    (report,) = fd.compile_for("sm_90", case.inputs(size, torch.bfloat16, "meta"))
    assert report.registers <= 64
    assert report.spill_bytes == 0


@pytest.mark.parametrize(
    ("step", "lanes"), [(50264, "8, False"), (50260, "4, False"), (50257, "16, True")]
)
def test_a_thread_has_what_it_loads_of_a_row(step, lanes):
    """Vectors of neighbours where rows begin at vectors, and elements far apart where they begin
    anywhere: of two dims of rows no tile is shifted to begin at vectors."""
    x = torch.empty_strided(
        (64, 3, 50256), (3 * step + 7 * (step % 2), step, 1), dtype=torch.bfloat16, device="meta"
    )
    fd = record(lambda fd, x: softmax(fd, x, 2), [x])
    params = fd.heuristics([x], arch="sm_90")[0]
    walk = replace(params, block_x=1, block_r=4096, persistent=False, tails=(), num_warps=8)
    (source,) = fd.kernels([x], arch="sm_90", params=[walk])
    assert f"_masked, {lanes})" in source.text


def test_a_row_alone_has_vectors():
    x = torch.empty(1, 9732, dtype=torch.bfloat16, device="meta")
    fd = record(lambda fd, x: softmax(fd, x, 1), [x])
    walk = InnerPersistentParams(block_x=1, block_r=8192, persistent=False, num_warps=16)
    (source,) = fd.kernels([x], arch="sm_90", params=[walk])
    assert "_masked, 8, False)" in source.text
