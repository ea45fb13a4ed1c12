"""Materializes values that a kernel would compute at many positions for each element of a result.

Each step of a stencil, ``y = (y shifted left + y shifted right) / 2``, doubles the positions at
which the step before it is needed: a kernel for ten steps computes the first one at 1024 positions,
most of which are equal. Such a value is materialized, so that each element is computed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ....ir import Fusion, Node, Value
from ....lazy import cached_property
from ....ops.builder import op_of
from ....ops.table import View
from ....shapes.index_map import Index
from ....symbolic.index_expr import Affine, Bounded
from ....symbolic.sizes import hint
from ...access.atomic_axes import AtomicAxes
from ...access.backward_slice import BackwardSlice
from ...access.read_footprint import Read, loaded_by, read_as, sources_of
from ...access.rough_instructions import is_fused, rough_instructions
from .materialize import materializable

MOST_POSITIONS = 4
"""Up to so many positions of a value for each element of a result, a kernel computes all of them. A
kernel whose time is that of its memory has some forty instructions an element."""

MOST_REPEATED = 64
"""Up to so many repeated instructions for an element, a value is recomputed: storing and loading it
takes about as long. A cast, or a product of two inputs, is loaded as cheaply as its operands."""

MOST_EXPRESSIONS = 64
"""Up to so many positions, a kernel has an expression of a value for each, even if an element needs
only one of them, as for parts of a concatenation."""

MOST_LEVELS = 32
"""Most levels of nested sums in the expression of a position."""

Key = object
"""Identifies a position of a value: equal keys are equal positions."""


@dataclass(frozen=True, slots=True)
class _Position:
    """A position at which a kernel computes a value for a result.

    Attributes
    ----------
    share : float
        Share of the result's elements that need it.
    levels : int
        Levels of nested sums in its expression, at most.
    """

    share: float
    levels: int


@dataclass
class _Uses:
    """The positions of a value, for each result by its number."""

    positions: dict[int, dict[Key, _Position]] = field(default_factory=dict)

    def add(self, result: int, key: Key, position: _Position) -> None:
        """Add a use of the value. Positions beyond the number that decides are dropped."""
        known = self.positions.setdefault(result, {})
        before = known.get(key)
        if before is None and len(known) > 2 * MOST_EXPRESSIONS:
            return
        if before is not None:
            share, levels = max(position.share, before.share), max(position.levels, before.levels)
            position = _Position(share, levels)
        known[key] = position

    def repeated(self, elements: int, of_results: Sequence[int]) -> float:
        """How often an element of the value is recomputed; 0 if that is seldom.

        Parameters
        ----------
        elements : int
            Of the value.
        of_results : sequence of int
            Elements of each result. A result with fewer elements than the value needs several
            positions without recomputing any, as an unrolled sum of 8 elements.
        """
        often = 0.0
        for result, known in self.positions.items():
            each = max(elements / max(of_results[result], 1), 1.0)
            shares = sum(position.share for position in known.values()) / each
            again = shares - 1 if shares > MOST_POSITIONS else 0.0
            often = max(often, again, len(known) - 1 if len(known) > MOST_EXPRESSIONS else 0.0)
        return often

    @property
    def levels(self) -> int:
        """Levels of the position with most of them."""
        found = (p.levels for known in self.positions.values() for p in known.values())
        return max(found, default=0)


def read_at_many(fusion: Fusion) -> tuple[str, ...]:
    """The names of the values to materialize, in their order."""
    if not _may_repeat(fusion) or not _ByViews(fusion).names():
        return ()
    return _ByIndex(fusion).names()


def _may_repeat(fusion: Fusion) -> bool:
    """A quick test: whether there are enough views, and values that several views read."""
    views = [node for node in fusion.nodes if isinstance(op_of(node).form, View)]
    if len(views) > MOST_LEVELS:
        return True
    viewed = [value for node in views for value in dict.fromkeys(node.operands())]
    more = sum(len(fusion.consumers[value]) > 1 for value in viewed)
    return bool(2**more > MOST_POSITIONS)


class _Search(ABC):
    """A walk from results to inputs, with the positions of each value."""

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self._uses: dict[Value, _Uses] = {}
        self._results: list[int] = []

    @cached_property
    def _possible(self) -> frozenset[str]:
        return materializable(self._fusion, moved=True)

    @abstractmethod
    def _own(self, value: Value) -> Key:
        """The key of a result's own position."""

    @abstractmethod
    def _of_operands(
        self, node: Node, key: Key, position: _Position
    ) -> Iterator[tuple[Value, Key, _Position]]:
        """The positions of operands that a node needs for one position of its result."""

    def names(self) -> tuple[str, ...]:
        """The names of the values to materialize."""
        found: list[str] = []
        for output in self._fusion.outputs:
            self._begin(output.value)
        for node in reversed(self._fusion.nodes):
            if not is_fused(node):
                for value in node.operands():
                    self._begin(value)
                continue
            if self._is_repeated(node):
                found.append(node.out.name)
                self._uses[node.out] = _Uses()
                self._begin(node.out)
            self._go_on(node)
        return tuple(reversed(found))

    def _begin(self, value: Value) -> None:
        """Start from a result of a kernel, which computes it at its own position."""
        if value.is_tensor:
            self._used(value).add(len(self._results), self._own(value), _Position(1.0, 0))
            self._results.append(hint(value.tensor.numel))

    def _used(self, value: Value) -> _Uses:
        return self._uses.setdefault(value, _Uses())

    def _go_on(self, node: Node) -> None:
        """Add the positions of operands for all positions of a node's result."""
        for result, known in self._used(node.out).positions.items():
            for key, position in known.items():
                for value, below, more in self._of_operands(node, key, position):
                    self._used(value).add(result, below, more)

    def _is_repeated(self, node: Node) -> bool:
        """Whether a value is recomputed too often, or at positions with too many levels."""
        if not node.out.is_tensor:
            return False
        uses = self._used(node.out)
        often = uses.repeated(hint(node.out.tensor.numel), self._results)
        is_repeated = uses.levels > MOST_LEVELS or (
            often > 0 and any(often * count > MOST_REPEATED for count in self._counts(node))
        )
        return is_repeated and node.out.name in self._possible

    def _counts(self, node: Node) -> Iterator[int]:
        """The instructions of an element, added up node by node, each once: all partial sums."""
        walk = BackwardSlice(
            self._fusion, node.out, lambda _, maker: not is_fused(maker), scalars=True
        )
        return accumulate(rough_instructions(made) for _, made in walk if made is not None)


class _ByViews(_Search):
    """An upper bound of positions, which is quick to find: a position for each path of views.

    Views that undo one another are not recognized.
    """

    def _own(self, value: Value) -> Key:
        return ()

    def _of_operands(
        self, node: Node, key: Key, position: _Position
    ) -> Iterator[tuple[Value, Key, _Position]]:
        form = op_of(node).form
        for number, value in enumerate(v for v in node.operands() if v.is_tensor):
            if isinstance(form, View):
                share = position.share * _share(node, form, value)
                yield value, (key, node.out, number), _Position(share, position.levels + 1)
            else:
                yield value, key, position


class _ByIndex(_Search):
    """Positions as kernels compute them: by their index expressions."""

    def __init__(self, fusion: Fusion) -> None:
        super().__init__(fusion)
        self._axes = AtomicAxes(fusion)
        self._known: dict[Affine, int] = {}

    def _own(self, value: Value) -> Key:
        return self._axes.index(value)

    def _of_operands(
        self, node: Node, key: Key, position: _Position
    ) -> Iterator[tuple[Value, Key, _Position]]:
        assert isinstance(key, tuple)
        read, form = Read(node.out, key), op_of(node).form
        if not isinstance(form, View):
            for value in node.operands():
                if value.is_tensor:
                    yield value, read_as(value, read).index, position
            return
        for source in sources_of(node, read):
            for loaded in loaded_by(source):
                yield loaded.value, loaded.index, self._at(loaded.index, position.share)
            if isinstance(source.operand, Value) and source.operand.is_tensor:
                share = position.share * _share(node, form, source.operand)
                yield source.operand, source.index, self._at(source.index, share)

    def _at(self, index: Index, share: float) -> _Position:
        # A program computes an element that all its positions share once.
        varies = any(item.axes() or item.loaded() for item in index)
        return _Position(share if varies else 0.0, max(map(self._levels, index), default=0))

    def _levels(self, expr: Affine) -> int:
        """Levels of nested sums in an expression."""
        if expr not in self._known:
            bases = [item.base for item, _ in expr.terms]
            inner = [b.expr if isinstance(b, Bounded) else b for b in bases]
            sums = [self._levels(each) for each in inner if isinstance(each, Affine)]
            self._known[expr] = 1 + max(sums, default=0)
        return self._known[expr]


def _share(node: Node, form: View, value: Value) -> float:
    """The share of a view's elements that come from an operand: below 1 for parts of a
    concatenation."""
    if not form.pieces or form.indices:
        return 1.0
    return min(hint(value.tensor.numel) / max(hint(node.out.tensor.numel), 1), 1.0)
