"""Lowering forms: what a kernel computes for an op, by which text, in which dtypes.

Forms whose rules are asked with a call, as those of views, are in ``table``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dtypes import DataType
from ..ir import Const, Value
from .accuracy import ROUNDED, Accuracy


@dataclass(frozen=True, slots=True)
class Typing:
    """The dtypes of a pointwise op.

    Attributes
    ----------
    operands : tuple of DataType
        What each operand is cast to.
    computed : DataType
        What the expression yields.
    result : DataType
        What the result is stored as.
    """

    operands: tuple[DataType, ...]
    computed: DataType
    result: DataType


@dataclass(frozen=True, slots=True)
class OperandType:
    """What a dtype rule sees of an operand.

    Attributes
    ----------
    dtype : DataType
        The operand's dtype.
    weak : bool
        Whether it promotes only by category: scalars, numbers and weak 0-dim tensors.
    is_tensor : bool
        Whether it is a tensor.
    """

    dtype: DataType
    weak: bool
    is_tensor: bool


TypingRule = Callable[[tuple[OperandType, ...]], Typing]


GIVEN = object()
"""Stands for a number that a run gives or computes."""


def number_of(operand: object) -> object:
    """The value of a constant, ``GIVEN`` for another number, None for a tensor."""
    if isinstance(operand, Const):
        return operand.value
    return GIVEN if isinstance(operand, Value) and not operand.is_tensor else None


@dataclass(frozen=True, slots=True)
class Pointwise:
    """An op computed element by element, by a Triton expression: ``"{x} + {y}"``.

    Expressions may use ``tl``, ``libdevice``, the functions of
    ``lowering.device_lib.functions``, and ``{dtype}``, the Triton name of the computed dtype.

    Attributes
    ----------
    variants : tuple of (dtypes, expression)
        The first whose dtypes contain the first operand's dtype after casting; None takes any.
    typing : callable
        The dtype rule.
    constants : tuple of (number, expression)
        Cheaper expressions where the last operand is this constant.
    by_number : tuple of (dtypes, expression)
        As ``variants``, where the last operand is a number of the run; ``variants`` if it has none.
    accuracy : Accuracy
        Bounds the error of all of the expressions.
    instructions : int
        Instructions that sm_90 runs for an element of float32 where no operand needs a slow path;
        ``lowering/access/instructions.py`` has those that no code can do without.
        ``tests/ops/test_instruction_counts.py`` counts them.
    masked : tuple of (str, str)
        Operands, with the number that they best are where a load is masked: one that needs no slow
        path, which all lanes of a warp would take for it.
    """

    variants: tuple[tuple[frozenset[DataType] | None, str], ...]
    typing: TypingRule
    constants: tuple[tuple[float, str], ...] = ()
    by_number: tuple[tuple[frozenset[DataType] | None, str], ...] = ()
    accuracy: Accuracy = ROUNDED
    instructions: int = 1
    masked: tuple[tuple[str, str], ...] = ()

    @property
    def copies(self) -> bool:
        """Whether the result is the first operand, in the same or another dtype: set, cast."""
        texts = [text for _, text in self.variants]
        plain = texts and all(re.fullmatch(r"\{\w+\}", text) for text in texts)
        return not self.constants and bool(plain)

    def expression(self, dtype: DataType, last: object = None) -> str:
        """The text for operands of ``dtype``; ``last`` is what ``number_of`` says of the last."""
        for value, text in self.constants:
            if last is not None and last == value:
                return text
        special = self.by_number if last is GIVEN else ()
        for dtypes, text in (*special, *self.variants):
            if dtypes is None or dtype in dtypes:
                return text
        raise KeyError(dtype)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction by an associative operation.

    Attributes
    ----------
    identity : str
        The neutral element: "zero", "one", "lowest" or "highest".
    combine : str
        Triton expression that combines two partial results: ``"{a} + {b}"``.
    across : str
        Triton expression that reduces a tile along an axis: ``"tl.sum({x}, {axis})"``.
    pairwise : str
        The op on two operands that it repeats: ``"add"``.
    """

    identity: str
    combine: str
    across: str
    pairwise: str


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, sum of squared deviations and count over the reduced dims, by Welford's algorithm."""


@dataclass(frozen=True, slots=True)
class Scan:
    """An inclusive scan along one dim.

    Attributes
    ----------
    identity, combine, across : str
        As those of ``Reduction``.
    along : str
        Triton expression that scans a tile along an axis: ``"tl.cumsum({x}, {axis})"``.
    reduces : str
        The op that gives the last element alone.
    joins : str
        The op that combines the results of neighbouring parts.
    """

    identity: str
    combine: str
    along: str
    across: str
    reduces: str
    joins: str


@dataclass(frozen=True, slots=True)
class Factory:
    """A tensor computed from scalars and the element's index.

    Attributes
    ----------
    triton : str
        Triton expression: ``"{start} + {step} * {i0}"``.
    """

    triton: str


@dataclass(frozen=True, slots=True)
class Random:
    """Philox random numbers.

    Attributes
    ----------
    distribution : str
        The function of ``lowering.device_lib`` that draws them. Others, of its name and
        ``_by_four`` or ``_by_eight``, draw so many consecutive ones at once.
    bounded : bool
        Whether the first two operands are (low, high) of a half-open range.
    scaled : bool
        Whether the first two operands scale the numbers: a range, or (mean, standard deviation).
    """

    distribution: str
    bounded: bool = False
    scaled: bool = True


@dataclass(frozen=True, slots=True)
class Materialize:
    """``arg`` stored in memory: one kernel computes it, later ones load it."""


@dataclass(frozen=True, slots=True)
class Composite:
    """An op defined in terms of other ops.

    Attributes
    ----------
    expand : callable
        ``(ops, *args, **attrs) -> result(s)``, recorded by ``ops``.
    """

    expand: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Contraction:
    """A matrix product in a generated kernel: ``[*batch, M, K] x [*batch, K, N]``, plus a bias.

    What computes its operands is fused as a prologue, what follows elementwise as an epilogue.
    """


@dataclass(frozen=True, slots=True)
class HostScalar:
    """A scalar that is known once extents are: the size of a dim."""
