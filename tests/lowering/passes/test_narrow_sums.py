"""Sums of padded tensors are exact in their dtype, and loaded in it where a kernel stores them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import SLOW, check, lowered, record
from tritonfuser import DataType
from tritonfuser.lowering.passes.concatenations.narrow_sums import narrow_padded_sums

ROWS, PART = 6, 8


def gates(fd: Any, *parts: Any, gap: int = 0) -> Any:
    """The gradients of gates side by side: each padded by itself, then added up in Float."""
    width, total = len(parts) * PART - gap * (len(parts) - 1), None
    for place, part in enumerate(parts):
        start = place * (PART - gap)
        padded = fd.ops.pad(part, [start, width - start - PART])
        wide = fd.ops.cast(padded, DataType.Float)
        total = wide if total is None else fd.ops.add(total, wide)
    return total


def norm_backward(fd: Any, *parts: Any) -> Any:
    total = gates(fd, *parts)
    return fd.ops.cast(total, DataType.BFloat16), fd.ops.sum(total, [1]), fd.ops.sum(total, [0])


def given(rows: int = ROWS, dtype: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    return [noise(rows, PART, seed=seed).to(dtype) for seed in range(4)]


def narrowed(body: Any, inputs: list[torch.Tensor]) -> bool:
    ir = lowered(record(body, inputs), inputs).segmented.fusion
    return narrow_padded_sums(ir) is ir and any(
        node.op == "cast" and node.out.dtype is DataType.Float and maker.op == "cast"
        for node in ir.nodes
        for maker in [ir.producers.get(value) for value in node.operands()]
        if maker is not None
    )


def test_all_users_cast_the_stored_sum() -> None:
    assert narrowed(norm_backward, given())


@pytest.mark.parametrize("facts", [SLOW, None], ids=["slow", "fast"])
def test_values_are_those_of_torch(facts: Any) -> None:
    check(norm_backward, *given(), **({} if facts is None else {"facts": facts}))


def test_numbers_that_are_not_finite() -> None:
    inputs = given()
    inputs[0][1, 2], inputs[1][2, 3], inputs[2][3], inputs[3][4, 4] = (
        torch.nan,
        torch.inf,
        -0.0,
        -torch.inf,
    )
    check(norm_backward, *inputs)


def overlapping(fd: Any, *parts: Any) -> Any:
    """Neighbours have two columns in common: their sum is rounded."""
    total = gates(fd, *parts, gap=2)
    return fd.ops.cast(total, DataType.BFloat16), fd.ops.sum(total, [1])


def filled(fd: Any, x: Any, y: Any, *_: Any) -> Any:
    """What is beside one of them is no zero."""
    left = fd.ops.cast(fd.ops.pad(x, [0, PART], 1.0), DataType.Float)
    right = fd.ops.cast(fd.ops.pad(y, [PART, 0]), DataType.Float)
    total = fd.ops.add(left, right)
    return fd.ops.cast(total, DataType.BFloat16), fd.ops.sum(total, [1])


def of_wide_numbers(fd: Any, x: Any, y: Any, *_: Any) -> Any:
    wide = [fd.ops.mul(fd.ops.cast(z, DataType.Float), 1.1) for z in (x, y)]
    total = fd.ops.add(fd.ops.pad(wide[0], [0, PART]), fd.ops.pad(wide[1], [PART, 0]))
    return fd.ops.cast(total, DataType.BFloat16), fd.ops.sum(total, [1])


def not_stored(fd: Any, *parts: Any) -> Any:
    return fd.ops.sum(gates(fd, *parts), [1])


@pytest.mark.parametrize("body", [overlapping, filled, of_wide_numbers, not_stored])
def test_what_is_not_exact_or_not_stored_stays(body: Any) -> None:
    assert not narrowed(body, given())
    check(body, *given())
