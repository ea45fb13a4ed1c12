"""Open sizes: which numbers of a key vary between calls, and a signature with symbols for them.

``KeyReader`` splits the key of a call into numbers and the rest. ``with_open_sizes`` compares the
numbers of several calls and makes a symbol of each that differs.
"""

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

KeyNumbers = tuple[int, ...]
"""The numbers of a key in the inputs' order: sizes and strides, in elements, of each tensor, and
each int scalar that a shape depends on."""

MOST_TOLD = 3
"""Differences that the reason of a recompilation names at most."""

MOST_MULTIPLE = 512
"""The largest power of two that a symbol is assumed to be a multiple of, because all sizes seen
are. 512 is the number of programs that loop over rows: four on each of 128 multiprocessors."""


@dataclass(frozen=True)
class SplitKey:
    """A key split into its numbers and the rest.

    Attributes
    ----------
    family : tuple
        The key with ranks in place of sizes and strides, and None in place of int scalars. All
        variants of a family have it in common.
    numbers : tuple of int
        The numbers.
    """

    family: tuple[Any, ...]
    numbers: KeyNumbers


class KeyReader:
    """Splits the keys of one definition, and describes how two keys differ."""

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

    def split(self, key: Key) -> SplitKey:
        """The family and the numbers of a key."""
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
        return SplitKey(tuple(family), tuple(numbers))

    def scalars(self, split: SplitKey) -> frozenset[Value]:
        """The scalars among the numbers."""
        ours = ((v, place) for v, place in self._inputs if not v.is_tensor)
        return frozenset(value for value, place in ours if split.family[place] is None)

    def number_names(self, split: SplitKey) -> list[str]:
        """The name of each number, such as ``tv0.shape[1]``."""
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

    def number_difference(self, split: SplitKey, seen: Sequence[KeyNumbers]) -> str:
        """How numbers differ from the nearest of those seen; strides only where no size differs."""
        near = min(seen, key=lambda numbers: sum(map(ne, numbers, split.numbers)))
        pairs = zip(self.number_names(split), near, split.numbers, strict=True)
        found = [(word, f"{word} was {a}, now {b}") for word, a, b in pairs if a != b]
        sizes = [text for word, text in found if ".stride(" not in word]
        return "; ".join((sizes or [text for _, text in found])[:MOST_TOLD]) or "it was dropped"

    def family_difference(self, old: tuple[Any, ...], new: tuple[Any, ...]) -> str:
        """How two families differ: ``tv0.dtype was torch.float32, now torch.bfloat16``."""
        found: list[str] = []
        for name, a, b in zip(self._names, old, new, strict=True):
            if a != b:
                found.append(f"{name} was {a}, now {b}")
        return "; ".join(found[:MOST_TOLD]) or "other options were asked for"


@dataclass(frozen=True)
class OpenSignature:
    """A signature whose varying sizes are symbols of a ``ShapeEnv``.

    Attributes
    ----------
    env : ShapeEnv
        The symbols.
    signature : InputSignature
        The inputs, for lowering.
    numbers : tuple of int
        The numbers of the key: constants, symbols, and products of these.
    vectors : Vectors
        The vector widths at any sizes.
    seen : tuple of KeyNumbers
        The numbers of the calls by which the varying sizes were found.
    """

    env: ShapeEnv
    signature: InputSignature
    numbers: KeyNumbers
    vectors: Vectors
    seen: tuple[KeyNumbers, ...] = ()

    def widths(self, atoms: Sequence[int]) -> Widths:
        """Bytes of each tensor's vectors where the atoms of ``env`` have these values."""
        pairs = zip(self.env.atoms, atoms, strict=True)
        return self.vectors.widths([n * atom.multiple for atom, n in pairs if atom.is_symbol])

    def misses_vectors(self, atoms: Sequence[int]) -> bool:
        """Whether the vectors of some tensor are wider at these sizes than at the hints.

        Kernels compiled for this signature would not use the wider ones.
        """
        own = self.widths([atom.hint for atom in self.env.atoms])
        return any(a > b for a, b in zip(self.widths(atoms), own, strict=True))


def with_open_sizes(
    fusion: Fusion,
    signature: InputSignature,
    seen: Sequence[KeyNumbers],
    scalars: Collection[Value] = (),
) -> OpenSignature | None:
    """The signature with a symbol for each number that differs between calls.

    Numbers that were equal to one another in every call share a symbol. A stride that is always the
    product of a size and a smaller stride of its tensor is that product. A symbol is known to be a
    multiple of the power of two that divides all sizes seen (at most ``MOST_MULTIPLE``), and of the
    power of two that the widest vectors of this call need.

    Parameters
    ----------
    fusion : Fusion
        The definition.
    signature : InputSignature
        The inputs of this call.
    seen : sequence of KeyNumbers
        The numbers of earlier calls, then those of this call.
    scalars : collection of Value
        The scalar inputs that are among the numbers.

    Returns
    -------
    OpenSignature or None
        None where no number becomes a symbol: none differs, or those that differ are 0 or 1 now.
    """
    in_key = [value in scalars for value in fusion.inputs]
    draft = _SymbolMaker(seen)
    draft_signature = draft.signature(signature, in_key)
    if not draft.env.atoms:
        return None
    vectors = Vectors(fusion, draft_signature, draft.env)
    needed = vectors.multiples([atom.hint for atom in draft.env.atoms if atom.is_symbol])
    maker = _SymbolMaker(seen, needed)
    specs = maker.signature(signature, in_key)
    return OpenSignature(maker.env, specs, tuple(maker.numbers), vectors, tuple(seen))


class _SymbolMaker:
    """Makes symbols of the numbers that differ between calls, in the inputs' order.

    Parameters
    ----------
    seen : sequence of KeyNumbers
        The numbers of earlier calls, then those of this call.
    needed : sequence of int, optional
        The least multiple of each symbol. Without it no symbol is a known multiple of anything.
    """

    def __init__(self, seen: Sequence[KeyNumbers], needed: Sequence[int] | None = None) -> None:
        self.env = ShapeEnv()
        self.numbers: list[int] = []
        self._columns = list(zip(*seen, strict=True))
        self._symbols: dict[tuple[int, ...], int] = {}
        self._needed = needed

    def signature(self, signature: InputSignature, in_key: Sequence[bool]) -> InputSignature:
        """The signature with symbols. ``in_key`` says which inputs are scalars of the numbers."""
        pairs = zip(signature, in_key, strict=True)
        return tuple(self._spec(spec, is_in_key) for spec, is_in_key in pairs)

    def _spec(self, spec: TensorSpec | ScalarSpec, in_key: bool) -> TensorSpec | ScalarSpec:
        if isinstance(spec, ScalarSpec):
            return replace(spec, value=self._next()) if in_key else spec
        rank = len(spec.sizes)
        sizes = tuple(self._next() for _ in range(rank))
        return replace(spec, sizes=sizes, strides=self._strides(rank, sizes))

    def _next(self) -> int:
        """The next number of the key: a constant, or a symbol where it differs between calls."""
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
        """The known multiple of the next symbol."""
        if self._needed is None:
            return 1
        factor = gcd(*column)
        return max(min(factor & -factor, MOST_MULTIPLE), self._needed[len(self._symbols)])

    def _strides(self, rank: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The strides of a tensor: constants, symbols, or a size times a smaller stride.

        Strides are made in ascending order, so that the smaller ones are there.
        """
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
