"""The dtype rules of the pointwise ops: operand types in, a ``Typing`` out.

A rule says what each operand is cast to, what the expression yields, and what is stored. Half,
bf16 and fp8 are always computed in Float; which rules also *return* Float is what tells them
apart. ``pointwise_infer`` makes of a rule the ``infer`` of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtypes import Category, DataType, compute_dtype, promote, real_dtype
from ..errors import ArgumentError, DefinitionError
from ..ir import Arg, Dim, ScalarType, TensorType, Type, Value
from ..shapes.broadcasting import broadcast_dims
from .forms import OperandType, Typing, TypingRule
from .table import Call

Operands = tuple[OperandType, ...]


def common(operands: Sequence[OperandType]) -> DataType:
    """The promoted dtype: 0-dim tensors and, below them, scalars count only by their category."""
    return promote(
        [o.dtype for o in operands if not o.weak],
        [o.dtype for o in operands if o.weak and o.is_tensor],
        [o.dtype for o in operands if o.weak and not o.is_tensor],
    )


def _uniform(operands: Operands, computed: DataType, result: DataType) -> Typing:
    return Typing((computed,) * len(operands), computed, result)


def _floating(dtype: DataType) -> DataType:
    """Float for bools and ints, also for Int; floats and complex numbers as they are."""
    return DataType.Float if dtype.info.category < Category.FLOAT else dtype


def _is_integral(dtype: DataType) -> bool:
    return dtype.info.category < Category.FLOAT


# --- arithmetic ------------------------------------------------------------------------------


def default_op(operands: Operands) -> Typing:
    """Arithmetic: promotes; half, bf16 and fp8 are computed and returned as Float."""
    computed = compute_dtype(common(operands))
    return _uniform(operands, computed, computed)


def float_op(operands: Operands) -> Typing:
    """Like ``default_op``, with bools and integers as Float: exp, truediv, atan2."""
    computed = compute_dtype(_floating(common(operands)))
    return _uniform(operands, computed, computed)


def same_op(operands: Operands) -> Typing:
    """No promotion: computed in Float if half, stored in the first operand's dtype.

    Further operands (the bounds of clamp) are cast to it, whatever they are.
    """
    result = operands[0].dtype
    return _uniform(operands, compute_dtype(result), result)


def same_float_op(operands: Operands) -> Typing:
    """Like ``same_op``, computed in Float for bools and integers too: silu."""
    result = operands[0].dtype
    return _uniform(operands, compute_dtype(_floating(result)), result)


def abs_op(operands: Operands) -> Typing:
    """No promotion; a complex number's absolute value is real."""
    dtype = operands[0].dtype
    result = real_dtype(dtype)
    return Typing((compute_dtype(dtype),), compute_dtype(result), result)


def copy_op(operands: Operands) -> Typing:
    """The operand's dtype, without conversion: set."""
    return _uniform(operands, operands[0].dtype, operands[0].dtype)


def cast_op(operands: Operands) -> Typing:
    """The operand as a number; the call gives the result's dtype."""
    return _uniform(operands, compute_dtype(operands[0].dtype), operands[0].dtype)


def real_op(operands: Operands) -> Typing:
    """The dtype of the real part."""
    result = real_dtype(operands[0].dtype)
    return Typing((operands[0].dtype,), result, result)


def imag_op(operands: Operands) -> Typing:
    """The dtype of the imaginary part; only of complex numbers."""
    dtype = operands[0].dtype
    if dtype.info.category is not Category.COMPLEX:
        raise DefinitionError(f"imag not supported for non-complex tensors, got {dtype}")
    return real_op(operands)


def complex_op(operands: Operands) -> Typing:
    """A complex number from two reals of one dtype."""
    first, second = operands
    made = {DataType.Float: DataType.ComplexFloat, DataType.Double: DataType.ComplexDouble}
    if first.is_tensor is not second.is_tensor:
        raise ArgumentError(
            "complex(): incompatible function arguments: expected two tensors or two scalars, got "
            "one of each",
            hint="fd.ops.full makes a tensor of a scalar.",
        )
    if first.dtype is not second.dtype:
        raise DefinitionError(
            "complex: expected two tensors or two scalars of one dtype, got "
            f"{first.dtype} and {second.dtype}",
            hint="Cast one of them first.",
        )
    if first.dtype not in made:
        raise DefinitionError(
            f"complex: expected Float or Double operands, got {first.dtype}",
            hint="Cast the operands to Float.",
        )
    result = made[first.dtype]
    return Typing((first.dtype, second.dtype), result, result)


# --- tests, comparisons, logic ---------------------------------------------------------------


def predicate_op(operands: Operands) -> Typing:
    """Bool, from one operand without promotion: isnan, signbit."""
    return Typing((compute_dtype(operands[0].dtype),), DataType.Bool, DataType.Bool)


def compare_op(operands: Operands) -> Typing:
    """Bool, from promoted operands."""
    operand = compute_dtype(common(operands))
    return Typing((operand,) * len(operands), DataType.Bool, DataType.Bool)


def logical_op(operands: Operands) -> Typing:
    """Operands are cast to Bool first."""
    return _uniform(operands, DataType.Bool, DataType.Bool)


# --- integers and bits -----------------------------------------------------------------------


def bitwise_op(operands: Operands) -> Typing:
    """Integers or Bools."""
    dtype = common(operands)
    if not _is_integral(dtype):
        raise DefinitionError(
            f"input must have integral or boolean type, but got {dtype}",
            hint="Cast the operands to Int or Bool.",
        )
    return _uniform(operands, dtype, dtype)


def integer_op(operands: Operands) -> Typing:
    """Integers only: shifts, gcd."""
    dtype = common(operands)
    if dtype.info.category is not Category.INT:
        raise DefinitionError(
            f"input must have integral type, but got {dtype}",
            hint="Cast the operands to Int.",
        )
    return _uniform(operands, dtype, dtype)


def nextafter_op(operands: Operands) -> Typing:
    """The common type must be Float or Double."""
    dtype = common(operands)
    if dtype not in (DataType.Float, DataType.Double):
        raise DefinitionError(
            f"nextafter: expected operands that promote to Float or Double, got {dtype}",
            hint="Cast the operands to Float.",
        )
    return _uniform(operands, dtype, dtype)


# --- several operands ------------------------------------------------------------------------


def where_op(operands: Operands) -> Typing:
    """A Bool condition and two operands, which promote to one dtype; half stays half."""
    condition, *choices = operands
    if condition.dtype is not DataType.Bool:
        raise DefinitionError(
            f"Condition should be of DataType Bool, not {condition.dtype}",
            hint="Compare first, or cast the condition to Bool.",
        )
    result = common(choices)
    computed = compute_dtype(result)
    return Typing((DataType.Bool, computed, computed), computed, result)


# --- from a rule to a row's infer ------------------------------------------------------------


def operand_types(args: Sequence[Arg]) -> Operands:
    """What a rule sees of a call's operands: scalars, numbers and weak 0-dim tensors are weak."""
    return tuple(_operand_type(arg) for arg in args)


def _operand_type(arg: Arg) -> OperandType:
    if arg is None or isinstance(arg, tuple):
        raise TypeError(f"a pointwise op takes tensors and numbers, got {arg!r}")
    if isinstance(arg, Value) and isinstance(arg.type, TensorType):
        return OperandType(arg.dtype, arg.type.weak, True)
    return OperandType(arg.dtype, True, False)


def pointwise_infer(typing: TypingRule) -> Callable[[Call], tuple[Type, ...]]:
    """The ``infer`` of a pointwise row: operands broadcast together, ``typing`` gives the dtype.

    All-scalar operands give a scalar.
    """

    def infer(call: Call) -> tuple[Type, ...]:
        return (pointwise_type(call, typing(operand_types(call.args)).result),)

    return infer


def pointwise_type(call: Call, dtype: DataType) -> Type:
    """The type of an elementwise result of ``dtype``.

    Raises
    ------
    DefinitionError
        The operands' shapes do not fit together.
    """
    tensors = [arg for arg in call.args if isinstance(arg, Value) and arg.is_tensor]
    if not tensors:
        return ScalarType(dtype)
    dims = broadcast_dims([value.tensor.dims for value in tensors])
    if dims and isinstance(dims[0], int):
        raise _misfit(call, tensors, dims)
    on_cpu = all(value.tensor.is_cpu for value in tensors)
    weak = not dims and all(value.tensor.weak for value in tensors)
    kept = tuple(dim for dim in dims if isinstance(dim, Dim))
    return TensorType(kept, dtype, is_cpu=on_cpu, weak=weak)


def _misfit(call: Call, tensors: Sequence[Value], where: tuple[object, ...]) -> DefinitionError:
    """``where`` is what broadcast_dims says: the dim, and which tensor does not fit it."""
    dim, number = where
    assert isinstance(number, int)
    names = [p.name for p in call.op.params if p.kind.is_operand]
    culprit = names[next(i for i, arg in enumerate(call.args) if arg is tensors[number])]
    shapes = ", ".join(
        f"{name} {list(arg.tensor.shape)}"
        for name, arg in zip(names, call.args, strict=True)
        if isinstance(arg, Value) and arg.is_tensor
    )
    return DefinitionError(
        f"{call.op.name}: the shapes of the operands do not broadcast together: {shapes}; "
        f"{culprit!r} does not fit in dim {dim} of the result",
        hint="Sizes must be equal, or 1; missing leading dims count as 1.",
    )
