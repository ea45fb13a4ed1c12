"""Python's operators on handles: they record what torch's tensors compute, and never guess."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.errors import ArgumentError

FLOATS = torch.tensor([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 7.0, float("nan"), float("inf")])
INTEGERS = torch.tensor([-7, -3, -1, 1, 2, 3, 6, 30])
BOOLS = torch.tensor([True, False])

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
BITS = ("and_", "or_", "xor")


def both_ways(function, x, other):
    """The function with a handle on either side, run, and what torch has."""
    with FusionDefinition() as fd:
        handle = fd.from_pytorch(x)
        fd.add_output(function(handle, other))
        fd.add_output(function(other, handle))
    return zip(fd.run([x]), (function(x, other), function(other, x)), strict=True)


def same(mine, torchs):
    assert mine.dtype == torchs.dtype
    torch.testing.assert_close(mine, torchs, equal_nan=True, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", (*BINARY, *COMPARISONS))
@pytest.mark.parametrize("other", [2.0, -0.75])
def test_floats_beside_numbers(name, other):
    for mine, torchs in both_ways(getattr(operator, name), FLOATS, other):
        same(mine, torchs)


@pytest.mark.parametrize("name", ("add", "sub", "mul", "floordiv", "mod", *COMPARISONS, *BITS))
@pytest.mark.parametrize("other", [3, -2])
def test_integers_beside_numbers(name, other):
    for mine, torchs in both_ways(getattr(operator, name), INTEGERS, other):
        same(mine, torchs)


@pytest.mark.parametrize("name", BITS)
def test_bits_of_bools(name):
    for mine, torchs in both_ways(getattr(operator, name), BOOLS, True):
        same(mine, torchs)


def test_shifts():
    x = torch.tensor([1, 2, 40])
    for function in (operator.lshift, operator.rshift):
        for mine, torchs in both_ways(function, x, 2):
            same(mine, torchs)


@pytest.mark.parametrize("function", [operator.neg, operator.pos, abs])
def test_operators_of_one_operand(function):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.mul(function(fd.from_pytorch(FLOATS)), 1.0))
    same(fd.run([FLOATS])[0], function(FLOATS))


def test_invert():
    for x in (INTEGERS, BOOLS):
        with FusionDefinition() as fd:
            fd.add_output(~fd.from_pytorch(x))
        same(fd.run([x])[0], ~x)


def test_matmul():
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    with FusionDefinition() as fd:
        fd.add_output(fd.from_pytorch(a) @ fd.from_pytorch(b))
    same(fd.run([a, b])[0], a @ b)


@pytest.mark.parametrize(
    ("a", "b"),
    [(1.0, 0.1), (-1.0, 0.1), (5.0, 0.0), (-1.0, float("inf")), (7.5, -2.0), (6.0, 3.0)],
)
def test_floor_division_rounds_as_torch_does(a, b):
    x, y = torch.tensor([a]), torch.tensor([b])
    with FusionDefinition() as fd:
        fd.add_output(fd.from_pytorch(x) // fd.from_pytorch(y))
    same(fd.run([x, y])[0], x // y)


def test_a_comparison_as_a_condition():
    x = torch.tensor([1.0, 2.0, 1.0])
    with FusionDefinition() as fd:
        a = fd.from_pytorch(x)
        fd.add_output(fd.ops.where(a == 1.0, a, 0.0))
        fd.add_output(fd.ops.where((a > 1.0) & (a != 3.0), a, -a))
    first, second = fd.run([x])
    assert first.tolist() == [1.0, 0.0, 1.0]
    assert second.tolist() == [-1.0, 2.0, -1.0]


def test_sizes_are_compared_at_run_time():
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1, 4])
        fd.add_output(fd.ops.where(a.size(0) == 2, a, -a))
    for rows in (2, 3):
        x = torch.ones(rows, 4)
        assert torch.equal(fd.run([x])[0], x if rows == 2 else -x)


@pytest.mark.parametrize(
    ("use", "word"),
    [
        (bool, "bool()"),
        (lambda a: a > 0 and a < 1, "bool()"),
        (lambda a: 0 < a < 1, "bool()"),
        (lambda a: not a, "bool()"),
        (float, "float()"),
        (int, "int()"),
        (complex, "complex()"),
        (len, "len()"),
        (list, "iteration"),
        (lambda a: 1.0 in a, "`in`"),
    ],
)
def test_what_needs_a_number_is_refused(use, word):
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1])
        with pytest.raises(ArgumentError) as caught:
            use(a)
        fd.add_output(fd.ops.neg(a))
    text = str(caught.value)
    assert word in text and "test_handle_operators.py" in text


def test_other_things_are_not_operands():
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1])
        before = len(fd.fusion.ir.nodes)
        assert (a == None) is False and (a != "x") is True  # noqa: E711
        for function in (operator.add, operator.lt, operator.matmul):
            with pytest.raises(TypeError):
                function(a, "x")
        assert len(fd.fusion.ir.nodes) == before
        fd.add_output(fd.ops.neg(a))


@pytest.mark.parametrize("name", ["add", "eq", "ne", "lt", "pow", "matmul", "and_"])
def test_tensors_are_not_operands(name):
    """A tensor compared with a handle by torch is unequal to it: that is no condition."""
    function, one = getattr(operator, name), torch.tensor(1.0)
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1])
        for operands in ((a, one), (one, a)):
            with pytest.raises(ArgumentError, match=r"got a torch\.Tensor") as caught:
                function(*operands)
            assert "test_handle_operators.py" in str(caught.value)
        assert not fd.fusion.ir.nodes
        fd.add_output(fd.ops.neg(a))
    assert (a == one) is False


@pytest.mark.parametrize("name", ["add", "eq", "lt", "pow", "matmul"])
def test_arrays_are_not_operands(name):
    """NumPy would apply the operator to each element of the array and the handle."""
    function, array = getattr(operator, name), np.ones(3)
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1])
        for operands in ((a, array), (array, a), (np.array(2.0), a)):
            with pytest.raises(ArgumentError, match="got a NumPy array"):
                function(*operands)
        for function_of_arrays in (np.sum, np.negative, lambda x: np.add(x, 1.0)):
            with pytest.raises(TypeError):
                function_of_arrays(a)
        assert not fd.fusion.ir.nodes
        fd.add_output(fd.ops.neg(a))


@pytest.mark.parametrize("number", [np.float32(2), np.float64(2), np.int64(2), np.bool_(True)])
def test_numbers_of_numpy_are_operands(number):
    for name in ("sub", "mul", "truediv", "lt", "eq"):
        function, same_number = getattr(operator, name), number.item()
        with FusionDefinition() as fd:
            a = fd.from_pytorch(FLOATS)
            for operands in ((a, number), (number, a), (a, same_number), (same_number, a)):
                fd.add_output(function(*operands))
        right, left, expected_right, expected_left = fd.run([FLOATS])
        torch.testing.assert_close(right, expected_right, equal_nan=True, rtol=0, atol=0)
        torch.testing.assert_close(left, expected_left, equal_nan=True, rtol=0, atol=0)


def test_a_value_has_one_handle():
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1, 4])
        b = fd.ops.neg(a)
        fd.add_output(b)
        assert fd.fusion.inputs()[0] is a and fd.fusion.outputs()[0] is b
        assert a.size(1) is a.size(1)
        assert {a: 1, b: 2}[a] == 1
    assert fd.fusion.outputs() == [b] and fd.fusion.inputs() == [a]
    assert a == a and a != b
    assert b.definition().input(0) is a


def test_after_recording_arithmetic_is_refused():
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1])
        fd.add_output(fd.ops.neg(a))
    for function in (operator.add, operator.lt, operator.floordiv):
        with pytest.raises(RuntimeError, match="outside of a definition"):
            function(a, 1.0)


def test_operators_print_as_the_ops_they_record():
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1], dtype=DataType.Float)
        fd.add_output((a % 2.0) // 3.0)
    text = repr(fd)
    assert "fd.ops.remainder" in text and "floor_divide" not in text
