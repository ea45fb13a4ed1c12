"""Which numbers of a key vary between signatures, and a signature with symbols for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import gcd
from operator import ne
from typing import Any

from ...dtypes import Category
from ...ir import Fusion, Value
from ...lowering.passes.concretize import InputSignature, ScalarSpec, TensorSpec, shape_scalars
from ...symbolic.shape_env import ShapeEnv
from ...symbolic.sizes import symbol
from .signature import KEY_PARTS, Key, key_names
from .vectors import Vectors, Widths

Numbers = tuple[int, ...]
"""Sizes and strides of all tensors, and the ints that shapes depend on, in the inputs' order."""

MOST_TOLD = 3
"""Differences that a reason names."""

MOST_MULTIPLE = 512
"""The largest power of two that sizes seen are taken to be multiples of in future: as many parts as
programs that loop over rows on one device, four on each of 128 multiprocessors."""


@dataclass(frozen=True)
class Split:
    """A key in two: what may vary, and all else, which variants have in common.

    ``family`` has the rank in the place of sizes and strides, and None in that of an int.
    """

    family: tuple[Any, ...]
    numbers: Numbers


class KeyReader:
    """Takes keys of a definition apart."""

    def __init__(self, fusion: Fusion) -> None:
        in_shapes = shape_scalars(fusion)
        self._inputs: list[tuple[Value, int]] = []
        self._names = key_names(fusion)
        place = 0
        for value in fusion.inputs:
            if value.is_tensor:
                self._inputs.append((value, place))
                place += KEY_PARTS
                continue
            if value in in_shapes and value.dtype.info.category is Category.INT:
                self._inputs.append((value, place + 1))
            place += 2 + (value in in_shapes)

    def split(self, key: Key) -> Split:
        assert isinstance(key, tuple)
        family = list(key)
        numbers: list[int] = []
        for value, place in self._inputs:
            if value.is_tensor:
                numbers += key[place]
                numbers += key[place + 1]
                family[place] = family[place + 1] = len(key[place])
            elif type(key[place]) is int:
                numbers.append(key[place])
                family[place] = None
        return Split(tuple(family), tuple(numbers))

    def scalars(self, split: Split) -> frozenset[Value]:
        """The scalars among the numbers."""
        ours = ((v, place) for v, place in self._inputs if not v.is_tensor)
        return frozenset(value for value, place in ours if split.family[place] is None)

    def words(self, split: Split) -> list[str]:
        """What each number is: ``tv0.shape[1]``."""
        found: list[str] = []
        scalars = self.scalars(split)
        for value, _ in self._inputs:
            if value.is_tensor:
                dims = range(value.tensor.rank)
                found += [f"{value.name}.shape[{d}]" for d in dims]
                found += [f"{value.name}.stride({d})" for d in dims]
            elif value in scalars:
                found.append(value.name)
        return found

    def difference(self, split: Split, seen: Sequence[Numbers]) -> str:
        """What differs from the most alike of some numbers, strides only if no size does."""
        near = min(seen, key=lambda numbers: sum(map(ne, numbers, split.numbers)))
        pairs = zip(self.words(split), near, split.numbers, strict=True)
        found = [(word, f"{word} was {a}, now {b}") for word, a, b in pairs if a != b]
        sizes = [text for word, text in found if ".stride(" not in word]
        return "; ".join((sizes or [text for _, text in found])[:MOST_TOLD]) or "it was dropped"

    def other_kind(self, old: tuple[Any, ...], new: tuple[Any, ...]) -> str:
        """What else differs: ``tv0.dtype was torch.float32, now torch.bfloat16``."""
        found: list[str] = []
        for name, a, b in zip(self._names, old, new, strict=True):
            if a != b:
                found.append(f"{name} was {a}, now {b}")
        return "; ".join(found[:MOST_TOLD]) or "other options were asked for"


@dataclass(frozen=True)
class Opened:
    """A signature with the sizes that vary as symbols of a shape env.

    Attributes
    ----------
    signature : InputSignature
        What to lower for.
    numbers : tuple of int
        The numbers of the key as expressions.
    vectors : Vectors
        How wide vectors are at other sizes.
    seen : tuple of Numbers
        The numbers that say which sizes vary.
    """

    env: ShapeEnv
    signature: InputSignature
    numbers: Numbers
    vectors: Vectors
    seen: tuple[Numbers, ...] = ()

    def widths(self, atoms: Sequence[int]) -> Widths:
        """Bytes of each tensor's vectors at other sizes."""
        pairs = zip(self.env.atoms, atoms, strict=True)
        return self.vectors.widths([n * atom.multiple for atom, n in pairs if atom.is_symbol])

    def misses_vectors(self, atoms: Sequence[int]) -> bool:
        """Whether vectors are wider at other sizes than its kernels can count on."""
        own = self.widths([atom.hint for atom in self.env.atoms])
        return any(a > b for a, b in zip(self.widths(atoms), own, strict=True))


def opened(
    fusion: Fusion,
    signature: InputSignature,
    seen: Sequence[Numbers],
    scalars: Collection[Value] = (),
) -> Opened | None:
    """The signature with symbols for what differs between the numbers seen, the last its own.

    Sizes that were the same in each are one symbol. Strides that are a product of a size and a
    stride of the tensor stay one. None where nothing differs, or what does is 0 or 1 now.

    A symbol is a multiple of the power of two that divides all sizes seen, and of that which
    vectors need to be as wide as they can be now.

    Parameters
    ----------
    scalars : collection of Value
        Those that are among the numbers.
    """
    counted = [value in scalars for value in fusion.inputs]
    first = _Opener(seen)
    free = first.signature(signature, counted)
    if not first.env.atoms:
        return None
    vectors = Vectors(fusion, free, first.env)
    needed = vectors.multiples([atom.hint for atom in first.env.atoms if atom.is_symbol])
    opener = _Opener(seen, needed)
    specs = opener.signature(signature, counted)
    return Opened(opener.env, specs, tuple(opener.numbers), vectors, tuple(seen))


class _Opener:
    """Makes symbols of what differs, in the inputs' order.

    Parameters
    ----------
    seen : sequence of Numbers
        The numbers seen, the last its own.
    needed : sequence of int, optional
        What each symbol is to be a multiple of, at least. Without it nothing is known of them.
    """

    def __init__(self, seen: Sequence[Numbers], needed: Sequence[int] | None = None) -> None:
        self.env = ShapeEnv()
        self.numbers: list[int] = []
        self._columns = list(zip(*seen, strict=True))
        self._symbols: dict[tuple[int, ...], int] = {}
        self._needed = needed

    def signature(self, signature: InputSignature, counted: Sequence[bool]) -> InputSignature:
        """The signature with symbols in it; ``counted`` for scalars that are among the numbers."""
        pairs = zip(signature, counted, strict=True)
        return tuple(self._spec(spec, is_counted) for spec, is_counted in pairs)

    def _spec(self, spec: TensorSpec | ScalarSpec, counted: bool) -> TensorSpec | ScalarSpec:
        if isinstance(spec, ScalarSpec):
            return replace(spec, value=self._next()) if counted else spec
        rank = len(spec.sizes)
        sizes = tuple(self._next() for _ in range(rank))
        return replace(spec, sizes=sizes, strides=self._strides(rank, sizes))

    def _next(self) -> int:
        """The next number: a constant, or a symbol where it differs."""
        self.numbers.append(self._number(self._columns[len(self.numbers)]))
        return self.numbers[-1]

    def _number(self, column: tuple[int, ...]) -> int:
        now = column[-1]
        if now < 2 or _is_constant(column):
            return now
        if column not in self._symbols:
            self._symbols[column] = symbol(self.env, now, self._multiple(column))
        return self._symbols[column]

    def _multiple(self, column: tuple[int, ...]) -> int:
        """What the next symbol is known to be a multiple of."""
        if self._needed is None:
            return 1
        factor = gcd(*column)
        return max(min(factor & -factor, MOST_MULTIPLE), self._needed[len(self._symbols)])

    def _strides(self, rank: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The smallest first: a larger one may be the product of a size and a smaller one."""
        start = len(self.numbers)
        size_columns = self._columns[start - rank : start]
        columns = self._columns[start : start + rank]
        found: dict[int, int] = {}
        for dim in sorted(range(rank), key=lambda d: columns[d][-1]):
            column = columns[dim]
            inner = (d for d in found if column == _products(columns[d], size_columns[d]))
            below = None if _is_constant(column) else next(inner, None)
            found[dim] = self._number(column) if below is None else found[below] * sizes[below]
        strides = tuple(found[dim] for dim in range(rank))
        self.numbers += strides
        return strides


def _is_constant(column: tuple[int, ...]) -> bool:
    return column.count(column[-1]) == len(column)


def _products(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x * y for x, y in zip(a, b, strict=True))
