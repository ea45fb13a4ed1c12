"""Random definitions: grown op by op with numbers at hand, so that each result's error is known.

Every term carries its value in float64 and a bound on how far a kernel may be from it. Inputs are
multiples of a quarter: most arithmetic on them is exact, and what is exact has to come out equal.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import REDUCED_FLOATS, Category, compute_dtype, from_torch
from tritonfuser.ops import registry
from tritonfuser.ops.table import View

D = DataType
DTYPES = (D.Float, D.Float, D.Double, D.Half, D.BFloat16, D.Int, D.Int32, D.Bool)
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 32, 33, 64)
LIMIT = 8192
"""Elements of a term at most; of an input mostly a quarter."""
SMALL = 16
"""Terms of fewer elements are taken less often."""
LARGEST = 1e4
"""Numbers beyond are used by ops alone that make them no larger."""
EPS = {
    D.Float: 1e-6,
    D.Double: 1e-14,
    D.Half: 1e-3,
    D.BFloat16: 8e-3,
    D.Float8_e4m3fn: 0.07,
    D.Float8_e5m2: 0.14,
    D.ComplexFloat: 2e-6,
    D.ComplexDouble: 2e-14,
}
HIGHEST = {D.Float8_e4m3fn: 448.0, D.Half: 65504.0}
"""What a dtype holds, where that is less than tests use."""


class Unfit(Exception):
    """A move that the terms at hand do not allow."""


@dataclass(frozen=True, eq=False)
class Term:
    """A value of the definition, what it is, and how far off a kernel may be."""

    handle: Any
    ref: torch.Tensor
    error: float = 0.0
    place: int | None = None
    """Of an input: which."""

    @property
    def dtype(self) -> DataType:
        return self.handle.dtype()

    @property
    def category(self) -> Category:
        return self.dtype.info.category

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.ref.shape)

    @property
    def rank(self) -> int:
        return self.ref.dim()

    @property
    def wild(self) -> bool:
        """Whether infinities or nans are among the numbers."""
        return not bool(self.ref.isfinite().all())

    @property
    def is_complex(self) -> bool:
        return self.category is Category.COMPLEX

    @cached_property
    def finite(self) -> torch.Tensor:
        """The finite numbers in float64; of complex ones the absolute values."""
        wide = self.ref.abs() if self.is_complex else self.ref.double()
        return wide[wide.isfinite()]

    @property
    def low(self) -> float:
        return float(self.finite.min()) if self.finite.numel() else 0.0

    @property
    def high(self) -> float:
        return float(self.finite.max()) if self.finite.numel() else 0.0

    @property
    def size(self) -> float:
        """The largest absolute value of the finite ones."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Number:
    """A scalar operand: what is recorded, and its value."""

    handle: Any
    ref: Any


@dataclass(frozen=True)
class Input:
    """What a run is given, and the same at other sizes."""

    given: Any
    resized: Callable[[Mapping[int, int]], Any]


class Graph:
    """A definition while it grows.

    Parameters
    ----------
    fd : FusionDefinition
        Being recorded.
    rng : random.Random
        Makes every choice.
    sizes : sequence of int
        What extents of inputs are drawn from.
    device : str
        Where inputs lie.
    dtypes : sequence of DataType
        What inputs and casts are drawn from.
    dynamic : bool
        Whether the definition is to be run at other sizes too: no size is written out.
    """

    def __init__(
        self,
        fd: FusionDefinition,
        rng: random.Random,
        sizes: Sequence[int] = SIZES,
        device: str = "cpu",
        dtypes: Sequence[DataType] = DTYPES,
        dynamic: bool = False,
    ) -> None:
        self.fd = fd
        self.dtypes = dtypes
        self.dynamic = dynamic
        self.device = device
        self.rng = rng
        self.sizes = sizes
        self.terms: list[Term] = []
        self.used: set[Term] = set()
        self.made: list[Input] = []
        self.seed = rng.randint(0, 1 << 30)

    @property
    def inputs(self) -> list[Any]:
        """What a run is given."""
        return [made.given for made in self.made]

    # -- choices -------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def term(self, fits: Callable[[Term], bool] = lambda t: True) -> Term:
        """One of the terms of real numbers; late ones and large ones more often."""
        return self.thing(lambda t: not t.is_complex and fits(t))

    def thing(self, fits: Callable[[Term], bool] = lambda t: True) -> Term:
        """One of the terms, complex ones too."""
        found = [t for t in self.terms if fits(t)]
        if not found:
            raise Unfit
        large = [t for t in found if t.ref.numel() >= SMALL]
        if large and self.chance(0.7):
            found = large
        return self.rng.choice(found[-2:] if self.chance(0.6) else found)

    def dims(self, term: Term, at_least: int = 1) -> list[int]:
        if term.rank < at_least:
            raise Unfit
        return sorted(self.rng.sample(range(term.rank), self.rng.randint(at_least, term.rank)))

    # -- inputs --------------------------------------------------------------------------------

    def numbers(self, shape: Sequence[int], dtype: DataType) -> torch.Tensor:
        """Random numbers that are exact in every dtype; now and then nan and infinities."""
        self.seed += 1
        found = numbers(shape, dtype, self.seed)
        if self.chance(0.07) and found.numel() and found.is_floating_point():
            for value in (math.nan, math.inf, -math.inf):
                if dtype is not D.Float8_e4m3fn or math.isnan(value):
                    found.view(-1)[self.rng.randrange(found.numel())] = value
        return found

    def layout(self, shape: Sequence[int]) -> Callable[[torch.Tensor], torch.Tensor]:
        """A memory layout: what lays the numbers of a dense tensor out like that."""
        rank = len(shape)
        how = self.rng.choice(("dense", "dense", "transposed", "sliced", "expanded", "offset"))
        if how == "transposed" and rank > 1:
            order = self.rng.sample(range(rank), rank)
            back = [order.index(d) for d in range(rank)]
            return lambda x: x.permute(order).contiguous().permute(back)
        if how == "sliced" and rank:
            more = [self.rng.randint(0, 1) for _ in shape]
            return lambda x: _sliced(x, more)
        if how == "expanded" and rank and math.prod(shape):
            place = self.rng.randrange(rank)
            return lambda x: x.narrow(place, 0, 1).expand(x.shape) if x.numel() else x
        return _offset if how == "offset" else (lambda x: x)

    def add_input(self, tensor: torch.Tensor) -> Term:
        """An input of these numbers; at other sizes, of others like them, laid out as allowed."""
        layout = later = self.layout(tensor.shape)
        given = layout(tensor.to(self.device))
        if self.dynamic and self.chance(0.5):
            later = self.layout(tensor.shape)
            # A dim may turn out to be 1.
            sizes = [1 if n == 1 and self.chance(0.5) else -1 for n in tensor.shape]
            handle = self.fd.define_tensor(sizes, False, from_torch(tensor.dtype))
        else:
            fixed = not self.dynamic and self.chance(0.3)
            handle = self.fd.from_pytorch(given, static_sizes=fixed)
        dtype, shape, seed = handle.dtype(), tensor.shape, self.seed

        def resized(sizes: Mapping[int, int]) -> torch.Tensor:
            found = numbers([sizes.get(n, n) for n in shape], dtype, seed)
            return later(found.to(tensor.dtype).to(self.device))

        self.made.append(Input(given, resized))
        plain = given.cpu()
        if plain.is_floating_point():
            plain = plain.double()
        plain = plain.to(torch.complex128) if plain.is_complex() else plain.clone()
        term = Term(handle, plain, place=len(self.made) - 1)
        self.terms.append(term)
        return term

    def new_input(self) -> Term:
        """An input of any shape, or of one that broadcasts with a term."""
        shape = [self.rng.choice(self.sizes) for _ in range(self.rng.randint(0, 4))]
        if self.terms and self.chance(0.7):
            like = self.thing().shape
            shape = list(like[self.rng.randint(0, len(like)) :] if self.chance(0.3) else like)
            shape = [1 if self.chance(0.15) else n for n in shape]
        while math.prod(shape) > LIMIT // 4:
            shape[shape.index(max(shape))] = 2
        if self.chance(0.03) and shape and not self.dynamic:
            shape[self.rng.randrange(len(shape))] = 0
        return self.add_input(self.numbers(shape, self.rng.choice(self.dtypes)))

    def scalar(self, dtype: DataType, value: Any) -> Number:
        """A number as an operand: written out, a constant, an input, or computed from one."""
        how = self.rng.choice(("plain", "constant", "input", "computed"))
        if how == "plain":
            return Number(value, value)
        if how == "constant":
            return Number(self.fd.define_scalar(value, dtype=dtype), value)
        if how == "input" or dtype is D.Bool:
            return Number(self.scalar_input(dtype, value), value)
        given = self.scalar_input(dtype, value + 1)
        made = self.fd.ops.sub(given, 1)
        return Number(made if made.dtype() is dtype else self.fd.ops.cast(made, dtype), value)

    def scalar_input(self, dtype: DataType, value: Any, is_size: bool = False) -> Any:
        """A number given to each run; a size is another one at other sizes."""
        self.made.append(Input(value, lambda sizes: sizes.get(value, value) if is_size else value))
        return self.fd.define_scalar(None, dtype=dtype)

    def extent(self, size: int) -> Number:
        """A size: written out, an input, or the size of a dim that has it."""
        found = [(t, d) for t in self.terms for d, n in enumerate(t.shape) if n == size]
        how = self.rng.choice(("plain", "plain", "scalar", "size"))
        if self.dynamic and size != 1:
            how = "size" if found and self.chance(0.9) else "input"
        if how == "size" and found:
            term, dim = self.rng.choice(found)
            return Number(term.handle.size(dim), size)
        if how == "input":
            return Number(self.scalar_input(D.Int, size, is_size=True), size)
        return self.scalar(D.Int, size) if how == "scalar" else Number(size, size)

    # -- recording -----------------------------------------------------------------------------

    def record(
        self,
        name: str,
        *args: Any,
        error: float = 0.0,
        exact: bool = True,
        keep: int | None = None,
        **kwargs: Any,
    ) -> Term:
        """Record an op on terms; ``error`` is what the operands' errors and rounding amount to.

        ``exact`` says that the op rounds correctly: a result that its dtype holds is exact.
        ``keep`` is how many of the results become terms.
        """
        made = getattr(self.fd.ops, name)(*_handles(args), **_handles(kwargs))
        refs = registry.get(name).oracle(*_refs(args), **_refs(kwargs))
        self.used.update(a for a in _flat(args) if isinstance(a, Term))
        several = isinstance(made, tuple)
        pairs = zip(made, refs, strict=True) if several else [(made, refs)]
        terms = [self._settled(handle, ref, error, exact) for handle, ref in pairs]
        self.terms.extend(terms[:keep])
        return terms[0]

    def _settled(self, handle: Any, ref: torch.Tensor, error: float, exact: bool) -> Term:
        """The term with its reference rounded as the definition's dtypes say."""
        dtype = handle.dtype()
        if dtype.info.category < Category.FLOAT:
            return Term(handle, ref.to(dtype.info.torch), 0.0)
        is_complex = dtype.info.category is Category.COMPLEX
        ref = ref.to(torch.complex128 if is_complex else torch.float64)
        finite = ref[ref.isfinite()]
        size = float(finite.abs().max()) if finite.numel() else 0.0
        computed = compute_dtype(dtype)
        held = bool((finite.to(computed.info.torch).to(finite.dtype) == finite).all())
        if not exact or error or not held:
            error += EPS[computed] * size
        if dtype in REDUCED_FLOATS:
            ref = ref.to(dtype.info.torch).double()
            error += EPS[dtype] * size if error else 0.0
        return Term(handle, ref, error)

    def outputs(self) -> list[Term]:
        """The last term, and some or all of those that no op took."""
        leaves = [t for t in self.terms[:-1] if t not in self.used]
        if self.chance(0.5):
            leaves = [self.thing() for _ in range(self.rng.randint(0, 2))]
        return [self.terms[-1], *leaves[:4]]

    def written(self, outputs: Sequence[Term]) -> dict[int, Term]:
        """Inputs, by their places, that terms of their kind are written into; mostly none.

        Not one that an output may show.
        """
        found: dict[int, Term] = {}
        if not self.chance(0.25):
            return found
        shown = {self._root(term.handle.value) for term in outputs}
        for own in [t for t in self.terms if t.place is not None]:
            given = self.made[own.place].given
            if own.handle.value in shown or 0 in given.stride():
                continue
            fits = [t for t in self.terms if t.shape == own.shape and t.dtype is own.dtype]
            fits = [t for t in fits if t is not own and t not in found.values()]
            if fits:
                found[own.place] = self.rng.choice(fits[-3:])
                if self.chance(0.5):
                    break
        return found

    def _root(self, value: Any) -> Any:
        """What a value is a view of, through all views."""
        producers = self.fd.fusion.ir.producers
        while (node := producers.get(value)) is not None:
            if not isinstance(registry.get(node.op).form, View):
                break
            value = next(node.operands())
        return value

    def take(self, count: int, moves: Sequence[Callable[[Graph], None]]) -> None:
        """Make that many moves that fit."""
        tries = 0
        while count and tries < 200:
            tries += 1
            try:
                self.rng.choice(moves)(self)
            except Unfit:
                continue
            count -= 1


def numbers(shape: Sequence[int], dtype: DataType, seed: int) -> torch.Tensor:
    """Random whole numbers, or quarters, of a seed: exact in every dtype."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is D.Bool:
        return torch.randint(0, 2, tuple(shape), generator=generator).bool()
    if dtype.info.category is Category.COMPLEX:
        parts = torch.randint(-16, 17, (*shape, 2), generator=generator) / 4
        return torch.view_as_complex(parts.double()).to(dtype.info.torch)
    found = torch.randint(-16, 17, tuple(shape), generator=generator)
    if dtype.info.category is Category.INT:
        return found.to(dtype.info.torch)
    return (found / 4).to(dtype.info.torch)


def _sliced(dense: torch.Tensor, more: Sequence[int]) -> torch.Tensor:
    """The end of a tensor that is longer by ``more`` in each dim."""
    shape = [n + m for n, m in zip(dense.shape, more, strict=True)]
    room = torch.zeros(shape, dtype=dense.dtype, device=dense.device)
    return room[tuple(slice(m, None) for m in more)].copy_(dense)


def _offset(dense: torch.Tensor) -> torch.Tensor:
    """The same one element behind an aligned address."""
    room = torch.zeros(dense.numel() + 1, dtype=dense.dtype, device=dense.device)
    return room[1:].view(dense.shape).copy_(dense)


def _flat(args: Sequence[Any]) -> list[Any]:
    return [x for arg in args for x in (arg if isinstance(arg, list | tuple) else (arg,))]


def _handles(given: Any) -> Any:
    return _mapped(given, lambda term: term.handle)


def _refs(given: Any) -> Any:
    return _mapped(given, lambda term: term.ref)


def _mapped(given: Any, of: Callable[[Any], Any]) -> Any:
    if isinstance(given, Term | Number):
        return of(given)
    if isinstance(given, dict):
        return {key: _mapped(item, of) for key, item in given.items()}
    if isinstance(given, list | tuple):
        return type(given)(_mapped(item, of) for item in given)
    return given
