"""Ops on constants give what the same ops on tensors give."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import DataType, FusionDefinition

UNSIGNED = {
    "add": 9,
    "sub": 5,
    "div": 3,
    "mod": 1,
    "fmod": 1,
    "remainder": 1,
    "pow": 49,
    "minimum": 2,
    "maximum": 7,
    "bitwise_left_shift": 28,
    "gcd": 1,
}


@pytest.mark.parametrize("op", UNSIGNED)
def test_of_unsigned_integers(op):
    """torch has few functions of them, so that kernels compute these."""
    with FusionDefinition() as fd:
        a, b = (fd.define_scalar(n, dtype=DataType.UInt64) for n in (7, 2))
        fd.add_output(fd.ops.full([2], getattr(fd.ops, op)(a, b), DataType.UInt64))
    (made,) = fd.run([])
    assert made.tolist() == [UNSIGNED[op]] * 2 and made.dtype is torch.uint64


def test_a_complex_zero_to_the_power_of_zero():
    with FusionDefinition() as fd:
        zero = fd.define_scalar(0j)
        fd.add_output(fd.ops.full([1], fd.ops.pow(zero, zero), DataType.ComplexFloat))
        z = fd.define_tensor([1], dtype=DataType.ComplexFloat)
        fd.add_output(fd.ops.pow(z, z))
    folded, computed = fd.run([torch.zeros(1, dtype=torch.complex64)])
    assert folded.item() == computed.item() == 1


NO_NORMAL_FLOATS = (1e-40, -1e-45, 1e-50, -1e300)
"""Numbers that are subnormal, zero or infinite as a Float."""

WITH_A_NUMBER = {
    "div": lambda ops, x, n: ops.div(x, n),
    "div of it": lambda ops, x, n: ops.div(n, x),
    "atan2": lambda ops, x, n: ops.atan2(x, n),
    "pow": lambda ops, x, n: ops.pow(x, n),
    "nextafter": lambda ops, x, n: ops.nextafter(x, n),
    "maximum": lambda ops, x, n: ops.maximum(x, n),
    "mul": lambda ops, x, n: ops.mul(x, n),
}


@pytest.mark.covering
@pytest.mark.parametrize("number", NO_NORMAL_FLOATS)
@pytest.mark.parametrize("op", WITH_A_NUMBER)
def test_numbers_that_are_no_normal_floats(op, number):
    """Bare in a call, Triton takes them for Doubles, and refuses it or computes in Double."""
    x = torch.tensor([1.5, -2.0, 1e-38, 3e38])
    y = torch.full([4], number, dtype=torch.float64).float()
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        held = fd.define_scalar(number, dtype=DataType.Float)
        fd.add_output(WITH_A_NUMBER[op](fd.ops, a, held))
        fd.add_output(WITH_A_NUMBER[op](fd.ops, a, b))
    found, expected = fd.run([x, y])
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    fd.compile_for("sm_90", [x, y])


def test_a_choice_of_two_such_numbers_is_a_float():
    """2**24 - 1.5 is 2**24 - 2 there, in Double 2**24 - 1.5."""
    x = torch.ones(3)
    with FusionDefinition() as fd:
        tiny, more, large = (
            fd.define_scalar(n, dtype=DataType.Float) for n in (1e-40, 1.5, 2.0**24)
        )
        chosen = fd.ops.where(fd.ops.gt(fd.from_pytorch(x), 2.0), tiny, more)
        fd.add_output(fd.ops.ceil(fd.ops.sub(large, chosen)))
    assert fd.run([x])[0].tolist() == [2.0**24 - 2] * 3
