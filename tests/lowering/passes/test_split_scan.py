"""Scans in parts: when they are split, and that the parts make the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tritonfuser import DataType, FusionDefinition, ParamsError, Schedule
from tritonfuser.frontend.inspect.oracle import Evaluation

NEAR = {torch.bfloat16: 2e-2, torch.float32: 5e-3, torch.float64: 1e-9}


def scanned(op: str, x: torch.Tensor, dim: int) -> FusionDefinition:
    with FusionDefinition() as fd:
        fd.add_output(getattr(fd.ops, op)(fd.from_pytorch(x), dim))
    return fd


def drawn(op: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if not dtype.is_floating_point:
        return torch.randint(-1, 2, shape, dtype=dtype)
    x = torch.randn(shape)
    if op == "cumprod":
        x = 1 + x / x.numel()
    x.view(-1)[-3:] = torch.tensor([float("inf"), float("nan"), -0.0])
    return x.to(dtype)


@pytest.mark.covering
@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummin", "cummax"])
@pytest.mark.parametrize(
    ("dtype", "shape", "dim"),
    [
        (torch.bfloat16, (1 << 18,), 0),
        (torch.float32, (2, 80001), 1),
        (torch.float64, (20000, 8), 0),
        (torch.int64, (20001, 7), 0),
        (torch.int32, (1 << 17,), 0),
    ],
)
def test_parts_are_the_whole(op: str, dtype: torch.dtype, shape: tuple[int, ...], dim: int) -> None:
    x = drawn(op, shape, dtype)
    fd = scanned(op, x, dim)
    given = fd.schedule([x], arch="sm_90")
    assert len(given.rewrites.splits) == 1
    (found,) = fd.run([x], schedule=Schedule.from_dict(given.to_dict()))
    wide = x.double() if dtype.is_floating_point else x
    expected = getattr(torch, op)(wide, dim)
    expected = expected if isinstance(expected, torch.Tensor) else expected.values
    near = NEAR.get(dtype, 0.0)
    assert found.dtype is dtype
    rounded = expected.to(dtype).to(expected.dtype)
    torch.testing.assert_close(
        found.to(expected.dtype), rounded, rtol=near, atol=near, equal_nan=True
    )


def parts_of(shape: tuple[int, ...], dim: int) -> list[int]:
    x = torch.empty(shape, device="meta")
    splits = scanned("cumsum", x, dim).schedule([x], arch="sm_90").rewrites.splits
    return [split.parts for split in splits]


def test_rows_that_fill_the_device_are_scanned_in_one_step() -> None:
    assert parts_of((8192, 4096), 1) == []
    assert parts_of((200, 1 << 18), 1) == []
    assert parts_of((1000, 100_000), 0) == []
    assert parts_of((64,), 0) == []


def test_few_long_rows_are_scanned_in_parts() -> None:
    (parts,) = parts_of((1 << 22,), 0)
    assert parts == 2048  # of 2048 elements
    (parts,) = parts_of((8192, 64), 0)
    assert 8192 % parts == 0
    assert parts * 64 > 132
    (parts,) = parts_of((4, 999_983), 1)
    assert 1 < parts < 2 * 999_983 / 2048


def test_small_scans_are_done_in_parts_where_one_program_takes_longer_than_two_launches() -> None:
    (parts,) = parts_of((4096, 16), 0)  # as of the tokens of a router
    assert parts * 256 == 4096
    assert len(parts_of((65536,), 0)) == 1
    assert parts_of((8192,), 0) == []
    assert parts_of((256, 8), 0) == []


def test_a_part_is_added_up_where_it_is_scanned() -> None:
    """The operand is read once, and what lies before a part is added in one more kernel."""
    x = torch.empty(1 << 22, device="meta")
    fd = scanned("cumsum", x, 0)
    cut = fd.segments([x], arch="sm_90")
    assert [piece.scheduler for piece in cut.segments] == ["scan", "scan", "pointwise"]
    assert len(cut.segments[0].outputs) == 2


DEEPER = {
    "sum of it": lambda ops, x: [ops.sum(ops.cumsum(x, 0), [0])],
    "scan of it": lambda ops, x: [ops.cummax(ops.cumsum(x, 0), 0)],
    "it and its maximum": lambda ops, x: [(y := ops.cumsum(x, 0)), ops.max(y, [0])],
    "of a mean": lambda ops, x: [
        ops.cumsum(ops.sub(x, ops.broadcast(ops.sum(x, [0]), [True, False])), 0)
    ],
    "several": lambda ops, x: [ops.cumsum(x, 0), ops.cumprod(x, 0), ops.cumsum(x, 1)],
}


@pytest.mark.parametrize("record", DEEPER.values(), ids=list(DEEPER))
def test_what_depends_on_a_scan_leaves_it_in_parts(record: Callable[..., list[Any]]) -> None:
    x = 1 + torch.randn(80000, 3) / 80000
    with FusionDefinition() as fd:
        for out in record(fd.ops, fd.from_pytorch(x)):
            fd.add_output(out)
    given = fd.schedule([x], arch="sm_90")
    assert given.rewrites.splits
    doubles = Evaluation(fd.fusion.ir, [x], double=True).outputs
    for found, expected in zip(fd.run([x], schedule=given), doubles, strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("parts", [1, 0, 151, 300, 400, [2]])
def test_parts_that_no_row_has_are_refused(parts: object) -> None:
    x = torch.randn(1, 300)
    fd = scanned("cumsum", x, 1)
    given = fd.schedule([x], arch="sm_90").to_dict()
    given["splits"] = [{"value": "tv1", "parts": parts}]
    with pytest.raises(ParamsError, match=r"splits\[0\].parts"):
        fd.run([x], schedule=given)


def test_a_schedule_of_open_sizes_has_parts() -> None:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.cumsum(fd.define_tensor([-1, -1], dtype=DataType.Float), 1))
    runs = [[torch.empty(1, n, device="meta")] for n in (300_007, 301_000, 290_001)]
    given = fd.schedule(runs[0], arch="sm_90", varying=runs[1:])
    assert len(given.rewrites.splits) == 1
    for n in (300_999, 1003, 301):
        x = torch.randn(1, n)
        (found,) = fd.run([x], schedule=given)
        torch.testing.assert_close(found.double(), x.double().cumsum(1), rtol=1e-3, atol=1e-3)
