"""Dtypes and integers of programs written for nvFuser: what promotes, what is kept, what wraps."""

from __future__ import annotations

import functools

import pytest
import torch

from tests.compat.programs import equal, noise, ran
from tritonfuser.compat.nvfuser_direct import DataType
from tritonfuser.ops.registry import OPS

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType
NARROW = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
ROW = torch.tensor([1.5, -7.0, 3.0])

FLOAT_UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "exp2", "expm1",
    "erf", "erfc", "erfinv", "erfcinv", "lgamma", "log", "log10", "log1p", "log2", "reciprocal",
    "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
KEEPING = (
    "relu", "ceil", "floor", "round", "trunc", "frac", "silu", "abs", "sign", "set", "segment_set",
)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.int64, torch.float16])
def test_float_functions_give_float(dtype):
    x = torch.tensor([1, 0, 1]).to(dtype)
    found = ran(lambda ops, t: [getattr(ops, name)(t) for name in FLOAT_UNARY], x)
    for name, one in zip(FLOAT_UNARY, found, strict=True):
        equal(one, OPS[name].oracle(x.double()).float(), within=2e-6)


@pytest.mark.parametrize("dtype", NARROW)
def test_arithmetic_on_narrow_floats_gives_float(dtype):
    x = ROW.to(dtype)
    calls = {
        "add": lambda ops, t: ops.add(t, t),
        "mul": lambda ops, t: ops.mul(t, 2.0),
        "neg": lambda ops, t: ops.neg(t),
        "sum": lambda ops, t: ops.sum(ops.add(t, t)),
    }
    for found in ran(lambda ops, t: [call(ops, t) for call in calls.values()], x):
        assert found.dtype is torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.bool])
def test_ops_that_keep_the_dtype(dtype):
    x = ROW.to(dtype)
    found = ran(lambda ops, t: [getattr(ops, name)(t) for name in KEEPING], x)
    assert [one.dtype for one in found] == [dtype] * len(KEEPING)
    kept = ran(lambda ops, t, c: [ops.where(c, t, t), ops.cumsum(t, 0), ops.max(t, 0)], x, x > 0)
    assert [one.dtype for one in kept] == [dtype] * 3


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.int64])
def test_an_exact_tensor_with_a_python_float_is_double(dtype):
    x = torch.tensor([1, 0, 1]).to(dtype)
    for found in ran(lambda ops, t, s: [ops.add(t, 0.1), ops.mul(s, t), ops.sub(2.5, t)], x, 0.1):
        assert found.dtype is torch.float64
    assert ran(lambda ops, t: ops.add(t, 0.1), x)[0].item() == x[0].item() + 0.1


def test_division_and_angles_of_integers_are_float():
    x = torch.tensor([3, -4, 5])
    for found in ran(lambda ops, t: [ops.truediv(t, 2), ops.atan2(t, t), ops.reciprocal(t)], x):
        assert found.dtype is torch.float32


def zero_dim(dtype):
    return torch.tensor(2.5).to(dtype)


@pytest.mark.parametrize(
    ("operands", "dtype"),
    [
        # 0-dim tensors are weak beside others...
        ((ROW, zero_dim(torch.float64)), torch.float32),
        ((ROW.half(), zero_dim(torch.float32)), torch.float32),
        ((ROW.long(), zero_dim(torch.float32)), torch.float32),
        ((ROW.long(), zero_dim(torch.int32)), torch.int64),
        # ...but above numbers
        ((zero_dim(torch.float32), 1.0), torch.float32),
        ((zero_dim(torch.float16), 1.0), torch.float32),
        ((zero_dim(torch.int32), 1), torch.int32),
        ((zero_dim(torch.int64), 1.0), torch.float64),
        ((zero_dim(torch.float32), zero_dim(torch.float64)), torch.float64),
        ((ROW.long(), zero_dim(torch.float32), 1.0), torch.float32),
    ],
)
def test_zero_dim_tensors_are_weak(operands, dtype):
    found = ran(lambda ops, *given: functools.reduce(ops.add, given), *operands)
    wanted = sum(x.double() if isinstance(x, torch.Tensor) else x for x in operands)
    equal(found, wanted.to(dtype), within=1e-6)


def test_what_a_full_reduction_left_is_not_weak():
    y = noise(4, dtype=torch.float64)
    calls = {
        "sum": (lambda ops, t: ops.sum(t), torch.float64),
        "max": (lambda ops, t: ops.max(t, [0]), torch.float64),
        "squeeze": (lambda ops, t: ops.squeeze(ops.slice(t, [0], [1]), [0]), torch.float32),
        "full": (lambda ops, t: ops.full([], 2.0, D.Double), torch.float32),
    }
    found = ran(lambda ops, t, u: [ops.add(call(ops, u), t) for call, _ in calls.values()], ROW, y)
    assert [one.dtype for one in found] == [dtype for _, dtype in calls.values()]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1.5, torch.float64), (3, torch.int64), (True, torch.bool), (1j, torch.complex128)],
)
def test_where_of_two_scalars_is_of_their_dtype(value, dtype):
    condition = torch.tensor([True, False])
    numbers, inputs = ran(
        lambda ops, c, s: [ops.where(c, value, value), ops.where(c, s, value)], condition, value
    )
    equal(numbers, torch.tensor([value, value], dtype=dtype))
    equal(inputs, numbers)


def test_comparisons_promote_first():
    """In int32, 2**31 - 1 is not 2**31; in Float it is."""
    x = torch.tensor([2**31 - 1], dtype=torch.int32)
    calls = [
        lambda ops, t: ops.lt(t, 2.0**31),
        lambda ops, t: ops.eq(t, ops.full([1], 2.0**31, D.Float)),
        lambda ops, t: ops.eq(ops.cast(t, D.Int), 2**31),
        lambda ops, t: ops.gt(t, 0.5),
    ]
    found = ran(lambda ops, t: [call(ops, t) for call in calls], x)
    assert [one.item() for one in found] == [True, True, False, True]


def test_a_number_of_the_same_class_never_widens():
    calls = {
        torch.float32: (ROW, 1e-3),
        torch.int32: (ROW.int(), 2**20),
        torch.float64: (ROW.double(), 1.0),
        torch.bool: (ROW > 0, True),
    }
    for dtype, (x, number) in calls.items():
        assert ran(lambda ops, t, n=number: ops.mul(t, n), x).dtype is dtype


def test_scalars_among_themselves_follow_the_same_table():
    def call(ops, x, i, f):
        assert ops.nextafter(ops.cast(i, D.Float), f).dtype() is D.Double
        assert ops.nextafter(ops.cast(f, D.Float), ops.cast(i, D.Float)).dtype() is D.Float
        assert ops.add(i, True).dtype() is D.Int
        assert ops.exp(i).dtype() is D.Float
        return ops.mul(ops.cast(x, D.Double), ops.nextafter(f, 2.0))

    assert ran(call, torch.ones(1), 3, 1.0).item() == 1.0 + 2.0**-52


# --- integers ----------------------------------------------------------------------------------

INT64_MIN = -(2**63)
LEFT = [7, -7, 7, -7, 5, INT64_MIN, 0]
RIGHT = [2, 2, -2, -2, 0, -1, 0]
INTEGERS = {
    "div": [3, -3, -3, 3, None, None, None],
    "mod": [1, -1, 1, -1, None, 0, None],
    "fmod": [1, -1, 1, -1, None, 0, None],
    "remainder": [1, 1, -1, -1, None, 0, None],
    "pow": [49, 49, 0, 0, 1, 0, 1],
    "gcd": [1, 1, 1, 1, 5, None, 0],
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_arithmetic(name):
    """None: a division by zero or an overflow may give anything, but not stop the program."""
    found = ran(lambda ops, a, b: getattr(ops, name)(a, b), torch.tensor(LEFT), torch.tensor(RIGHT))
    for one, wanted in zip(found.tolist(), INTEGERS[name], strict=True):
        assert wanted is None or one == wanted


def test_powers_of_one_to_a_negative_exponent():
    a, b = torch.tensor([1, -1, -1, 2]), torch.tensor([-3, -3, -2, -1])
    assert ran(lambda ops, a, b: ops.pow(a, b), a, b).tolist() == [1, -1, 1, 0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_right_shifts(dtype):
    """Logical ones move zeros in, and give 0 from the number of bits on."""
    bits = dtype.itemsize * 8
    x = torch.tensor([-1, 8, -8], dtype=dtype)
    for shift in (0, 1, bits - 1, bits, bits + 7):
        logical, arithmetic = ran(
            lambda ops, t, s=shift: [ops.logical_right_shift(t, s), ops.bitwise_right_shift(t, s)],
            x,
        )
        plain = [n % 2**bits >> shift for n in x.tolist()]
        signed = [n - 2**bits if n >= 2 ** (bits - 1) else n for n in plain]
        assert logical.tolist() == signed
        if shift < bits:
            assert arithmetic.tolist() == [n >> shift for n in x.tolist()]


@pytest.mark.parametrize("name", ["bitwise_right_shift", "logical_right_shift"])
def test_right_shifts_of_unsigned_integers(name):
    """They have no sign to move in, whatever the shift."""
    numbers = [0, 8, 2**63, 2**64 - 1]
    x = torch.tensor(numbers, dtype=torch.uint64)
    for shift in (0, 1, 63, 64, 70):
        shifts = torch.full((4,), shift, dtype=torch.uint64)
        found = ran(lambda ops, t, s: getattr(ops, name)(t, s), x, shifts)
        assert found.tolist() == [n >> shift for n in numbers]


def test_not_of_bools_is_logical():
    x = torch.tensor([True, False])
    assert ran(lambda ops, t: ops.bitwise_not(t), x).tolist() == [False, True]
    assert ran(lambda ops, t: ops.bitwise_not(t), torch.tensor([0, 5])).tolist() == [-1, -6]
