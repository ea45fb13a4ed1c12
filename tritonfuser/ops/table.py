"""The shape of a row of the op table: parameters, typing, lowering form, oracle, samples.

An op is declared once, by one ``Op``. Everything else (``fd.ops``, the printer, the emitter, the
float64 oracle, the docs, the tests) reads the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Union

from ..dtypes import DataType
from ..ir import Arg, Attr, Const, Dim, Type, Value
from ..shapes import Memory, Pull, Target


class Kind(Enum):
    """What an argument may be. The first seven are run-time operands, the rest static."""

    TENSOR = "TensorView"
    OPERAND = "TensorView | Val | bool | int | float | complex"
    SCALAR = "Val | bool | int | float | complex"
    VALUE = "TensorView | Val"
    TENSORS = "list[TensorView]"
    EXTENT = "int | Val"
    EXTENTS = "list[int | Val] | tuple"
    INT = "int"
    INTS = "list[int] | tuple"
    BOOL = "bool"
    BOOLS = "list[bool] | tuple"
    DIMS = "int | list[int] | tuple"
    DTYPE = "DataType"

    @property
    def is_operand(self) -> bool:
        return self in _OPERANDS


_OPERANDS = {
    Kind.TENSOR,
    Kind.OPERAND,
    Kind.SCALAR,
    Kind.VALUE,
    Kind.TENSORS,
    Kind.EXTENT,
    Kind.EXTENTS,
}


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an op.

    Attributes
    ----------
    name : str
        Its name in calls.
    kind : Kind
        What it takes.
    default : Any
        What it is where it is left out; REQUIRED where it may not be. None is a value like another.
    keyword_only : bool
        It cannot be given by place.
    takes_none : bool
        It must be given, and None may be given.
    """

    name: str
    kind: Kind
    default: Any = REQUIRED
    keyword_only: bool = False
    takes_none: bool = False


@dataclass(frozen=True, slots=True)
class Typing:
    """The dtypes of a pointwise op: what each operand is cast to, what the expression yields,

    and what the result is stored as.
    """

    operands: tuple[DataType, ...]
    computed: DataType
    result: DataType


@dataclass(frozen=True, slots=True)
class OperandType:
    """What a dtype rule sees of an operand: ``weak`` for scalars, numbers and 0-dim tensors."""

    dtype: DataType
    weak: bool
    is_tensor: bool


TypingRule = Callable[[tuple[OperandType, ...]], Typing]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far the expression of a pointwise op may be from the exact result.

    Attributes
    ----------
    ulps : float
        Error of the result in units of its last place; 0.5 is a correctly rounded result, 0 an
        exact one. For libdevice: CUDA Math API, "Mathematical Functions, Accuracy".
    inner : float
        Roundings on the way that count relative to the operands, not to the result.
    coarse : float
        Relative error where only results of 16 bits depend on the op.
    coarse_floor : float
        Absolute error to be added then.
    """

    ulps: float = 0.5
    inner: float = 0.0
    coarse: float = 0.0
    coarse_floor: float = 0.0


COARSE = 2.0**-16
"""The relative error that functions may have where only results of 16 bits depend on them."""

EXACT = Accuracy(0.0)
ROUNDED = Accuracy()


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A Triton expression over the operands' names, ``"{x} + {y}"``.

    ``variants`` is tried in order by the dtype of the first operand after casting; a key of
    None takes any. Names usable in an expression: ``tl``, ``libdevice`` and the functions of
    ``lowering.device_lib.functions``; ``{dtype}`` is the Triton name of the computed dtype.
    ``constants`` are cheaper expressions for when the last operand is a known number.
    ``accuracy`` bounds the error of all of them.
    """

    variants: tuple[tuple[frozenset[DataType] | None, str], ...]
    typing: TypingRule
    constants: tuple[tuple[float, str], ...] = ()
    accuracy: Accuracy = ROUNDED

    @property
    def copies(self) -> bool:
        """Whether the op hands its first operand on: set, cast."""
        texts = [text for _, text in self.variants]
        plain = texts and all(re.fullmatch(r"\{\w+\}", text) for text in texts)
        return not self.constants and bool(plain)

    def expression(self, dtype: DataType, last: object = None) -> str:
        """The text for operands of ``dtype``; ``last`` is the last operand's value if constant."""
        for value, text in self.constants:
            if last is not None and last == value:
                return text
        for dtypes, text in self.variants:
            if dtypes is None or dtype in dtypes:
                return text
        raise KeyError(dtype)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction by an associative operation.

    ``identity`` names the neutral element: "zero", "one", "lowest" or "highest";
    ``combine`` joins two partial results, ``"{a} + {b}"``; ``across`` reduces a tile along
    ``{axis}`` and keeps no dim, ``"tl.sum({x}, {axis})"``.
    """

    identity: str
    combine: str
    across: str


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, sum of squared deviations and count along the reduced dims, in a stable way."""


@dataclass(frozen=True, slots=True)
class Scan:
    """An inclusive scan along one dim; as Reduction, with ``along`` scanning a tile."""

    identity: str
    combine: str
    along: str
    across: str


@dataclass(frozen=True, slots=True)
class View:
    """A rearrangement: which element of which operand each output element reads.

    ``pull`` gives the sources of the element at an index. ``alias`` says how the result lies in
    the operand's memory, or None where it does not: then the elements must be copied.
    ``regroups`` marks the view that cuts and joins dims in row-major order (reshape). ``parts``
    gives the operands of a view that lays them side by side, each with the index it starts at.
    ``indices`` names the operands that hold positions: their elements never reach the result.
    """

    pull: Callable[[Call, Pull], Any]
    alias: Callable[[Call, Memory], Memory | None] | None = None
    regroups: bool = False
    parts: Callable[[Call], tuple[tuple[Value, tuple[int, ...]], ...]] | None = None
    indices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scatter:
    """A copy of ``arg`` with the elements of ``src`` at the places that ``index`` names.

    One kernel writes the copy; a later one runs over the elements of ``index`` and writes those
    of ``src``, a tensor or a number, into the same memory. ``push`` says where the element at an
    index goes; its guards keep it inside. ``indices`` as for a view.
    """

    push: Callable[[Call, Pull], Target]
    indices: tuple[str, ...] = ("index",)


@dataclass(frozen=True, slots=True)
class Materialize:
    """``arg`` in memory: one kernel computes and stores it, later ones load it."""


@dataclass(frozen=True, slots=True)
class Factory:
    """A tensor made from scalars and its own index, ``"{start} + {step} * {i0}"``."""

    triton: str


@dataclass(frozen=True, slots=True)
class Random:
    """Philox random numbers: ``distribution`` names the function of ``lowering.device_lib``.

    The first two operands are (low, high) of a half-open range where ``bounded``, (mean, standard
    deviation) where only ``scaled``. ``neighbours`` says that the library has the function for
    runs of four and of eight elements as well, which share the work.
    """

    distribution: str
    bounded: bool = False
    scaled: bool = True
    neighbours: bool = False


@dataclass(frozen=True, slots=True)
class Composite:
    """Written in other ops: ``expand(builder_ops, *args, **attrs)`` returns the result value(s)."""

    expand: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Library:
    """Run by torch, as the oracle says: what a library does better than generated code would.

    It ends a kernel: operands are in memory before it, results after it. ``like`` names, for each
    result, the operand whose memory order it has; others are row-major. ``capability``
    gives the compute capability, times ten, whose instructions a call needs. ``product`` writes a
    call with ``mma`` and views, as ``Composite.expand`` does, or gives None where it cannot: then
    it may be a generated kernel instead.
    """

    like: tuple[str | None, ...] = ()
    capability: Callable[[Call], int] | None = None
    product: Callable[..., Value | None] | None = None


@dataclass(frozen=True, slots=True)
class Contraction:
    """A matrix product as a kernel of its own: ``[*batch, M, K] x [*batch, K, N]`` (and a row).

    Its operands are computed where they are read, and what is computed from its result in the
    same place rides along.
    """


@dataclass(frozen=True, slots=True)
class HostScalar:
    """A scalar known when extents are: the size of a dim."""


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
    """The range tests draw the operands from, and the dtypes they try.

    ``low``/``high`` bound every operand; ``ranges`` overrides it by operand name. ``dtypes``
    None means every lowered dtype the typing rule takes.
    """

    low: float = -10.0
    high: float = 10.0
    ranges: tuple[tuple[str, float, float], ...] = ()
    dtypes: tuple[DataType, ...] | None = None


@dataclass(frozen=True)
class Call:
    """Arguments bound to an op's parameters: operands by position, static ones by name."""

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

    def dims(self, name: str = "dims") -> tuple[int, ...]:
        found = self.attrs[name]
        assert isinstance(found, tuple)
        return tuple(int(item) for item in found)


@dataclass(frozen=True, slots=True)
class Axes:
    """Names for the dims of a call's tensors, so that the call can be shared out over devices.

    Dims of one name can be cut alike: the part of the result at a part of the operands is what
    the call gives for that part. ``summed`` names are in operands alone: parts of them give
    results that add up. A dim named "" is needed whole. ``once`` are the operands, by place, that
    count in one of such results only.
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
        How it is lowered.
    infer : callable
        ``Call -> tuple[Type, ...]``: the result types; raises DefinitionError.
    oracle : callable
        torch reference: ``(operands in order, tuples for lists, **attrs)`` -> tensor or tuple.
        Operands come as torch tensors or Python numbers.
    record : callable, optional
        ``(builder, call) -> Value | tuple``: replaces the recording of a single node, for ops
        that mean something else at record time (a sum over size-1 dims is a squeeze).
    samples : Samples
        For tests.
    printed : str, optional
        The op that ``repr(fd)`` writes instead, with the result's dtype: a copy is printed as a
        cast to its own dtype.
    returns : callable, optional
        ``Call -> int``: how many things a call hands back, where that is more than the results:
        None stands for those that are missing.
    complex : callable, optional
        What the op does with complex numbers: ``(ops, *operands, **attrs) -> result(s)``, a
        ``complexes.Pair`` of reals in the place of each complex number, recorded by ``ops``.
        Pointwise operands come cast as the typing rule says. Without it complex operands are
        refused, but for views and composite ops, which need none.
    results : tuple of str
        Names of the results, where a call hands back a tuple.
    axes : callable, optional
        ``Call -> Axes``: which dims of a library op run together.
    expression : str
        nvFuser's class of the op as an expression, where programs ask for it.
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

    @cached_property
    def operands(self) -> dict[str, int]:
        """The run-time operands by name, with their places in a call's ``args``."""
        names = (param.name for param in self.params if param.kind.is_operand)
        return {name: place for place, name in enumerate(names)}


def expand_dims(dims: tuple[Dim, ...], rank: int) -> tuple[Dim, ...]:
    """``dims`` with leading size-1 dims up to ``rank``."""
    return (Dim(1),) * (rank - len(dims)) + dims
