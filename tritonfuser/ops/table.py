"""The shape of a row of the op table: typing, lowering form, oracle, samples.

An op is declared once, by one ``Op``. Everything else (``fd.ops``, the printer, the emitter, the
float64 oracle, the docs, the tests) reads the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Union

from ..dtypes import DataType
from ..ir import Arg, Attr, Const, Dim, Type, Value
from ..shapes.index_map import Pull, Target
from ..shapes.memory import Memory
from .accuracy import ROUNDED, Accuracy
from .parameters import Param


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
class View:
    """A rearrangement: which element of which operand each element of the result is.

    Attributes
    ----------
    pull : callable
        ``(call, Pull) -> sources`` of the element at an index.
    alias : callable, optional
        ``(call, Memory) -> Memory | None``: the result's strides in the operand's memory. None
        where no strides express it: then elements are copied.
    regroups : bool
        Whether it splits and merges dims in row-major order: reshape.
    pieces : bool
        Whether its elements come from several places, each of a range of positions: cat, pad.
    indices : tuple of str
        The operands that hold positions; their elements are never elements of the result.
    """

    pull: Callable[[Call, Pull], Any]
    alias: Callable[[Call, Memory], Memory | None] | None = None
    regroups: bool = False
    pieces: bool = False
    indices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scatter:
    """A copy of ``arg`` with elements of ``src`` stored at the places that ``index`` holds.

    One kernel stores the copy. A later kernel runs over the elements of ``index`` and stores those
    of ``src``, a tensor or a number, into the same memory.

    Attributes
    ----------
    push : callable
        ``(call, Pull) -> Target``: the place in the result for the element at an index, with
        guards against places out of bounds.
    indices : tuple of str
        As those of ``View``.
    moves : tuple of str
        The operands whose elements the result has.
    """

    push: Callable[[Call, Pull], Target]
    indices: tuple[str, ...] = ("index",)
    moves: tuple[str, ...] = ("arg", "src")


@dataclass(frozen=True, slots=True)
class Materialize:
    """``arg`` stored in memory: one kernel computes it, later ones load it."""


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
class Composite:
    """An op defined in terms of other ops.

    Attributes
    ----------
    expand : callable
        ``(ops, *args, **attrs) -> result(s)``, recorded by ``ops``.
    """

    expand: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Library:
    """An op that torch runs, between kernels: the oracle is its implementation.

    Its operands and results are in memory.

    Attributes
    ----------
    like : tuple of (str or None)
        For each result the operand whose memory order it has; None for row-major.
    capability : callable, optional
        ``call -> int``: compute capability, times ten, whose instructions the call needs.
    product : callable, optional
        ``(ops, *args) -> Value | None``: the same matrix product as views and ``mma``, for a
        generated kernel; None where its ranks have no such form.
    indices : tuple of str
        The operands that hold positions.
    positions : callable, optional
        ``call -> int``: how many there are, from 0 on, as many as elements of a dim.
    expanded : tuple of str
        The operands that may be one element in memory, expanded, where all elements are equal.
    moves : tuple of str
        The operands whose elements the results are, or whose order they tell: those of any dtype
        that holds the same numbers give the same results.
    """

    like: tuple[str | None, ...] = ()
    capability: Callable[[Call], int] | None = None
    product: Callable[..., Value | None] | None = None
    indices: tuple[str, ...] = ()
    positions: Callable[[Call], int] | None = None
    expanded: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contraction:
    """A matrix product in a generated kernel: ``[*batch, M, K] x [*batch, K, N]``, plus a bias.

    What computes its operands is fused as a prologue, what follows elementwise as an epilogue.
    """


@dataclass(frozen=True, slots=True)
class HostScalar:
    """A scalar that is known once extents are: the size of a dim."""


Form = Union[
    Pointwise,
    Reduction,
    Moments,
    Scan,
    View,
    Scatter,
    Materialize,
    Factory,
    Random,
    Composite,
    Library,
    Contraction,
    HostScalar,
]


@dataclass(frozen=True, slots=True)
class Samples:
    """The numbers and dtypes that tests try.

    Attributes
    ----------
    low, high : float
        Range of every operand.
    ranges : tuple of (str, float, float)
        Name, low and high of operands with a range of their own.
    dtypes : tuple of DataType, optional
        None for every lowered dtype that the typing rule takes.
    """

    low: float = -10.0
    high: float = 10.0
    ranges: tuple[tuple[str, float, float], ...] = ()
    dtypes: tuple[DataType, ...] | None = None


@dataclass(frozen=True)
class Call:
    """Arguments bound to an op's parameters.

    Attributes
    ----------
    op : Op
        The row.
    args : tuple
        Run-time operands, in the order of the signature.
    attrs : dict
        Static arguments, by name.
    """

    op: Op
    args: tuple[Arg, ...]
    attrs: dict[str, Attr] = field(default_factory=dict)

    def arg(self, name: str) -> Arg:
        return self.args[self.op.operands[name]]

    def value(self, name: str) -> Value:
        found = self.arg(name)
        assert isinstance(found, Value), f"{self.op.name}: {name} is no value"
        return found

    def operand(self, name: str) -> Value | Const:
        found = self.arg(name)
        assert isinstance(found, Value | Const), f"{self.op.name}: {name} is missing"
        return found

    @property
    def oracle(self) -> Callable[..., Any]:
        """The op's oracle for such operands."""
        by_number = self.op.oracle_by_number
        is_number = bool(self.args) and number_of(self.args[-1]) is not None
        return self.op.oracle if by_number is None or not is_number else by_number

    def dims(self, name: str = "dims") -> tuple[int, ...]:
        found = self.attrs[name]
        assert isinstance(found, tuple)
        return tuple(int(item) for item in found)


@dataclass(frozen=True, slots=True)
class Axes:
    """Names for the dims of a call's tensors, so that the call can be sharded over devices.

    Dims of one name are sharded together: the call on shards of the operands gives the shards of
    the results. A dim named "" cannot be sharded.

    Attributes
    ----------
    operands, results : tuple of tuple of str
        A name for each dim.
    summed : frozenset of str
        Contracted dims: shards of them give partial results that add up.
    once : frozenset of int
        Operands, by place, that only one of such partial results may include: a bias.
    """

    operands: tuple[tuple[str, ...], ...]
    results: tuple[tuple[str, ...], ...]
    summed: frozenset[str] = frozenset()
    once: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Op:
    """One row of the op table.

    Attributes
    ----------
    name : str
        The name under ``fd.ops``.
    params : tuple of Param
        The signature.
    doc : str
        One sentence for the docstring and the docs page.
    category : str
        Heading in the docs: "pointwise", "reduction", "view", ...
    form : Form
        How the op is lowered.
    infer : callable
        ``Call -> tuple[Type, ...]``: the result types; raises DefinitionError.
    oracle : callable
        torch reference: ``(operands in order, tuples for lists, **attrs)`` -> tensor or tuple.
        Operands come as torch tensors or Python numbers.
    oracle_by_number : callable, optional
        The oracle where the last operand is a number, if torch has another result for it then.
    record : callable, optional
        ``(builder, call) -> Value | tuple``: records other nodes in place of the op's own. A sum
        over size-1 dims is recorded as a squeeze.
    samples : Samples
        The numbers and dtypes that tests try.
    printed : str, optional
        The op that ``repr(fd)`` prints instead, with the result's dtype: ``set`` is printed as a
        cast.
    returns : callable, optional
        ``Call -> int``: the length of the tuple that a call returns, where it is longer than the
        results: the rest is None.
    complex : callable, optional
        ``(ops, *operands, **attrs) -> result(s)``: the op on complex numbers, each given as a
        ``Pair`` of reals, recorded by ``ops``. Operands of pointwise ops are already cast as the
        typing rule says. Without it complex operands are an error, except for views and composite
        ops, which need no rule.
    results : tuple of str
        Names of the results, where a call returns a tuple.
    axes : callable, optional
        ``Call -> Axes``: which dims of a library op can be sharded together.
    expression : str
        nvFuser's class of the op, for programs that walk a fusion's expressions.
    operator : str
        The operator of Python that records the op on handles, as its special method is called:
        ``"add"`` for ``__add__`` and ``__radd__``.
    older_order : tuple of str
        The parameters by place as older programs call the op, before it had others in between. It
        is taken where a number or a scalar stands in the place of a tensor.
    """

    name: str
    params: tuple[Param, ...]
    doc: str
    category: str
    form: Form
    infer: Callable[[Call], tuple[Type, ...]]
    oracle: Callable[..., Any]
    record: Callable[[Any, Call], Any] | None = None
    samples: Samples = Samples()
    printed: str | None = None
    returns: Callable[[Call], int] | None = None
    complex: Callable[..., Any] | None = None
    results: tuple[str, ...] = ()
    axes: Callable[[Call], Axes] | None = None
    expression: str = ""
    operator: str = ""
    older_order: tuple[str, ...] = ()
    oracle_by_number: Callable[..., Any] | None = None

    @cached_property
    def operands(self) -> dict[str, int]:
        """Name -> place in a call's ``args``, for each run-time operand."""
        names = (param.name for param in self.params if param.kind.is_operand)
        return {name: place for place, name in enumerate(names)}


def expand_dims(dims: tuple[Dim, ...], rank: int) -> tuple[Dim, ...]:
    """``dims`` with leading size-1 dims up to ``rank``."""
    return (Dim(1),) * (rank - len(dims)) + dims
