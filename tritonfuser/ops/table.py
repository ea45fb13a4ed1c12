"""The shape of a row of the op table: typing, lowering form, oracle, samples.

An op is declared once, by one ``Op``. Everything else (``fd.ops``, the printer, the emitter, the
float64 oracle, the docs, the tests) reads the row. The lowering forms whose rules are asked with a
call are here, the others in ``forms``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Union

from ..dtypes import DataType
from ..ir import Arg, Attr, Const, Type, Value
from ..shapes.index_map import Pull, Target
from ..shapes.memory import Memory
from .forms import (
    Composite,
    Contraction,
    Factory,
    HostScalar,
    Materialize,
    Moments,
    Pointwise,
    Random,
    Reduction,
    Scan,
    number_of,
)
from .parameters import Param


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
        """The argument of an operand, by its name."""
        return self.args[self.op.operands[name]]

    def value(self, name: str) -> Value:
        """The argument of an operand that is a tensor or a scalar of the definition."""
        found = self.arg(name)
        assert isinstance(found, Value), f"{self.op.name}: {name} is no value"
        return found

    def operand(self, name: str) -> Value | Const:
        """The argument of an operand that is no list and is not left out."""
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
        """A static argument that is a tuple of dims."""
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
