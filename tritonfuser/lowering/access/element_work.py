"""The instructions of a kernel's nodes for each element of its loop nest."""

from __future__ import annotations

from collections.abc import Sequence

from ...heuristics.cost.work import KernelWork, NodeWork
from ...ir import Node, Value
from ...ops.builder import op_of
from ...ops.table import Moments, Random, Reduction, Scan
from .instructions import instructions_of

_REDUCTIONS = Moments | Reduction | Scan


def kernel_work(nodes: Sequence[Node]) -> KernelWork:
    """What the nodes of a kernel compute, in recording order."""
    after: set[Value] = set()
    reduced = _reduced(nodes)
    found = _Total()
    for node in nodes:
        form = op_of(node).form
        depends = not after.isdisjoint(node.operands())
        if isinstance(form, _REDUCTIONS):
            found.reducing += instructions_of(node).issued
            found.reductions += 1
            found.carried += isinstance(form, Reduction)
            after.update(node.outs)
            continue
        if depends:
            after.update(node.outs)
        if isinstance(form, Random):
            found.draws += 1
            continue
        found.add(node, depends or reduced.isdisjoint(node.outs))
    return found.work()


def _reduced(nodes: Sequence[Node]) -> set[Value]:
    """The values that the reductions among the nodes need."""
    found: set[Value] = set()
    for node in reversed(nodes):
        if isinstance(op_of(node).form, _REDUCTIONS) or not found.isdisjoint(node.outs):
            found.update(node.operands())
    return found


class _Total:
    """A running sum of instructions."""

    def __init__(self) -> None:
        self.elements: dict[str, int] = {}
        self.counts: dict[str, list[float]] = {}
        self.reducing = 0.0
        self.reductions = self.carried = self.draws = 0

    def add(self, node: Node, late: bool) -> None:
        """Add a node, computed before the reductions or after them."""
        elements = node.out.tensor.numel if node.out.is_tensor else 1
        # By their text: to compare sizes that vary could ask for a guard.
        name = repr(elements)
        self.elements[name] = elements
        counts = self.counts.setdefault(name, [0.0] * 4)
        instructions = instructions_of(node)
        counts[late] += instructions.issued
        counts[2 + late] += instructions.sfu

    def work(self) -> KernelWork:
        nodes = (
            NodeWork(
                elements=self.elements[name],
                before=before,
                after=after,
                special_before=special_before,
                special_after=special_after,
            )
            for name, (before, after, special_before, special_after) in self.counts.items()
        )
        return KernelWork(
            nodes=tuple(nodes),
            reducing=self.reducing,
            reductions=self.reductions,
            carried=self.carried,
            draws=self.draws,
        )
