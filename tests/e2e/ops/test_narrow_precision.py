"""Ops of operands of four and eight bits, which torch or Blackwell GPUs alone compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.e2e.ops.library_calls import EIGHT, D, definition, drawn
from tritonfuser import FusionDefinition
from tritonfuser.errors import UnsupportedDeviceError
from tritonfuser.ops.library import narrow_torch
from tritonfuser.ops.registry import OPS
from tritonfuser.ops.table import Library


def narrow_calls(fd: Any) -> dict[str, Callable[[], Any]]:
    """One call of each row that needs a Blackwell GPU, and of others with operands that do."""
    x = fd.define_tensor([256, 64], dtype=D.BFloat16)
    four = fd.define_tensor([256, 32], dtype=D.Float4_e2m1fn_x2)
    stack = fd.define_tensor([2, 32, 48], dtype=D.Float4_e2m1fn_x2)
    scales = fd.define_tensor([256, 4], dtype=D.Float8_e4m3fn)
    more = fd.define_tensor([2, 128, 4], dtype=D.Float8_e4m3fn)
    ints = [fd.define_tensor([2], dtype=D.Int32) for _ in range(2)]
    sizes = fd.define_tensor([2, 3], dtype=D.Int32)
    alpha = fd.define_tensor([2], dtype=D.Float)
    flat = fd.define_tensor([32, 48], dtype=D.Float4_e2m1fn_x2)
    o = fd.ops
    return {
        "nv_block_quantize": lambda: o.nv_block_quantize(x),
        "nv_grouped_block_quantize": lambda: o.nv_grouped_block_quantize(x, *ints),
        "preprocess_grouped_matmul_input_sf": lambda: o.preprocess_grouped_matmul_input_sf(
            scales, *ints
        ),
        "cutlass_nvfp4_grouped_mm": lambda: o.cutlass_nvfp4_grouped_mm(
            four, stack, scales, more, alpha, sizes, *ints
        ),
        "scaled_mm": lambda: o.scaled_mm(four, flat, scales, scales)[0],
        "grouped_mm": lambda: o.grouped_mm(four, stack, ints[0], scales, more)[0],
    }


def example(value: Any) -> torch.Tensor:
    """Zeros of a dtype that torch cannot fill."""
    shape, dtype = list(value.tensor.sizes), value.dtype.info.torch
    if dtype.itemsize == 1:
        return torch.zeros(shape, dtype=torch.uint8).view(dtype)
    return torch.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    "name",
    [
        "nv_block_quantize",
        "nv_grouped_block_quantize",
        "preprocess_grouped_matmul_input_sf",
        "cutlass_nvfp4_grouped_mm",
        "scaled_mm",
        "grouped_mm",
    ],
)
def test_instructions_that_a_device_lacks(name: str) -> None:
    """Recorded, and refused where a run has no such device, by name and line."""
    with FusionDefinition() as fd:
        made = narrow_calls(fd)[name]()
        for out in made if isinstance(made, tuple) else (made,):
            fd.add_output(out)
    inputs = [example(value) for value in fd.fusion.ir.inputs]
    with pytest.raises(UnsupportedDeviceError, match=rf"(?s){name}: cpu.*sm_100.*test_narrow"):
        fd.run(inputs)
    with pytest.raises(UnsupportedDeviceError, match=rf"{name}: NVIDIA H200 \(sm_90\)"):
        fd.segments(inputs, arch="sm_90")
    (segment,) = fd.segments(inputs, arch="sm_100").segments
    assert segment.scheduler == "expr_eval"


QUANTIZED: dict[str, dict[str, Any]] = {
    "four bits": {
        "dtype": D.Float4_e2m1fn,
        "output_block_scale_size": 16,
        "output_block_scale_dtype": D.Float8_e4m3fn,
    },
    "eight bits": {
        "dtype": D.Float8_e4m3fn,
        "output_block_scale_size": 32,
        "output_block_scale_dtype": D.Float8_e8m0fnu,
    },
}


@pytest.mark.parametrize("gamma", [False, True])
@pytest.mark.parametrize("kind", QUANTIZED)
def test_products_quantized_on_the_way_out(kind: str, gamma: bool) -> None:
    """A Blackwell GPU gives them: elsewhere they are refused by name; by torch they are right."""
    options = {**QUANTIZED[kind], "output_gamma": gamma}
    a, b, one = drawn(8, 32), drawn(32, 64), torch.ones(1, 1)

    def record(fd: Any, *operands: Any) -> list[Any]:
        out, blocks, overall = fd.ops.scaled_mm(*operands, **options)
        assert (overall is not None) is gamma
        return [out, blocks, overall] if gamma else [out, blocks]

    inputs = [a, b, one, one]
    fd = definition(record, inputs)
    with pytest.raises(UnsupportedDeviceError, match=r"(?s)scaled_mm: cpu.*sm_100.*test_narrow"):
        fd.run(inputs)
    with pytest.raises(UnsupportedDeviceError, match=r"scaled_mm: NVIDIA H200 \(sm_90\)"):
        fd.segments(inputs, arch="sm_90")
    (segment,) = fd.segments(inputs, arch="sm_100").segments
    found = OPS["scaled_mm"].oracle(*inputs, **options)
    assert [(tuple(x.shape), x.dtype) for x in found] == [
        (v.tensor.sizes, v.dtype.info.torch) for v in segment.outputs
    ]
    size = options["output_block_scale_size"]
    elements = narrow_torch.decode(found[0]) if kind == "four bits" else found[0].float()
    back = elements * found[1].float().repeat_interleave(size, 1) * (found[2] if gamma else 1.0)
    assert float((back - a @ b).norm() / (a @ b).norm()) < (0.15 if kind == "four bits" else 0.04)
    if gamma and kind == "four bits":
        assert found[1].float().amax() == 448.0


def test_groups_quantized_on_the_way_out() -> None:
    a, b, offsets = drawn(8, 16), drawn(2, 16, 32), torch.tensor([3, 8], dtype=torch.int32)
    options = QUANTIZED["four bits"]
    one = torch.ones(1, 1)
    elements, scales = OPS["grouped_mm"].oracle(a, b, offsets, one, one.unsqueeze(0), **options)
    back = narrow_torch.decode(elements) * scales.float().repeat_interleave(16, 1)
    wanted = torch.cat([a[:3] @ b[0], a[3:] @ b[1]])
    assert float((back - wanted).norm() / wanted.norm()) < 0.15
    fd = definition(
        lambda fd, *xs: fd.ops.grouped_mm(*xs, **options)[:2], [a, b, offsets, one, one[None]]
    )
    with pytest.raises(UnsupportedDeviceError, match="grouped_mm: cpu"):
        fd.run([a, b, offsets, one, one[None]])


def test_four_bits() -> None:
    """The nearest of eight sizes; ties go to the even code."""
    x = torch.tensor([0.2, 0.25, 0.3, 0.75, 1.25, 1.75, 2.5, -3.5, 5.0, 5.1, 100.0, -0.0])
    wanted = [0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 2.0, -4.0, 4.0, 6.0, 6.0, -0.0]
    found = narrow_torch.decode(narrow_torch.encode(x))
    assert torch.equal(found, torch.tensor(wanted))


@pytest.mark.parametrize("overall", [None, 3.0])
def test_quantized_blocks(overall: float | None) -> None:
    x = drawn(6, 64) * torch.logspace(-1, 2, 6).unsqueeze(1)
    factor = None if overall is None else torch.tensor([overall])
    elements, scales = OPS["nv_block_quantize"].oracle(x, factor)
    assert (elements.shape, scales.shape) == ((6, 32), (6, 4))
    back = narrow_torch.decode(elements) * scales.float().repeat_interleave(16, 1)
    error = (back / (overall or 1.0) - x).abs().view(6, 4, 16).amax(-1)
    assert bool((error <= x.abs().view(6, 4, 16).amax(-1) / 5).all())


def test_quantized_to_eight_bits() -> None:
    x = drawn(4, 64) * torch.logspace(-3, 3, 4).unsqueeze(1)
    x[0, :32] = 0
    elements, scales = OPS["nv_block_quantize"].oracle(x, block_size=32, dtype=D.Float8_e4m3fn)
    assert (elements.dtype, scales.dtype) == (EIGHT, torch.float8_e8m0fnu)
    back = elements.float() * scales.float().repeat_interleave(32, 1)
    torch.testing.assert_close(back, x, rtol=0.07, atol=1e-5)


def test_a_product_of_groups_of_four_bits() -> None:
    """Quantized, put in tiles, multiplied: near the product of the floats."""
    counts, width, columns = [100, 156], 64, 48
    x, w = drawn(256, width), drawn(2, columns, width, seed=1)
    starts = torch.tensor([0, 100], dtype=torch.int32)
    tiles = torch.tensor([0, 128], dtype=torch.int32)
    four, scales = OPS["nv_grouped_block_quantize"].oracle(x, starts, tiles)
    apart = OPS["nv_block_quantize"].oracle(x)
    assert scales.shape == (256 + 2 * 127, 4)
    again = OPS["preprocess_grouped_matmul_input_sf"].oracle(apart[1], starts, tiles)
    assert torch.equal(again.view(torch.uint8), scales.view(torch.uint8))
    quantized = [OPS["nv_block_quantize"].oracle(m, None, True) for m in w]
    weights = torch.stack([q.view(torch.uint8) for q, _ in quantized]).view(four.dtype)
    of_weights = torch.stack([s.view(torch.uint8) for _, s in quantized]).view(scales.dtype)
    sizes = torch.tensor([[n, columns, width] for n in counts], dtype=torch.int32)
    alpha = torch.tensor([1.0, 0.5])
    turned = weights.view(torch.uint8).transpose(1, 2).view(four.dtype)
    found = OPS["cutlass_nvfp4_grouped_mm"].oracle(
        four, turned, scales, of_weights, alpha, sizes, starts, tiles, dtype=D.Float
    )
    wanted = torch.cat([x[:100] @ w[0].t(), 0.5 * x[100:] @ w[1].t()])
    assert float((found - wanted).norm() / wanted.norm()) < 0.2


def test_every_library_row_is_here() -> None:
    here = {"topk", "argsort", "sdpfa_fwd", "sdpfa_bwd", "matmul", "linear"}
    here.add("index_put_accumulate")
    with FusionDefinition() as fd:
        narrow = set(narrow_calls(fd))
    assert {n for n, op in OPS.items() if isinstance(op.form, Library)} == {*here, *narrow}
