"""Materializes values that a kernel would compute at many positions for each element of a result.

Each step of a stencil, ``y = (y shifted left + y shifted right) / 2``, doubles the positions at
which the step before it is needed: a kernel for ten steps computes the first one at 1024 positions,
most of which are equal. Such a value is materialized, so that each element is computed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
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
from ...access.reads import Read, loaded_by, read_as, sources_of
from ...access.rough_instructions import is_fused, rough_instructions
from .materialize import materializable
from .position_uses import MOST_POSITIONS, Key, Position, Uses

MOST_REPEATED = 64
"""Up to so many repeated instructions for an element, a value is recomputed: storing and loading it
takes about as long. A cast, or a product of two inputs, is loaded as cheaply as its operands."""

MOST_LEVELS = 32
"""Most levels of nested sums in the expression of a position."""


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


class _PositionSearch(ABC):
    """A walk from results to inputs, with the positions of each value."""

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self._uses: dict[Value, Uses] = {}
        self._results: list[int] = []

    @cached_property
    def _possible(self) -> frozenset[str]:
        return materializable(self._fusion, moved=True)

    @abstractmethod
    def _own_key(self, value: Value) -> Key:
        """The key of a result's own position."""

    @abstractmethod
    def _operand_positions(
        self, node: Node, key: Key, position: Position
    ) -> Iterator[tuple[Value, Key, Position]]:
        """The positions of operands that a node needs for one position of its result."""

    def names(self) -> tuple[str, ...]:
        """The names of the values to materialize."""
        found: list[str] = []
        for output in self._fusion.outputs:
            self._start_from(output.value)
        for node in reversed(self._fusion.nodes):
            if not is_fused(node):
                for value in node.operands():
                    self._start_from(value)
                continue
            if self._is_repeated(node):
                found.append(node.out.name)
                self._uses[node.out] = Uses()
                self._start_from(node.out)
            self._add_operands(node)
        return tuple(reversed(found))

    def _start_from(self, value: Value) -> None:
        """Start from a result of a kernel, which computes it at its own position."""
        if value.is_tensor:
            self._used(value).add(len(self._results), self._own_key(value), Position(1.0, 0))
            self._results.append(hint(value.tensor.numel))

    def _used(self, value: Value) -> Uses:
        return self._uses.setdefault(value, Uses())

    def _add_operands(self, node: Node) -> None:
        """Add the positions of operands for all positions of a node's result."""
        for result, known in self._used(node.out).positions.items():
            for key, position in known.items():
                for value, below, more in self._operand_positions(node, key, position):
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


class _ByViews(_PositionSearch):
    """An upper bound of positions, which is quick to find: a position for each path of views.

    Views that undo one another are not recognized.
    """

    def _own_key(self, value: Value) -> Key:
        return ()

    def _operand_positions(
        self, node: Node, key: Key, position: Position
    ) -> Iterator[tuple[Value, Key, Position]]:
        form = op_of(node).form
        for number, value in enumerate(v for v in node.operands() if v.is_tensor):
            if isinstance(form, View):
                share = position.share * _share(node, form, value)
                yield value, (key, node.out, number), Position(share, position.levels + 1)
            else:
                yield value, key, position


class _ByIndex(_PositionSearch):
    """Positions as kernels compute them: by their index expressions."""

    def __init__(self, fusion: Fusion) -> None:
        super().__init__(fusion)
        self._axes = AtomicAxes(fusion)
        self._known_levels: dict[Affine, int] = {}

    def _own_key(self, value: Value) -> Key:
        return self._axes.index(value)

    def _operand_positions(
        self, node: Node, key: Key, position: Position
    ) -> Iterator[tuple[Value, Key, Position]]:
        assert isinstance(key, tuple)
        read, form = Read(node.out, key), op_of(node).form
        if not isinstance(form, View):
            for value in node.operands():
                if value.is_tensor:
                    yield value, read_as(value, read).index, position
            return
        for source in sources_of(node, read):
            for loaded in loaded_by(source):
                yield loaded.value, loaded.index, self._position_at(loaded.index, position.share)
            if isinstance(source.operand, Value) and source.operand.is_tensor:
                share = position.share * _share(node, form, source.operand)
                yield source.operand, source.index, self._position_at(source.index, share)

    def _position_at(self, index: Index, share: float) -> Position:
        # A program computes an element that all its positions share once.
        varies = any(item.axes() or item.loaded() for item in index)
        return Position(share if varies else 0.0, max(map(self._levels, index), default=0))

    def _levels(self, expr: Affine) -> int:
        """Levels of nested sums in an expression."""
        if expr not in self._known_levels:
            bases = [item.base for item, _ in expr.terms]
            inner = [b.expr if isinstance(b, Bounded) else b for b in bases]
            sums = [self._levels(each) for each in inner if isinstance(each, Affine)]
            self._known_levels[expr] = 1 + max(sums, default=0)
        return self._known_levels[expr]


def _share(node: Node, form: View, value: Value) -> float:
    """The share of a view's elements that come from an operand: below 1 for parts of a
    concatenation."""
    if not form.pieces or form.indices:
        return 1.0
    return min(hint(value.tensor.numel) / max(hint(node.out.tensor.numel), 1), 1.0)
