"""The dtype rules, by the letters of the specification, and the shapes of elementwise results."""

from __future__ import annotations

import pytest

from tests.ops.pointwise_harness import BY_NAME
from tritonfuser.dtypes import DataType
from tritonfuser.errors import ArgumentError, DefinitionError
from tritonfuser.ir import Const, Dim, ScalarType, TensorType, Type, Value
from tritonfuser.ops.forms import OperandType
from tritonfuser.ops.table import Call

D = DataType


def tensor(dtype: DataType, *sizes: int, **more: bool) -> Value:
    return Value(0, TensorType(tuple(Dim(size) for size in sizes), dtype, **more))


def scalar(dtype: DataType) -> Value:
    return Value(0, ScalarType(dtype))


def result(name: str, *args: object, **attrs: object) -> Type:
    """What the row infers for operands: values, dtypes (a tensor of rank 1) or numbers."""
    made = []
    for arg in args:
        if isinstance(arg, DataType):
            made.append(tensor(arg, 4))
        else:
            made.append(arg if isinstance(arg, Value | Const) else Const.of(arg))
    op = BY_NAME[name]
    (found,) = op.infer(Call(op, tuple(made), attrs))
    return found


def dtype(name: str, *args: object) -> DataType:
    return result(name, *args).dtype


@pytest.mark.parametrize("name", ["add", "mul", "neg", "exp", "maximum", "fmod", "lerp", "pow"])
@pytest.mark.parametrize("narrow", [D.Half, D.BFloat16, D.Float8_e4m3fn, D.Float8_e5m2])
def test_arithmetic_returns_reduced_floats_as_float(name: str, narrow: DataType) -> None:
    operands = [p for p in BY_NAME[name].params if p.kind.is_operand]
    assert dtype(name, *[narrow] * len(operands)) is D.Float


@pytest.mark.parametrize(
    "name", ["relu", "ceil", "floor", "round", "trunc", "frac", "silu", "abs", "sign", "set"]
)
@pytest.mark.parametrize("kept", [D.Half, D.BFloat16, D.Float, D.Double, D.Int, D.Int32, D.Bool])
def test_ops_that_keep_the_dtype(name: str, kept: DataType) -> None:
    assert dtype(name, kept) is kept


def test_where_keeps_half_and_meets_in_float() -> None:
    assert dtype("where", D.Bool, D.Half, D.Half) is D.Half
    assert dtype("where", D.Bool, D.Half, 1.5) is D.Half
    assert dtype("where", D.Bool, D.Half, D.BFloat16) is D.Float
    assert dtype("where", D.Bool, D.Int, 1.5) is D.Double


@pytest.mark.parametrize("kind", [D.Double, D.Int32, D.Int, D.ComplexDouble, D.Bool, D.Float])
def test_where_of_two_scalars_is_a_tensor_of_their_dtype(kind: DataType) -> None:
    found = result("where", tensor(D.Bool, 3, 2), scalar(kind), scalar(kind))
    assert found == TensorType((Dim(3), Dim(2)), kind)


def test_where_wants_a_bool_condition() -> None:
    with pytest.raises(DefinitionError, match="Condition should be of DataType Bool"):
        dtype("where", D.Int, D.Int, D.Int)


@pytest.mark.parametrize("exact", [D.Int, D.Int32, D.Bool])
def test_exact_tensor_with_a_python_float_is_double(exact: DataType) -> None:
    assert dtype("add", exact, 1.5) is D.Double
    assert dtype("mul", scalar(D.Double), exact) is D.Double
    assert dtype("truediv", exact, 2.0) is D.Double


@pytest.mark.parametrize("name", ["exp", "reciprocal", "sigmoid", "lgamma"])
@pytest.mark.parametrize("exact", [D.Int, D.Int32, D.Bool])
def test_float_functions_of_exact_numbers_are_float(name: str, exact: DataType) -> None:
    assert dtype(name, exact) is D.Float
    assert result(name, scalar(exact)) == ScalarType(D.Float)


def test_float_functions_keep_double_and_complex() -> None:
    assert dtype("exp", D.Double) is D.Double
    assert dtype("exp", D.ComplexFloat) is D.ComplexFloat
    assert dtype("truediv", D.Int, D.Int) is D.Float
    assert dtype("atan2", D.Int, D.Bool) is D.Float
    assert dtype("div", D.Int, D.Int32) is D.Int


def test_a_scalar_of_the_same_class_never_widens() -> None:
    assert dtype("add", D.Float, 1.5) is D.Float
    assert dtype("add", D.Int32, 7) is D.Int32
    assert dtype("add", D.Float, scalar(D.Double)) is D.Float
    assert dtype("add", D.Float, 3) is D.Float
    assert dtype("add", D.Float, 1j) is D.ComplexFloat
    assert dtype("mul", D.Double, scalar(D.ComplexFloat)) is D.ComplexDouble
    assert dtype("mul", D.Half, 1j) is D.ComplexFloat
    assert dtype("mul", D.Int, 1j) is D.ComplexDouble
    assert dtype("add", D.Bool, 3) is D.Int


def test_zero_dim_tensors_are_weak_but_full_reductions_are_not() -> None:
    weak, strong = tensor(D.Double, weak=True), tensor(D.Double)
    assert dtype("add", D.Float, weak) is D.Float
    assert dtype("add", D.Float, strong) is D.Double
    assert result("mul", weak, 2.0) == TensorType((), D.Double, weak=True)
    assert result("mul", strong, weak) == TensorType((), D.Double, weak=False)


def test_scalars_count_less_than_zero_dim_tensors() -> None:
    weak = tensor(D.Float, weak=True)
    assert result("add", weak, 1.5) == TensorType((), D.Float, weak=True)
    assert result("sub", scalar(D.Double), weak) == TensorType((), D.Float, weak=True)
    assert dtype("mul", tensor(D.Int32, weak=True), 3) is D.Int32
    assert dtype("mul", tensor(D.Int32, weak=True), 3.0) is D.Double
    assert dtype("lerp", D.Int, weak, 0.5) is D.Float
    assert dtype("add", tensor(D.Half, weak=True), 1.5) is D.Float
    assert dtype("where", D.Bool, tensor(D.Half, weak=True), 1.5) is D.Half


def test_scalars_among_themselves_take_the_widest() -> None:
    assert result("add", 1, 2.5) == ScalarType(D.Double)
    assert result("add", scalar(D.Float), scalar(D.Int)) == ScalarType(D.Float)
    assert result("nextafter", scalar(D.Float), scalar(D.Double)) == ScalarType(D.Double)
    assert result("lt", 1, 2) == ScalarType(D.Bool)


def test_nextafter_wants_float_or_double() -> None:
    assert dtype("nextafter", D.Float, 2.0) is D.Float
    for wrong in (D.Half, D.Int):
        with pytest.raises(DefinitionError, match="nextafter: expected"):
            dtype("nextafter", wrong, wrong)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_promote_first(name: str) -> None:
    operands = (OperandType(D.Int, False, True), OperandType(D.Half, False, True))
    found = BY_NAME[name].form.typing(operands)
    assert (found.operands, found.result) == ((D.Float, D.Float), D.Bool)


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_logic_casts_to_bool(name: str) -> None:
    assert dtype(name, D.Half, D.Int) is D.Bool
    assert dtype("logical_not", D.Float) is D.Bool


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise_takes_bools_and_ints(name: str) -> None:
    assert dtype(name, D.Bool, D.Bool) is D.Bool
    assert dtype(name, D.Bool, D.Int32) is D.Int32
    with pytest.raises(DefinitionError, match="integral or boolean"):
        dtype(name, D.Float, D.Int)


@pytest.mark.parametrize(
    "name", ["bitwise_left_shift", "bitwise_right_shift", "logical_right_shift", "gcd"]
)
def test_shifts_and_gcd_take_ints_alone(name: str) -> None:
    assert dtype(name, D.Int32, D.Int) is D.Int
    for wrong in (D.Float, D.Bool):
        with pytest.raises(DefinitionError, match="integral"):
            dtype(name, wrong, wrong)


def test_complex_parts() -> None:
    assert dtype("abs", D.ComplexFloat) is D.Float
    assert dtype("real", D.ComplexDouble) is D.Double
    assert dtype("real", D.Half) is D.Half
    assert dtype("imag", D.ComplexFloat) is D.Float
    assert dtype("complex", D.Float, D.Float) is D.ComplexFloat
    assert result("complex", scalar(D.Double), scalar(D.Double)) == ScalarType(D.ComplexDouble)
    with pytest.raises(DefinitionError, match="imag not supported"):
        dtype("imag", D.Float)
    for wrong in ((D.Float, D.Double), (D.Half, D.Half)):
        with pytest.raises(DefinitionError, match="complex: expected"):
            dtype("complex", *wrong)
    with pytest.raises(ArgumentError, match="two tensors or two scalars, got one of each"):
        dtype("complex", tensor(D.Double, 2), scalar(D.Double))


def test_bounds_follow_the_input() -> None:
    assert dtype("clamp", D.Half, 0.5, 2.5) is D.Half
    assert dtype("threshold", D.Int, 0.5, 2.5) is D.Int


def test_cast_gives_what_was_asked_for() -> None:
    assert result("cast", tensor(D.Half, 2, 3), dtype=D.Int) == TensorType((Dim(2), Dim(3)), D.Int)
    assert result("cast", 2.5, dtype=D.Int32) == ScalarType(D.Int32)
    with pytest.raises(DefinitionError, match="cast"):
        result("cast", tensor(D.Half, 2), dtype=D.Null)


def test_shapes_broadcast() -> None:
    found = result("add", tensor(D.Float, 4, 1, 3), tensor(D.Float, 5, 1))
    assert found == TensorType((Dim(4), Dim(5), Dim(3)), D.Float)
    assert result("add", tensor(D.Float, 0, 2), tensor(D.Float, 1, 2)).sizes == (0, 2)


def test_a_misfit_names_op_operand_and_shapes() -> None:
    pair = (Value(0, TensorType((Dim(4), Dim(3)), D.Float)),
            Value(1, TensorType((Dim(5), Dim(3)), D.Float)))  # fmt: skip
    with pytest.raises(DefinitionError) as error:
        result("add", *pair)
    for part in ("add", "'rhs'", "[4, 3]", "[5, 3]", "dim 0"):
        assert part in str(error.value)


def test_cpu_scalars_stay_on_the_cpu_among_themselves() -> None:
    here = tensor(D.Float, is_cpu=True)
    assert result("add", here, 1.0).is_cpu
    assert not result("add", here, tensor(D.Float, 4)).is_cpu
