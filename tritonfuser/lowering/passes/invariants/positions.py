"""Values that one kernel would compute at many positions for each element of its results.

Steps of a stencil, ``y = (y shifted left + y shifted right) / 2``, double the positions of ``y``
with every step back: a kernel for ten of them computes the first at 1024 positions, of which most
are the same. Such a value is put in memory, so that each element is computed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ....ir import Fusion, Node, Value
from ....lazy import cached_property
from ....ops.builder import op_of
from ....ops.table import View
from ....shapes.index_map import Index
from ....symbolic.index_expr import Affine, Bounded
from ....symbolic.sizes import hint
from ...access.atomic_axes import AtomicAxes
from ...access.read_footprint import Read, loaded_by, read_as, sources_of
from ...access.rough_instructions import is_fused, rough_instructions
from .materialize import can_be_kept

MOST_POSITIONS = 4
"""Positions of a value, for each element of a result, up to which a kernel computes it at all of
them. A kernel whose time is that of its memory has some forty instructions an element."""

MOST_REPEATED = 64
"""Instructions an element up to which a value is computed again and again: it takes about as long
to store and load it. A cast, or a product of two inputs, is loaded as cheaply as its operands."""

MOST_WAYS = 64
"""Positions of a value up to which a kernel has an expression for each, though an element takes
only one of them, as for parts of a cat."""

MOST_LEVELS = 32
"""Sums in sums, up to which a kernel computes positions."""

Key = object
"""What tells positions of a value apart."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A position at which a kernel computes a value for a result.

    Attributes
    ----------
    share : float
        How many of the result's elements need it.
    levels : int
        How deep the expression of the position is, at most.
    """

    share: float
    levels: int


@dataclass
class _Uses:
    """The positions of a value, for each result by its number."""

    ways: dict[int, dict[Key, _Way]] = field(default_factory=dict)

    def add(self, result: int, key: Key, way: _Way) -> None:
        """Another use of the value; positions beyond those that decide are not kept."""
        known = self.ways.setdefault(result, {})
        before = known.get(key)
        if before is None and len(known) > 2 * MOST_WAYS:
            return
        if before is not None:
            way = _Way(max(way.share, before.share), max(way.levels, before.levels))
        known[key] = way

    def repeated(self, elements: int, of_results: Sequence[int]) -> float:
        """How often an element of the value is computed again; 0 where that is seldom.

        Parameters
        ----------
        elements : int
            Of the value.
        of_results : sequence of int
            The elements of each result. One of several elements of the value needs as many
            positions: a sum of 8 that is written out computes each of them once.
        """
        often = 0.0
        for result, known in self.ways.items():
            each = max(elements / max(of_results[result], 1), 1.0)
            shares = sum(way.share for way in known.values()) / each
            again = shares - 1 if shares > MOST_POSITIONS else 0.0
            often = max(often, again, len(known) - 1 if len(known) > MOST_WAYS else 0.0)
        return often

    @property
    def levels(self) -> int:
        """How deep the deepest position is."""
        return max((w.levels for known in self.ways.values() for w in known.values()), default=0)


def read_at_many(fusion: Fusion) -> tuple[str, ...]:
    """The names of values that are to be in memory before kernels read them, in their order."""
    if not _may_be_crowded(fusion) or not _ByViews(fusion).names():
        return ()
    return _ByIndex(fusion).names()


def _may_be_crowded(fusion: Fusion) -> bool:
    """Whether there are enough views, and values that several of them are of."""
    views = [node for node in fusion.nodes if isinstance(op_of(node).form, View)]
    if len(views) > MOST_LEVELS:
        return True
    viewed = [value for node in views for value in dict.fromkeys(node.operands())]
    more = sum(len(fusion.consumers[value]) > 1 for value in viewed)
    return bool(2**more > MOST_POSITIONS)


class _Search(ABC):
    """Goes from results to inputs, with the positions of each value."""

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self._uses: dict[Value, _Uses] = {}
        self._results: list[int] = []

    @cached_property
    def _possible(self) -> frozenset[str]:
        return can_be_kept(self._fusion, moved=True)

    @abstractmethod
    def _own(self, value: Value) -> Key:
        """The position of a result."""

    @abstractmethod
    def _below(self, node: Node, key: Key, way: _Way) -> Iterator[tuple[Value, Key, _Way]]:
        """The positions of operands that one of a result needs."""

    def names(self) -> tuple[str, ...]:
        """The chosen values."""
        found: list[str] = []
        for output in self._fusion.outputs:
            self._begin(output.value)
        for node in reversed(self._fusion.nodes):
            if not is_fused(node):
                for value in node.operands():
                    self._begin(value)
                continue
            if self._is_crowded(node):
                found.append(node.out.name)
                self._uses[node.out] = _Uses()
                self._begin(node.out)
            self._go_on(node)
        return tuple(reversed(found))

    def _begin(self, value: Value) -> None:
        """A result of a kernel, which computes it at its own positions."""
        if value.is_tensor:
            self._used(value).add(len(self._results), self._own(value), _Way(1.0, 0))
            self._results.append(hint(value.tensor.numel))

    def _used(self, value: Value) -> _Uses:
        return self._uses.setdefault(value, _Uses())

    def _go_on(self, node: Node) -> None:
        """Hand the positions of a value on to its operands."""
        for result, known in self._used(node.out).ways.items():
            for key, way in known.items():
                for value, below, more in self._below(node, key, way):
                    self._used(value).add(result, below, more)

    def _is_crowded(self, node: Node) -> bool:
        """Whether a value is computed too often, or at positions that are too deep."""
        if not node.out.is_tensor:
            return False
        uses = self._used(node.out)
        often = uses.repeated(hint(node.out.tensor.numel), self._results)
        is_crowded = uses.levels > MOST_LEVELS or (
            often > 0 and any(often * count > MOST_REPEATED for count in self._counts(node))
        )
        return is_crowded and node.out.name in self._possible

    def _counts(self, node: Node) -> Iterator[int]:
        """The instructions that an element is computed by, node by node, each once."""
        count, seen, stack = 0, {node.out}, [node]
        while stack:
            made = stack.pop()
            count += rough_instructions(made)
            yield count
            for value in made.operands():
                maker = self._fusion.producers.get(value)
                if value not in seen and maker is not None and is_fused(maker):
                    seen.add(value)
                    stack.append(maker)


class _ByViews(_Search):
    """Takes what is reached through other views for another position: never too few of them.

    Views that undo one another are not seen. This is quick, and says where to look.
    """

    def _own(self, value: Value) -> Key:
        return ()

    def _below(self, node: Node, key: Key, way: _Way) -> Iterator[tuple[Value, Key, _Way]]:
        form = op_of(node).form
        for number, value in enumerate(v for v in node.operands() if v.is_tensor):
            if isinstance(form, View):
                share = way.share * _share(node, form, value)
                yield value, (key, node.out, number), _Way(share, way.levels + 1)
            else:
                yield value, key, way


class _ByIndex(_Search):
    """Takes positions as kernels compute them."""

    def __init__(self, fusion: Fusion) -> None:
        super().__init__(fusion)
        self._axes = AtomicAxes(fusion)
        self._known: dict[Affine, int] = {}

    def _own(self, value: Value) -> Key:
        return self._axes.index(value)

    def _below(self, node: Node, key: Key, way: _Way) -> Iterator[tuple[Value, Key, _Way]]:
        assert isinstance(key, tuple)
        read, form = Read(node.out, key), op_of(node).form
        if not isinstance(form, View):
            for value in node.operands():
                if value.is_tensor:
                    yield value, read_as(value, read).index, way
            return
        for source in sources_of(node, read):
            for loaded in loaded_by(source):
                yield loaded.value, loaded.index, self._at(loaded.index, way.share)
            if isinstance(source.operand, Value) and source.operand.is_tensor:
                share = way.share * _share(node, form, source.operand)
                yield source.operand, source.index, self._at(source.index, share)

    def _at(self, index: Index, share: float) -> _Way:
        # One element for all positions is computed once by a program.
        varies = any(item.axes() or item.loaded() for item in index)
        return _Way(share if varies else 0.0, max(map(self._levels, index), default=0))

    def _levels(self, expr: Affine) -> int:
        """How many sums are in one another."""
        if expr not in self._known:
            bases = [item.base for item, _ in expr.terms]
            inner = [b.expr if isinstance(b, Bounded) else b for b in bases]
            sums = [self._levels(each) for each in inner if isinstance(each, Affine)]
            self._known[expr] = 1 + max(sums, default=0)
        return self._known[expr]


def _share(node: Node, form: View, value: Value) -> float:
    """The share of a view's elements that an operand has: of a cat each has those of its part."""
    if not form.pieces or form.indices:
        return 1.0
    return min(hint(value.tensor.numel) / max(hint(node.out.tensor.numel), 1), 1.0)
