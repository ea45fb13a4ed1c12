"""How many elements of each value the kernels of a fusion compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ....ir import Fusion, Node, Value
from ....ops.builder import op_of
from ....ops.table import View
from ....symbolic.sizes import hint
from ...access.rough_instructions import is_fused, is_shift


@dataclass(frozen=True)
class Computed:
    """How many elements of each value are computed, counting each time.

    A kernel over [B, H, T, D] computes what has the shape [T, D] B * H times. One that reads a
    value at several indices, as a sum of slices does, computes it at each. Kernels over equally
    many elements are taken for one.

    Attributes
    ----------
    used : dict of Value to int
        Elements that kernels compute, or load if the value is in memory.
    kept : frozenset of Value
        Values that are put in memory: each of their elements is computed once.
    """

    used: dict[Value, int] = field(default_factory=dict)
    kept: frozenset[Value] = frozenset()

    def times(self, value: Value) -> int:
        """Elements of a value that are computed."""
        return value.tensor.numel if value in self.kept else self.used[value]


def computed(fusion: Fusion, keeps: Callable[[Value, int], bool] | None = None) -> Computed:
    """How many elements kernels compute.

    Parameters
    ----------
    keeps : callable, optional
        Whether a value is put in memory, from how many of its elements kernels use. Those of all
        that is computed from it are known by then.
    """
    used: dict[Value, int] = {}
    kept: set[Value] = set()
    # By the number of elements of the kernels that use a value at one index.
    at_index: dict[Value, dict[int, int]] = {}
    shifted: dict[Value, int] = {}

    def total(value: Value) -> int:
        return sum(at_index.get(value, {}).values()) + shifted.get(value, 0)

    for value in fusion.returned:
        at_index[value] = {hint(value.tensor.numel): value.tensor.numel}
    for node in reversed(fusion.nodes):
        count = 0
        for out in node.outs:
            if out.is_tensor:
                count = used[out] = total(out)
                if keeps is not None and keeps(out, count):
                    kept.add(out)
                    count = out.tensor.numel
        for operand in dict.fromkeys(v for v in node.operands() if v.is_tensor):
            if _is_pieced(node):
                # Box by box, no kernel computes a part for elements of another.
                times = hint(count) // max(hint(node.out.tensor.numel), 1)
                shifted[operand] = shifted.get(operand, 0) + operand.tensor.numel * max(times, 1)
            elif is_shift(node):
                shifted[operand] = shifted.get(operand, 0) + count
            else:
                each = count if is_fused(node) else operand.tensor.numel
                at_index.setdefault(operand, {})[hint(each)] = each
    used.update((value, total(value)) for value in fusion.inputs if value.is_tensor)
    return Computed(used, frozenset(kept))


def _is_pieced(node: Node) -> bool:
    form = op_of(node).form
    return isinstance(form, View) and form.pieces
