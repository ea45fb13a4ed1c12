"""Several tiles of a row: threads reduce what they have of all, and exchange that once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tritonfuser import DataType, FusionDefinition

BFLOAT16, FLOAT = torch.bfloat16, torch.float32


def norm(fd: Any, x: Any) -> Any:
    y = fd.ops.cast(x, DataType.Float)
    variance, mean = fd.ops.var_mean(y, [1], correction=0, keepdim=True)
    return fd.ops.mul(fd.ops.sub(y, mean), fd.ops.rsqrt(fd.ops.add(variance, 1e-5)))


def softmax(fd: Any, x: Any) -> Any:
    y = fd.ops.cast(x, DataType.Float)
    shifted = fd.ops.exp(fd.ops.sub(y, fd.ops.max(y, [1], keepdim=True)))
    return fd.ops.div(shifted, fd.ops.sum(shifted, [1], keepdim=True))


def squares(fd: Any, x: Any) -> Any:
    y = fd.ops.cast(x, DataType.Float)
    return fd.ops.mul(y, fd.ops.sum(fd.ops.mul(y, y), [1], keepdim=True))


def product(fd: Any, x: Any) -> Any:
    y = fd.ops.cast(x, DataType.Float)
    return fd.ops.mul(y, fd.ops.prod(y, [1], keepdim=True))


def definition(body: Any, x: torch.Tensor, out: DataType = DataType.BFloat16) -> FusionDefinition:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.cast(body(fd, fd.from_pytorch(x)), out))
    return fd


def with_tiles(fd: FusionDefinition, x: torch.Tensor, **fields: Any) -> dict[str, Any]:
    schedule = fd.schedule([x], arch="sm_90").to_dict()
    (segment,) = schedule["segments"]
    assert segment["scheduler"] == "inner_persistent"
    segment["params"] |= {"block_x": 1, "persistent": True, "tails": [], "align": 1, **fields}
    return schedule


def report_of(body: Any, columns: int, dtype: torch.dtype, out: DataType, **fields: Any) -> Any:
    x = torch.empty(4096, columns, dtype=dtype, device="meta")
    fd = definition(body, x, out)
    (report,) = fd.compile_for("sm_90", [x], schedule=with_tiles(fd, x, **fields))
    return report


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT])
@pytest.mark.parametrize("out", [DataType.BFloat16, DataType.Float])
@pytest.mark.parametrize("body", [norm, softmax, squares])
@pytest.mark.parametrize(
    ("columns", "tails", "warps"),
    [(5120, (1024,), 4), (3584, (1024, 512), 4), (6144, (2048,), 8), (1536, (512,), 2)],
)
def test_tiles_take_the_exchanges_of_one(columns, tails, warps, body, out, dtype):
    block = {5120: 4096, 3584: 2048, 6144: 4096, 1536: 1024}[columns]
    several = report_of(body, columns, dtype, out, block_r=block, tails=tails, num_warps=warps)
    one = report_of(body, 8192, dtype, out, block_r=8192, num_warps=warps)
    assert "by_thread(" in several.source and "by_thread(" not in one.source
    for instruction in ("bar.sync", "st.shared", "shfl.sync"):
        assert several.asm["ptx"].count(instruction) == one.asm["ptx"].count(instruction)


@pytest.mark.parametrize("body", [norm, softmax, squares, product])
@pytest.mark.parametrize("columns", [5120, 5000, 4097, 3584])
def test_numbers_are_those_of_torch(body, columns):
    x = torch.randn(3, columns).clamp(-3, 3)
    x[1, -1] = float("inf") if body is squares else -3.0
    if body is product:
        x = 1.0 + x / 1024
    fd = definition(body, x, DataType.Float)
    tails = {5120: (1024,), 5000: (512, 512), 4097: (16,), 3584: (1024, 512)}[columns]
    block = 2048 if columns == 3584 else 4096
    (found,) = fd.run([x], schedule=with_tiles(fd, x, block_r=block, tails=tails, num_warps=4))
    y = x.double()
    wanted = {
        norm: lambda: torch.nn.functional.layer_norm(y, [columns]),
        softmax: lambda: y.softmax(1),
        squares: lambda: y * (y * y).sum(1, keepdim=True),
        product: lambda: y * y.prod(1, keepdim=True),
    }[body]()
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-5)


def test_a_tile_that_not_all_threads_have_is_reduced_by_itself():
    text = report_of(
        norm, 4160, BFLOAT16, DataType.BFloat16, block_r=4096, tails=(64,), num_warps=4
    ).source
    assert "by_thread(" not in text and text.count("tl.sum(") == 4
