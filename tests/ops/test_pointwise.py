"""Each pointwise row, interpreted on each dtype it takes, against its oracle in float64."""

from __future__ import annotations

import math

import pytest
import torch

from tests.ops.pointwise_harness import (
    BY_NAME,
    FLOATS,
    ROWS,
    cases,
    interpret,
    kernel,
    operands,
    row_kernel,
    typing_of,
)
from tritonfuser import FusionDefinition
from tritonfuser.dtypes import DataType
from tritonfuser.ir import Const, Dim, TensorType
from tritonfuser.ops.builder import GraphBuilder

TOLERANCE = {
    torch.float64: 1e-13,
    torch.float32: 2e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}


def reference(name: str, dtype: DataType, inputs: list[torch.Tensor]) -> torch.Tensor:
    op = BY_NAME[name]
    if dtype in FLOATS and not op.form.accuracy.of_dtype:
        inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    return op.oracle(*inputs)


@pytest.mark.parametrize(("name", "dtype"), [c for c in cases() if c[0] != "cast"])
def test_each_row_computes_what_its_torch_function_does(name: str, dtype: DataType) -> None:
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


@pytest.mark.parametrize("dtype", [DataType.Double, DataType.Float, DataType.Int, DataType.Int32])
@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_constant_powers_are_products(dtype: DataType, exponent: int) -> None:
    op = BY_NAME["pow"]
    text = op.form.expression(dtype, exponent).format(lhs="x0", rhs="unused")
    assert "pow" not in text and "pow" in op.form.expression(dtype, 2.5)
    base = operands(op, dtype)[0]
    (found,) = interpret(kernel([f"r0 = {text}"], [dtype], [dtype], len(base)), [base])
    torch.testing.assert_close(found, op.oracle(base, exponent), equal_nan=True)


@pytest.mark.parametrize("dtype", [DataType.Half, DataType.Int32, DataType.Bool])
def test_clamp_without_a_bound_is_recorded_with_the_widest(dtype: DataType) -> None:
    builder = GraphBuilder()
    value = builder.add_input(TensorType((Dim(4),), dtype))
    out = builder.call("clamp", value, None, True)
    low, high = builder.nodes[0].args[1:]
    assert out.dtype is dtype and high == Const.of(True)
    values = torch.tensor([0, 1, 0, 1]).to(dtype.info.torch)
    assert torch.equal(BY_NAME["clamp"].oracle(values, low.value, None), values)


@pytest.mark.parametrize("far", [math.inf, 1e300, 2.0**63, 2**40])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_a_bound_beyond_an_integer_dtype_is_no_limit(dtype: torch.dtype, far: float) -> None:
    x = torch.tensor([-7, 1, 5], dtype=dtype)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        for low, high in ((0, far), (-far, 3), (None, far), (far, far), (-far, -far)):
            fd.add_output(fd.ops.clamp(t, low, high))
    limits = torch.iinfo(dtype)
    found = [out.tolist() for out in fd.validate([x])]
    assert found[:3] == [[0, 1, 5], [-7, 1, 3], [-7, 1, 5]]
    most, least = min(limits.max, int(min(far, 2**64))), max(limits.min, int(max(-far, -(2**64))))
    assert found[3:] == [[most] * 3, [least] * 3]


def test_a_definition_that_was_written_with_such_a_bound_is_read() -> None:
    """As older versions recorded it."""
    x = torch.tensor([-7, 1, 5], dtype=torch.int32)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.clamp(fd.from_pytorch(x), 0, 7))
    data = fd.to_dict()
    data["ops"][0]["args"]["max"] = {"float": 1e300, "dtype": "Double"}
    (found,) = FusionDefinition.from_dict(data).run([x])
    assert found.tolist() == [0, 1, 5]


@pytest.mark.parametrize(
    ("name", "operands", "expected", "dtype"),
    [
        ("reciprocal", (4,), 0.25, torch.float32),
        ("div", (-7, 2), -3, torch.int64),
        ("mod", (-7, 2), -1, torch.int64),
        ("remainder", (-7, 2), 1, torch.int64),
        ("div", (7, 0), -1, torch.int64),
        ("pow", (2, -1), 0, torch.int64),
        ("pow", (-1, -3), -1, torch.int64),
        ("add", (1, 2.5), 3.5, torch.float64),
        ("truediv", (1, 4), 0.25, torch.float32),
        ("logical_right_shift", (-1, 63), 1, torch.int64),
        ("logical_right_shift", (-1, 64), 0, torch.int64),
        ("bitwise_right_shift", (-8, 1), -4, torch.int64),
        ("round", (2.5,), 2.0, torch.float64),
        ("where", (True, 1, 2.5), 1.0, torch.float64),
        ("sign", (float("nan"),), 0.0, torch.float64),
    ],
)
def test_oracles_take_numbers(
    name: str, operands: tuple[float, ...], expected: float, dtype: torch.dtype
) -> None:
    found = BY_NAME[name].oracle(*operands)
    assert found.dtype is dtype and found.item() == expected


def test_names_are_unique_and_documented() -> None:
    assert len({op.name for op in ROWS}) == len(ROWS)
    for op in ROWS:
        assert op.doc.endswith(".") and len(op.doc) <= 90, op.name
