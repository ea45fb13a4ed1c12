"""Matrix products on a GPU's facts: which become kernels, cut how, and what code that is."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from tests.lowering.harness import H200, check, lowered, record, schedulers, small, texts
from tritonfuser import DataType
from tritonfuser.cache.keys.signature import signature
from tritonfuser.devices import ARCHITECTURES, known
from tritonfuser.errors import ParamsError
from tritonfuser.heuristics.params import MatmulParams
from tritonfuser.lowering.backend.kernel_report import report
from tritonfuser.lowering.build import KernelReport
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.product_policy import ProductPolicy
from tritonfuser.lowering.run_options import RunOptions

BF16, FLOAT = DataType.BFloat16, DataType.Float
CLOSE = 3e-2
ALL = ProductPolicy.KERNELS


def random(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).bfloat16()


def meta(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16, device="meta")


def reports(body: Any, inputs: list[torch.Tensor], arch: str) -> list[KernelReport]:
    """The kernels, all products among them, compiled."""
    found = lowered(body, inputs, known(arch), products=ALL)
    return [
        report(source, piece.scheduler, arch, tuple(arg.is_tensor for arg in source.args))
        for piece, source in zip(found.segmented.segments, found.sources, strict=True)
        if source is not None
    ]


def linear_silu(fd: Any, x: Any, w: Any) -> Any:
    wide = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
    return fd.ops.cast(fd.ops.mul(wide, fd.ops.sigmoid(wide)), BF16)


def linear_heavy(fd: Any, x: Any, w: Any) -> Any:
    """Some thirty ops behind a product."""
    y = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
    for _ in range(10):
        y = fd.ops.mul(fd.ops.add(fd.ops.sin(y), 1.0), 0.5)
    return fd.ops.cast(y, BF16)


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
        (linear_silu, (512, 1024, 512), ["matmul"]),
        # Large products hide nothing of what follows them, in programs that fill a processor.
        (linear_heavy, (2048, 4096, 1024), ["expr_eval", "pointwise"]),
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


def test_an_operand_that_is_stored_anyway_is_not_computed_twice() -> None:
    def kept(fd: Any, x: Any, w: Any) -> Any:
        left = fd.ops.relu(x)
        return fd.ops.linear(left, w), left

    found = lowered(kept, [meta(4096, 1024), meta(32, 1024)])
    assert schedulers(found) == ["pointwise", "expr_eval"]


def test_all_parts_of_a_joined_operand_count_as_computed_before() -> None:
    def joined(fd: Any, x: Any, v: Any, w: Any) -> Any:
        both = fd.ops.cat([x, fd.ops.cast(fd.ops.exp(v), BF16)], 0)
        return fd.ops.relu(fd.ops.linear(both, w))

    inputs = [meta(2048, 1024), meta(2048, 1024), meta(8192, 1024)]
    assert schedulers(lowered(joined, inputs)) == ["pointwise", "matmul"]


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
    asked = lower(fd.fusion.ir, spec, facts, RunOptions(products=ALL))
    assert schedulers(asked) == ["matmul"]


# --- numbers, as a GPU would compute them --------------------------------------------------


@pytest.mark.parametrize("sizes", [(300, 520, 136), (130, 512, 64), (257, 1024, 72)])
def test_programs_that_walk_over_tiles_fetched_by_descriptors(sizes: tuple[int, ...]) -> None:
    m, n, k = sizes
    found = lowered(linear_silu, [random(m, k), random(n, k)], small(2), products=ALL)
    (params,) = (s.params for s in found.segmented.segments)
    assert isinstance(params, MatmulParams)
    assert params.descriptors and params.programs == 2
    assert "tl.make_tensor_descriptor" in texts(found)[0]
    check(linear_silu, random(m, k), random(n, k), facts=small(2), tolerance=CLOSE, products=ALL)


def test_few_tiles_share_out_a_long_sum() -> None:
    inputs = [random(16, 4096), random(64, 4096)]
    assert schedulers(lowered(linear_silu, inputs, small(16), products=ALL)) == [
        "matmul",
        "reduction",
    ]
    check(linear_silu, *inputs, facts=small(16), tolerance=CLOSE, products=ALL)


def test_rows_are_reduced_a_tile_at_a_time() -> None:
    inputs = [random(130, 64), random(1024, 64)]
    found = lowered(squares_of_rows, inputs, small(2), products=ALL)
    assert schedulers(found) == ["matmul", "reduction"]
    assert "tl.sum(" in texts(found)[0]
    check(squares_of_rows, *inputs, facts=small(2), tolerance=CLOSE, products=ALL)


def test_columns_that_a_part_of_a_tile_holds_are_scaled_where_they_are() -> None:
    def scaled(fd: Any, x: Any, w: Any) -> Any:
        wide = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
        blocks = fd.ops.reshape(wide, [130, 8, 128])
        most = fd.ops.max(fd.ops.abs(blocks), [2], keepdim=True)
        return fd.ops.div(blocks, most), most

    inputs = [random(130, 64), random(1024, 64)]
    assert schedulers(lowered(scaled, inputs, small(2), products=ALL)) == ["matmul"]
    check(scaled, *inputs, facts=small(2), tolerance=CLOSE, products=ALL)


def test_params_must_keep_whole_groups_of_columns_in_a_tile() -> None:
    def blocks(fd: Any, x: Any, w: Any) -> Any:
        wide = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
        return fd.ops.sum(fd.ops.reshape(wide, [130, 3, 64]), [2])

    inputs = [random(130, 64), random(192, 64)]
    check(blocks, *inputs, facts=small(16), tolerance=CLOSE, block_n=64, parts=1)
    with pytest.raises(ParamsError, match="reduces 64 columns at a time") as raised:
        lowered(blocks, inputs, small(16), products=ALL, block_n=128, parts=2)
    assert "parts=2" not in str(raised.value.hint)


# --- code ----------------------------------------------------------------------------------


def test_what_descriptors_cannot_describe_is_fetched_by_addresses() -> None:
    buffer = torch.empty(4096 * 4096 + 1, dtype=torch.bfloat16, device="meta")
    shifted = buffer[1:].view(4096, 4096)
    text = texts(lowered(linear_silu, [shifted, meta(4096, 4096)], products=ALL))[0]
    assert "descriptor" not in text
    odd = texts(lowered(linear_silu, [meta(4096, 4100), meta(4096, 4100)], products=ALL))[0]
    assert "descriptor" not in odd


def much_behind(fd: Any, x: Any, w: Any, *rest: Any) -> Any:
    """Tensors of all widths read and written behind a product, random numbers drawn."""
    y = fd.ops.cast(fd.ops.linear(x, w), FLOAT)
    kept = fd.ops.lt(fd.ops.uniform(0.0, 1.0, [8192, 4096]), 0.9)
    for other in rest:
        y = fd.ops.where(kept, fd.ops.add(y, other), 0.0)
    return y, kept, fd.ops.cast(y, BF16), fd.ops.cast(y, DataType.Double)


@pytest.mark.covering
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_is_behind_a_product_leaves_room_in_shared_memory(count: int, arch: str) -> None:
    kinds = [torch.float32, torch.bool, torch.bfloat16]
    rest = [torch.empty(8192, 4096, dtype=kinds[i], device="meta") for i in range(count)]
    inputs = [meta(8192, 4096), meta(4096, 4096), *rest]
    (report,) = reports(much_behind, inputs, arch)
    assert report.scheduler == "matmul"
    assert report.shared_bytes <= known(arch).shared_bytes_per_block
    assert report.spill_bytes == 0


def much_before(fd: Any, x: Any, w: Any, scale: Any) -> Any:
    """Operands of wider tensors, one of them of two."""
    left = fd.ops.cast(fd.ops.mul(fd.ops.cast(x, FLOAT), scale), BF16)
    return fd.ops.relu(fd.ops.linear(left, fd.ops.cast(w, BF16)))


@pytest.mark.parametrize("arch", [a for a in ARCHITECTURES if a != "cpu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_before_a_product_has_room_in_shared_memory(dtype: torch.dtype, arch: str) -> None:
    inputs = [
        torch.empty(size, dtype=dtype, device="meta")
        for size in ((8192, 4096), (4096, 4096), (8192, 4096))
    ]
    fd = record(much_before, inputs)
    spec = signature(fd.fusion.ir, inputs, torch.device("cpu"))
    found = lower(fd.fusion.ir, spec, known(arch), RunOptions(products=ALL))
    (source,) = found.sources
    assert source is not None
    made = report(source, "matmul", arch, (True,) * len(source.args))
    assert made.shared_bytes <= known(arch).shared_bytes_per_block


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_batches_beyond_32_bit_positions(arch: str) -> None:
    def added(fd: Any, x: Any, w: Any, rest: Any) -> Any:
        return fd.ops.add(fd.ops.matmul(x, w), rest)

    inputs = [meta(33, 8192, 8192)] * 3
    fd = record(added, inputs)
    spec = signature(fd.fusion.ir, inputs, torch.device("cpu"))
    (source,) = lower(fd.fusion.ir, spec, known(arch), RunOptions(products=ALL)).sources
    assert source is not None
    assert re.search(r"z = \(tile // \d+\)\.to\(tl\.int64\)", source.text)
    report(source, "matmul", arch, (True,) * len(source.args))


def test_numbers_of_column_blocks_are_64_bits_where_positions_are() -> None:
    def heads(fd: Any, x: Any, w: Any) -> Any:
        blocks = fd.ops.reshape(fd.ops.cast(fd.ops.matmul(x, w), FLOAT), [65536, 512, 128])
        scaled = fd.ops.div(blocks, fd.ops.max(blocks, [2], keepdim=True))
        return fd.ops.permute(fd.ops.cast(scaled, BF16), [1, 0, 2])

    (text,) = texts(lowered(heads, [meta(65536, 4096), meta(4096, 65536)], products=ALL))
    assert "w = (n_start // 128).to(tl.int64)" in text


@pytest.mark.parametrize("arch", [a for a in ARCHITECTURES if a != "cpu"])
@pytest.mark.parametrize("body", [linear_silu, squares_of_rows])
def test_kernels_compile_without_spills(body: Any, arch: str) -> None:
    inputs = [meta(8192, 4096), meta(4096, 4096)]
    found = reports(body, inputs, arch)
    assert found[0].scheduler == "matmul"
    assert all(report.spill_bytes == 0 for report in found)


def test_hopper_multiplies_what_its_copy_engine_fetched() -> None:
    inputs = [meta(8192, 4096), meta(4096, 4096)]
    (report,) = reports(linear_silu, inputs, "sm_90")
    assert "wgmma.mma_async" in report.asm["ptx"]
    assert "cp.async.bulk.tensor.2d.shared" in report.asm["ptx"]
    assert "cp.async.bulk.tensor.2d.global" in report.asm["ptx"]
