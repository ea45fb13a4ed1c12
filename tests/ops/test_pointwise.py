"""Each pointwise row, interpreted on each dtype it takes, against its oracle in float64."""

from __future__ import annotations

import pytest
import torch

from tests.ops.pointwise_harness import (
    BY_NAME,
    FLOATS,
    cases,
    interpret,
    operands,
    row_kernel,
    typing_of,
)
from tritonfuser.dtypes import DataType
from tritonfuser.ops.pointwise import ROWS

TOLERANCE = {
    torch.float64: 1e-13,
    torch.float32: 2e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}
_UNROUNDED = frozenset({"nextafter"})
"""Ops whose result says something about the dtype itself: no float64 reference."""


def reference(name: str, dtype: DataType, inputs: list[torch.Tensor]) -> torch.Tensor:
    if dtype in FLOATS and name not in _UNROUNDED:
        inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    return BY_NAME[name].oracle(*inputs)


@pytest.mark.parametrize(("name", "dtype"), [c for c in cases() if c[0] != "cast"])
def test_row(name: str, dtype: DataType) -> None:
    op = BY_NAME[name]
    inputs = operands(op, dtype)
    (found,) = interpret(row_kernel(op, dtype, len(inputs[0])), inputs)
    typing = typing_of(op, dtype)
    assert typing is not None
    expected = reference(name, dtype, inputs).to(typing.result.info.torch)
    limit = TOLERANCE.get(found.dtype, 0)
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit / 10, equal_nan=True)
    zero = (found == 0) & (expected == 0)
    assert torch.equal(found[zero].signbit(), expected[zero].signbit()), "0.0 is not -0.0"


def test_names_are_unique_and_documented() -> None:
    assert len({op.name for op in ROWS}) == len(ROWS)
    for op in ROWS:
        assert op.doc.endswith(".") and len(op.doc) <= 90, op.name
