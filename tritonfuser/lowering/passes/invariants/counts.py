"""How many elements of each value the kernels of a fusion compute, repetitions included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ....ir import Fusion, Node, Value
from ....ops.builder import op_of
from ....ops.table import View
from ....symbolic.queries import is_known_equal
from ....symbolic.sizes import hint
from ...access.rough_instructions import is_fused, is_shift


@dataclass(frozen=True)
class Computed:
    """How many elements of each value are computed, repetitions included.

    A kernel over [B, H, T, D] computes a value of shape [T, D] B * H times. A kernel that reads a
    value at several indices, as a sum of slices does, computes it at each of them. Kernels over
    equally many elements count as one kernel.

    Attributes
    ----------
    used : dict of Value to int
        Elements that kernels compute, or load if the value is in memory.
    materialized : frozenset of Value
        Values in memory: each of their elements is computed once.
    """

    used: dict[Value, int] = field(default_factory=dict)
    materialized: frozenset[Value] = frozenset()

    def times(self, value: Value) -> int:
        """Elements of a value that are computed."""
        return value.tensor.numel if value in self.materialized else self.used[value]


def computed(fusion: Fusion, stores: Callable[[Value, int], bool] | None = None) -> Computed:
    """Counts the elements that kernels compute, from the results backwards.

    Parameters
    ----------
    stores : callable, optional
        ``stores(value, used)``: whether a value is materialized, of which kernels use so many
        elements. It is called for the users of a value before the value itself.
    """
    uses = _Uses()
    used: dict[Value, int] = {}
    materialized: set[Value] = set()
    for value in fusion.returned:
        uses.add_at_one_index(value, value.tensor.numel)
    for node in reversed(fusion.nodes):
        count = 0
        for out in (value for value in node.outs if value.is_tensor):
            # A program computes a single element once, for all of its positions.
            count = used[out] = 1 if is_known_equal(out.tensor.numel, 1) else uses.total(out)
            if stores is not None and stores(out, count):
                materialized.add(out)
                count = out.tensor.numel
        uses.add_operands(node, count)
    used.update((value, uses.total(value)) for value in fusion.inputs if value.is_tensor)
    return Computed(used, frozenset(materialized))


class _Uses:
    """The elements of each value that kernels use, collected from its users."""

    def __init__(self) -> None:
        # For each value, by the number of elements of the kernels that use it at one index: kernels
        # of equal numbers count as one.
        self._at_one_index: dict[Value, dict[int, int]] = {}
        self._at_other_indices: dict[Value, int] = {}

    def total(self, value: Value) -> int:
        """Elements of a value that the nodes added so far use."""
        at_one_index = self._at_one_index.get(value, {})
        return sum(at_one_index.values()) + self._at_other_indices.get(value, 0)

    def add_at_one_index(self, value: Value, count: int) -> None:
        """Add the use of a value at the index of its user, which computes ``count`` elements."""
        self._at_one_index.setdefault(value, {})[hint(count)] = count

    def add_operands(self, node: Node, count: int) -> None:
        """Add the uses by a node of which kernels compute ``count`` elements."""
        for operand in dict.fromkeys(v for v in node.operands() if v.is_tensor):
            if _is_pieced(node):
                # Kernels of boxes compute each part for its own box only.
                times = hint(count) // max(hint(node.out.tensor.numel), 1)
                self._add_at_other_index(operand, operand.tensor.numel * max(times, 1))
            elif is_shift(node):
                self._add_at_other_index(operand, count)
            else:
                self.add_at_one_index(operand, count if is_fused(node) else operand.tensor.numel)

    def _add_at_other_index(self, value: Value, count: int) -> None:
        self._at_other_indices[value] = self._at_other_indices.get(value, 0) + count


def _is_pieced(node: Node) -> bool:
    """Whether a node pieces its result together of several operands, as a concatenation."""
    form = op_of(node).form
    return isinstance(form, View) and form.pieces
