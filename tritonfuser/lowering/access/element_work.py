"""The instructions of a kernel's nodes for each element of its loop nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
            found.add_reduction(node)
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
    """Running sums of what the nodes of as many elements take."""

    def __init__(self) -> None:
        self.works: dict[str, NodeWork] = {}
        self.draws = 0

    def add(self, node: Node, late: bool) -> None:
        """Add a node, computed before the reductions or after them."""
        found, more = self._of(node.out), instructions_of(node)
        if late:
            after, special = found.after + more.issued, found.special_after + more.sfu
            self._set(replace(found, after=after, special_after=special))
        else:
            before, special = found.before + more.issued, found.special_before + more.sfu
            self._set(replace(found, before=before, special_before=special))

    def add_reduction(self, node: Node) -> None:
        """Add a reduction or scan, by the elements that it reduces."""
        operand = next(v for v in node.operands() if v.is_tensor)
        found = self._of(operand)
        more = replace(
            found,
            reducing=found.reducing + instructions_of(node).issued,
            reductions=found.reductions + 1,
            carried=found.carried + isinstance(op_of(node).form, Reduction),
        )
        self._set(more)

    def _of(self, value: Value) -> NodeWork:
        elements = value.tensor.numel if value.is_tensor else 1
        return self.works.get(repr(elements), NodeWork(elements=elements))

    def _set(self, work: NodeWork) -> None:
        # By their text: to compare sizes that vary could ask for a guard.
        self.works[repr(work.elements)] = work

    def work(self) -> KernelWork:
        return KernelWork(nodes=tuple(self.works.values()), draws=self.draws)
