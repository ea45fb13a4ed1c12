"""A definition while it grows: terms that know their axes, and how two of them meet.

No choice depends on an extent: the same seed makes the same ops at any sizes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition

from ..recorded.definitions import Input, ScalarInput, TensorInput

D = DataType
LARGEST = 30.0
"""What is about this large is scaled down before it is used again."""


_FREE = frozenset({"broadcast", "broadcast_in_dim", "cast", "permute", "reshape", "squeeze"})
_INTEGERS = frozenset({D.Bool, D.Int, D.Int32})


class Unfit(Exception):
    """A move that the terms at hand do not allow."""


@dataclass(frozen=True, eq=False)
class Axis:
    """A dimension of the program, such as tokens or channels; a dim of a tensor has one or more."""

    name: str
    extent: int


Dims = tuple[tuple[Axis, ...], ...]
"""The axes of each dim."""


@dataclass(frozen=True, eq=False)
class Term:
    """A tensor of the definition, its axes, and about how large its elements are."""

    handle: Any
    dims: Dims
    size: float = 1.0

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis for dim in self.dims for axis in dim)

    @property
    def shape(self) -> list[int]:
        return shape_of(self.dims)


def has_dims(term: Term) -> bool:
    """Whether a tensor has dims."""
    return len(term.dims) > 0


def shape_of(dims: Dims) -> list[int]:
    """The extents of dims."""
    return [math.prod(axis.extent for axis in dim) for dim in dims]


def single(axes: Iterable[Axis]) -> Dims:
    """A dim for each axis."""
    return tuple((axis,) for axis in axes)


@dataclass
class Graph:
    """What is recorded so far.

    Attributes
    ----------
    fd : FusionDefinition
        Being recorded.
    rng : random.Random
        Makes every choice.
    dims : tuple
        Of the first input, and mostly of later ones.
    dtype : DataType
        Of inputs and results.
    channels_last : bool
        Whether inputs of four dims lie channels last.
    rounds : bool
        Whether each step's result is cast to ``dtype``, as eager torch does.
    expands : bool
        Whether operands are expanded to one shape before they meet, as Thunder does.
    """

    fd: FusionDefinition
    rng: random.Random
    dims: Dims
    dtype: DataType = D.BFloat16
    channels_last: bool = False
    rounds: bool = False
    expands: bool = True
    terms: list[Term] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    used: set[Term] = field(default_factory=set)
    steps: int = 0
    """Ops so far, but for those that only say how a tensor is meant."""
    given: set[Term] = field(default_factory=set)
    asked: list[Term] = field(default_factory=list)
    """Terms that become outputs even if something uses them."""
    _wide: dict[Term, Any] = field(default_factory=dict)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def term(self, fits: Callable[[Term], bool] = lambda t: True) -> Term:
        """One of the terms; those that nothing uses and late ones more often."""
        found = [t for t in self.terms if fits(t)]
        if not found:
            raise Unfit
        fresh = [t for t in found if t not in self.used]
        if fresh and self.chance(0.7):
            found = fresh
        return self.rng.choice(found[-2:] if self.chance(0.6) else found)

    # -- inputs --------------------------------------------------------------------------------

    def tensor(self, dims: Dims, dtype: DataType | None = None) -> Term:
        """A new input, dense; channels last or in another order now and then."""
        rank = len(dims)
        order = list(range(rank))
        if rank == 4 and self.channels_last:
            order = [0, 2, 3, 1]
        elif rank > 1 and self.chance(0.12):
            self.rng.shuffle(order)
        shape = shape_of(dims)
        strides, reach = [0] * rank, 1
        for place in reversed(order):
            strides[place], reach = reach, reach * shape[place]
        kind: torch.dtype | None = (dtype or self.dtype).info.torch
        assert kind is not None
        self.inputs.append(TensorInput(tuple(shape), tuple(strides), kind))
        given = torch.empty_strided(shape, strides, dtype=kind, device="meta")
        return Term(self.fd.from_pytorch(given, static_sizes=True), dims)

    def integer(self, value: int) -> Any:
        """A number that each run is given."""
        self.inputs.append(ScalarInput(value))
        return self.fd.define_scalar(None, dtype=D.Int)

    def new(self, dims: Dims | None = None) -> Term:
        """A new input as a term."""
        self.terms.append(self.tensor(self.dims if dims is None else dims))
        self.given.add(self.terms[-1])
        return self.terms[-1]

    # -- recording -----------------------------------------------------------------------------

    def op(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Record an op on handles and numbers."""
        self.steps += name not in _FREE
        return getattr(self.fd.ops, name)(*args, **kwargs)

    def wide(self, term: Term) -> Any:
        """A term as Float; it counts as used."""
        self.used.add(term)
        if term.handle.dtype() is D.Float:
            return term.handle
        if term not in self._wide:
            self._wide[term] = self.op("cast", term.handle, dtype=D.Float)
        return self._wide[term]

    def add(self, handle: Any, dims: Dims, size: float = 1.0) -> Term:
        """A step's result as a term: scaled down if it is large, rounded if the graph rounds."""
        if size > LARGEST:
            handle, size = self.op("mul", handle, 1.0 / size), 1.0
        if self.rounds and handle.dtype() is D.Float:
            handle = self.stored(handle)
        self.terms.append(Term(handle, dims, size))
        return self.terms[-1]

    def stored(self, handle: Any) -> Any:
        """A handle in the graph's dtype."""
        return handle if handle.dtype() is self.dtype else self.op("cast", handle, dtype=self.dtype)

    # -- axes ----------------------------------------------------------------------------------

    def reshaped(self, handle: Any, old: Dims, new: Dims) -> Any:
        """The same elements with other dims."""
        if shape_of(old) == shape_of(new):
            return handle
        return self.op("reshape", handle, new_shape=shape_of(new))

    def split(self, term: Term) -> Term:
        """A term with a dim for each axis."""
        if all(len(dim) == 1 for dim in term.dims):
            return term
        self.used.add(term)
        dims = single(term.axes)
        found = Term(self.reshaped(term.handle, term.dims, dims), dims, term.size)
        self.terms.append(found)
        return found

    def onto(self, term: Term, dims: Dims) -> Any:
        """A term as Float, turned and broadcast to dims that have all of its axes.

        Raises
        ------
        Unfit
            An axis of it is missing, or it has some axes of a dim and not the others.
        """
        mine = set(term.axes)
        wanted = [axis for dim in dims for axis in dim if axis in mine]
        if len(wanted) != len(mine) or any(0 < len(mine & set(d)) < len(d) for d in dims):
            raise Unfit
        handle, now = self.wide(term), term.dims
        if list(term.axes) != wanted:
            apart = single(term.axes)
            handle = self.reshaped(handle, now, apart)
            places = [term.axes.index(axis) for axis in wanted]
            handle, now = self.op("permute", handle, dims=places), single(wanted)
        kept = tuple(dim for dim in dims if mine & set(dim))
        handle = self.reshaped(handle, now, kept)
        return self.spread(handle, dims, [place for place, d in enumerate(dims) if mine & set(d)])

    def spread(self, handle: Any, dims: Dims, places: Sequence[int]) -> Any:
        """A handle whose dims stand at ``places`` of others, broadcast to those."""
        if len(places) == len(dims):
            return handle
        if self.expands:
            return self.op("broadcast_in_dim", handle, shape_of(dims), list(places))
        return self.op("broadcast", handle, [place not in places for place in range(len(dims))])

    def weight(self, term: Term, axes: Collection[Axis], dtype: DataType | None = None) -> Any:
        """A new input that has these axes of a term, broadcast to it; a float one as Float."""
        places = [place for place, dim in enumerate(term.dims) if set(dim) & set(axes)]
        made = self.tensor(tuple(term.dims[place] for place in places), dtype)
        handle = made.handle if dtype in _INTEGERS else self.wide(made)
        return self.spread(handle, term.dims, places)
