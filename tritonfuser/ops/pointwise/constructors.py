"""Constructors of pointwise rows of the op table.

A row's oracle is its torch function wrapped by ``typed``, so that it casts its operands as the
typing rule says: nvFuser's dtypes, torch's values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...dtypes import DataType, from_torch, holding
from .. import typing_rules as rules
from ..accuracy import ROUNDED, Accuracy
from ..complex.terms import Rule
from ..forms import OperandType, Pointwise, TypingRule
from ..parameters import Kind, Param
from ..table import Op, Samples

Variants = tuple[tuple[frozenset[DataType] | None, str], ...]
Oracle = Callable[..., Any]

SINGLE = frozenset({DataType.Float})
DOUBLE = frozenset({DataType.Double})
FLOATING = SINGLE | DOUBLE
INTEGRAL = frozenset({DataType.Int, DataType.Int32, DataType.Index, DataType.UInt64})
BOOLEAN = frozenset({DataType.Bool})

DEFAULT = Samples()
X = (Param("x", Kind.OPERAND),)
PAIR = (Param("lhs", Kind.OPERAND), Param("rhs", Kind.OPERAND))


def per(
    *,
    single: str = "",
    double: str = "",
    floating: str = "",
    integral: str = "",
    boolean: str = "",
    other: str = "",
) -> Variants:
    """The expressions of an op by the dtype it computes in; those left out do not exist."""
    given = (
        (SINGLE, single),
        (DOUBLE, double),
        (FLOATING, floating),
        (INTEGRAL, integral),
        (BOOLEAN, boolean),
        (None, other),
    )
    return tuple((dtypes, text) for dtypes, text in given if text)


def pointwise(
    name: str,
    params: tuple[Param, ...],
    typing: TypingRule,
    triton: str | Variants,
    oracle: Oracle,
    doc: str,
    samples: Samples = DEFAULT,
    *,
    constants: tuple[tuple[float, str], ...] = (),
    by_number: Variants = (),
    oracle_by_number: Oracle | None = None,
    record: Callable[[Any, Any], Any] | None = None,
    complex: Rule | None = None,
    operator: str = "",
    accuracy: Accuracy = ROUNDED,
    instructions: int = 1,
    masked: tuple[tuple[str, str], ...] = (),
) -> Op:
    """A row of any number of operands; ``triton`` one expression, or some by dtype (``per``)."""
    variants = ((None, triton),) if isinstance(triton, str) else triton
    return Op(
        name=name,
        params=params,
        doc=doc,
        category="pointwise",
        form=Pointwise(variants, typing, constants, by_number, accuracy, instructions, masked),
        infer=rules.pointwise_infer(typing),
        oracle=typed(typing, oracle),
        oracle_by_number=oracle_by_number and typed(typing, oracle_by_number),
        record=record,
        samples=samples,
        complex=complex,
        operator=operator,
    )


def unary(
    name: str,
    typing: TypingRule,
    triton: str | Variants,
    oracle: Oracle,
    doc: str,
    samples: Samples = DEFAULT,
    *,
    complex: Rule | None = None,
    operator: str = "",
    accuracy: Accuracy = ROUNDED,
    instructions: int = 1,
) -> Op:
    """A row of one operand, ``x``."""
    return pointwise(
        name,
        X,
        typing,
        triton,
        oracle,
        doc,
        samples,
        complex=complex,
        operator=operator,
        accuracy=accuracy,
        instructions=instructions,
    )


def binary(
    name: str,
    typing: TypingRule,
    triton: str | Variants,
    oracle: Oracle,
    doc: str,
    samples: Samples = DEFAULT,
    *,
    constants: tuple[tuple[float, str], ...] = (),
    by_number: Variants = (),
    oracle_by_number: Oracle | None = None,
    complex: Rule | None = None,
    operator: str = "",
    accuracy: Accuracy = ROUNDED,
    instructions: int = 1,
    masked: tuple[tuple[str, str], ...] = (),
) -> Op:
    """A row of two operands, ``lhs`` and ``rhs``."""
    return pointwise(
        name,
        PAIR,
        typing,
        triton,
        oracle,
        doc,
        samples,
        constants=constants,
        by_number=by_number,
        oracle_by_number=oracle_by_number,
        complex=complex,
        operator=operator,
        accuracy=accuracy,
        instructions=instructions,
        masked=masked,
    )


def typed(typing: TypingRule, function: Oracle) -> Oracle:
    """``function`` on operands cast as ``typing`` says, its result as what it stores.

    Numbers become 0-dim tensors; 0-dim tensors are weak; an operand None is passed on.
    """

    def oracle(*operands: Any) -> Any:
        place = next((x.device for x in operands if isinstance(x, torch.Tensor)), None)
        tensors = [None if x is None else as_tensor(x, place) for x in operands]
        pairs = zip(operands, tensors, strict=True)
        found = typing(tuple(_operand_type(x, y) for x, y in pairs if y is not None))
        targets = iter(found.operands)
        cast = [None if x is None else to_dtype(x, next(targets)) for x in tensors]
        return to_dtype(function(*cast), found.result)

    return oracle


def as_tensor(value: Any, device: torch.device | None = None) -> torch.Tensor:
    """A tensor as it is; a Python number as a 0-dim tensor of its DataType, on a device."""
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=holding(value).info.torch, device=device)


def to_dtype(x: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """A cast: a complex number becomes real by losing its imaginary part, a Bool if not 0."""
    target = dtype.info.torch
    assert target is not None, f"torch has no {dtype}"
    if x.is_complex() and not target.is_complex and target is not torch.bool:
        x = x.real
    return x.to(target)


def _operand_type(given: Any, x: torch.Tensor) -> OperandType:
    return OperandType(from_torch(x.dtype), x.ndim == 0, isinstance(given, torch.Tensor))
