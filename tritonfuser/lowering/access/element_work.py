"""The instructions of a kernel's nodes for each element of its loop nest.

A kernel computes a value at each index at which it is needed, and there along all axes that the
index has, whether or not the value is needed everywhere: of a cat of two halves each half is
computed for all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ...heuristics.bounds import Instructions
from ...heuristics.cost.work import KernelWork, NodeWork
from ...ir import Node, Value
from ...ops.builder import op_of
from ...ops.forms import Moments, Random, Reduction, Scan
from ...symbolic.index_expr import Axis, extent
from .instructions import compiled_instructions, instructions_of
from .lone_draws import is_drawn_alone
from .packed_halves import packed_halves
from .reads import Read
from .traffic import axes_of

_REDUCTIONS = Moments | Reduction | Scan


def kernel_work(
    nodes: Sequence[Node],
    computed: Iterable[Read] = (),
    rows: Collection[Axis] = (),
    row: Collection[Axis] = (),
) -> KernelWork:
    """What the nodes of a kernel compute, in recording order.

    Parameters
    ----------
    computed : iterable of Read
        The results of elementwise ops and views, at the indices at which they are computed. Those
        of other nodes are computed once.
    rows, row : collection of Axis
        The axes of the kernel's rows, and those along rows.
    """
    after: set[Value] = set()
    reduced, packed = _reduced(nodes), packed_halves(nodes)
    reads = _by_value(computed)
    found = _Total(reads)
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
            alone = (is_drawn_alone(read, rows, row) for read in reads.get(node.out, ()))
            found.add_draws(node, sum(alone))
            continue
        more = packed[node] if node in packed else compiled_instructions(node)
        found.add(node, more, depends or reduced.isdisjoint(node.outs))
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

    def __init__(self, reads: Mapping[Value, Sequence[Read]]) -> None:
        self.works: dict[str, NodeWork] = {}
        self.draws = self.lone_draws = 0
        self._reads = reads

    def add(self, node: Node, more: Instructions, late: bool) -> None:
        """Add the instructions of a node, computed before the reductions or after them."""
        found = [_elements_at(read) for read in self._reads.get(node.out, ())]
        for elements in found or (_elements(node.out),):
            self._set(self._of(elements).add(more, late))

    def add_draws(self, node: Node, alone: int) -> None:
        """Add random numbers, as often as they are drawn, and how many of them are drawn alone."""
        self.draws += len(self._reads.get(node.out, (1,)))
        self.lone_draws += alone

    def add_reduction(self, node: Node) -> None:
        """Add a reduction or scan, by the elements that it reduces."""
        operand = next(v for v in node.operands() if v.is_tensor)
        found, needs = self._of(_elements(operand)), instructions_of(node)
        more = found._replace(
            reducing=found.reducing + needs.issued,
            fast_reducing=found.fast_reducing + needs.full_rate,
            reductions=found.reductions + 1,
            carried=found.carried + isinstance(op_of(node).form, Reduction),
        )
        self._set(more)

    def _of(self, elements: int) -> NodeWork:
        return self.works.get(repr(elements)) or NodeWork(elements=elements)

    def _set(self, work: NodeWork) -> None:
        # By their text: to compare sizes that vary could ask for a guard.
        self.works[repr(work.elements)] = work

    def work(self) -> KernelWork:
        nodes = tuple(self.works.values())
        return KernelWork(nodes=nodes, draws=self.draws, lone_draws=self.lone_draws)


def _by_value(computed: Iterable[Read]) -> dict[Value, list[Read]]:
    """The reads of each value, one at each index at which it is computed."""
    found: dict[Value, list[Read]] = {}
    for read in {(read.value, read.index): read for read in computed}.values():
        found.setdefault(read.value, []).append(read)
    return found


def _elements_at(read: Read) -> int:
    """The elements that are computed of a value at an index."""
    return extent(frozenset().union(*map(axes_of, read.index)))


def _elements(value: Value) -> int:
    return value.tensor.numel if value.is_tensor else 1
