"""Matrix products on a GPU's facts: which become kernels, cut how, and what code that is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.harness import H200, check, lowered, record, schedulers, small, texts
from tritonfuser import DataType
from tritonfuser.cache.signature import signature
from tritonfuser.device import ARCHITECTURES, known
from tritonfuser.heuristics.params import MatmulParams
from tritonfuser.lowering.contract import Products
from tritonfuser.lowering.pipeline import lower

BF16, FLOAT = DataType.BFloat16, DataType.Float
CLOSE = 3e-2


def random(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).bfloat16()


def meta(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16, device="meta")


def linear_silu(fd: Any, x: Any, w: Any) -> Any:
    wide = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
    return fd.ops.cast(fd.ops.mul(wide, fd.ops.sigmoid(wide)), BF16)


def linear_alone(fd: Any, x: Any, w: Any) -> Any:
    return fd.ops.linear(x, w)


def squares_of_rows(fd: Any, x: Any, w: Any) -> Any:
    wide = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
    return fd.ops.sum(fd.ops.mul(wide, wide), [1])


def silu_linear(fd: Any, x: Any, w: Any) -> Any:
    wide = fd.ops.cast(x, FLOAT)
    return fd.ops.linear(fd.ops.cast(fd.ops.mul(wide, fd.ops.sigmoid(wide)), BF16), w)


# --- which become kernels ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "sizes", "expected"),
    [
        (linear_silu, (4096, 4096, 4096), ["matmul"]),
        (linear_silu, (16, 4096, 4096), ["matmul"]),
        # So long a sum costs more in Triton than the way through memory that it saves.
        (linear_silu, (4096, 4096, 65536), ["expr_eval", "pointwise"]),
        (linear_alone, (4096, 4096, 4096), ["expr_eval"]),
        (squares_of_rows, (4096, 4096, 4096), ["matmul", "reduction"]),
        # What would be computed for each of 32 tiles is computed once before.
        (silu_linear, (4096, 8192, 1024), ["pointwise", "expr_eval"]),
        # A weight that each tile of a few rows reads once is converted on the way.
        (silu_linear, (4096, 32, 1024), ["matmul"]),
    ],
)
def test_a_product_is_a_kernel_where_that_is_expected_to_be_faster(
    body: Any, sizes: tuple[int, int, int], expected: list[str]
) -> None:
    m, n, k = sizes
    assert schedulers(lowered(body, [meta(m, k), meta(n, k)])) == expected


def test_products_that_nothing_rides_along_with_are_left_to_torch() -> None:
    def gated(fd: Any, x: Any, w: Any, v: Any) -> Any:
        return fd.ops.mul(linear_silu(fd, x, w), fd.ops.linear(x, v))

    inputs = [meta(2048, 1024), meta(4096, 1024), meta(4096, 1024)]
    assert schedulers(lowered(gated, inputs)) == ["expr_eval", "matmul"]


def test_a_cpu_leaves_them_to_torch_unless_asked() -> None:
    fd = record(linear_silu, [random(8, 8), random(8, 8)])
    spec = signature(fd.fusion.ir, [random(8, 8), random(8, 8)], torch.device("cpu"))
    facts = H200.__class__(**{**{f: getattr(H200, f) for f in H200.__slots__}, "arch": "cpu"})
    assert schedulers(lower(fd.fusion.ir, spec, facts)) == ["expr_eval", "pointwise"]
    asked = lower(fd.fusion.ir, spec, facts, products=Products.KERNELS)
    assert schedulers(asked) == ["matmul"]


# --- numbers, as a GPU would compute them --------------------------------------------------


@pytest.mark.parametrize("sizes", [(300, 520, 136), (130, 512, 64), (257, 1024, 72)])
def test_programs_that_walk_over_tiles_fetched_by_descriptors(sizes: tuple[int, ...]) -> None:
    m, n, k = sizes
    found = lowered(linear_silu, [random(m, k), random(n, k)], small(2))
    (params,) = (s.params for s in found.segmented.segments)
    assert isinstance(params, MatmulParams)
    assert params.descriptors and params.programs == 2
    assert "tl.make_tensor_descriptor" in texts(found)[0]
    check(linear_silu, random(m, k), random(n, k), facts=small(2), tolerance=CLOSE)


def test_few_tiles_share_out_a_long_sum() -> None:
    inputs = [random(16, 4096), random(64, 4096)]
    assert schedulers(lowered(linear_silu, inputs, small(16))) == ["matmul", "reduction"]
    check(linear_silu, *inputs, facts=small(16), tolerance=CLOSE)


def test_rows_are_reduced_a_tile_at_a_time() -> None:
    inputs = [random(130, 64), random(1024, 64)]
    found = lowered(squares_of_rows, inputs, small(2))
    assert schedulers(found) == ["matmul", "reduction"]
    assert "tl.sum(" in texts(found)[0]
    check(squares_of_rows, *inputs, facts=small(2), tolerance=CLOSE)


def test_columns_that_a_part_of_a_tile_holds_are_scaled_where_they_are() -> None:
    def scaled(fd: Any, x: Any, w: Any) -> Any:
        wide = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
        blocks = fd.ops.reshape(wide, [130, 8, 128])
        most = fd.ops.max(fd.ops.abs(blocks), [2], keepdim=True)
        return fd.ops.div(blocks, most), most

    inputs = [random(130, 64), random(1024, 64)]
    assert schedulers(lowered(scaled, inputs, small(2))) == ["matmul"]
    check(scaled, *inputs, facts=small(2), tolerance=CLOSE)


# --- code ----------------------------------------------------------------------------------


def test_what_descriptors_cannot_describe_is_fetched_by_addresses() -> None:
    buffer = torch.empty(4096 * 4096 + 1, dtype=torch.bfloat16, device="meta")
    shifted = buffer[1:].view(4096, 4096)
    text = texts(lowered(linear_silu, [shifted, meta(4096, 4096)]))[0]
    assert "descriptor" not in text
    odd = texts(lowered(linear_silu, [meta(4096, 4100), meta(4096, 4100)]))[0]
    assert "descriptor" not in odd


def much_behind(fd: Any, x: Any, w: Any, *rest: Any) -> Any:
    """Tensors of all widths read and written behind a product, random numbers drawn."""
    y = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
    kept = fd.ops.lt(fd.ops.uniform(0.0, 1.0, [8192, 4096]), 0.9)
    for other in rest:
        y = fd.ops.where(kept, fd.ops.add(y, other), 0.0)
    return y, kept, fd.ops.cast(y, BF16), fd.ops.cast(y, DataType.Double)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_is_behind_a_product_leaves_room_in_shared_memory(count: int, arch: str) -> None:
    kinds = [torch.float32, torch.bool, torch.bfloat16]
    rest = [torch.empty(8192, 4096, dtype=kinds[i], device="meta") for i in range(count)]
    inputs = [meta(8192, 4096), meta(4096, 4096), *rest]
    (report,) = record(much_behind, inputs).compile_for(arch, inputs)
    assert report.scheduler == "matmul"
    assert report.shared_bytes <= known(arch).shared_bytes_per_block
    assert report.spill_bytes == 0


@pytest.mark.parametrize("arch", [a for a in ARCHITECTURES if a != "cpu"])
@pytest.mark.parametrize("body", [linear_silu, squares_of_rows])
def test_kernels_compile_without_spills(body: Any, arch: str) -> None:
    inputs = [meta(8192, 4096), meta(4096, 4096)]
    fd = record(body, inputs)
    reports = fd.compile_for(arch, inputs)
    assert reports[0].scheduler == "matmul"
    assert all(report.spill_bytes == 0 for report in reports)


def test_hopper_multiplies_what_its_copy_engine_fetched() -> None:
    inputs = [meta(8192, 4096), meta(4096, 4096)]
    (report,) = record(linear_silu, inputs).compile_for("sm_90", inputs)
    assert "wgmma.mma_async" in report.asm["ptx"]
    assert "cp.async.bulk.tensor.2d.shared" in report.asm["ptx"]
    assert "cp.async.bulk.tensor.2d.global" in report.asm["ptx"]
