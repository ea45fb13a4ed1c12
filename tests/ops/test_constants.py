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
