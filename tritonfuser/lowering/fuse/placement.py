"""Walks all anchors of a fusion in order and puts each into a group (``Grouper``, ``GivenGroups``).

The order is here. The group of each anchor is up to the subclass: ``grouper.py`` chooses one by the
rules, ``given/groups.py`` takes it from a schedule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from ...ir import Node, Value
from ...symbolic.sizes import hint
from ..access.node_kinds import is_core, is_materialize, is_scatter
from ..groups.anchor import Anchor
from ..groups.cores import core_row
from ..groups.fusion_group import FusionGroup
from .anchor_order import reductions_first
from .placed_groups import PlacedGroups


class Placement(PlacedGroups):
    """Puts the anchors of a fusion into groups."""

    # --- the walk --------------------------------------------------------------------------

    def place_all(self) -> None:
        """Place all anchors: reductions and ops that end a kernel first, then stored values."""
        for item in reductions_first(self.maker):
            if isinstance(item, Anchor):
                self._place_reducer(item)
            else:
                self._place_node(item)
        for value in sorted(self._stored(), key=self._larger_first):
            if value not in self.graph.owner:
                self._place_store(value)

    def _stored(self) -> list[Value]:
        """The buffers that kernels have to store, each once; inputs are none of them."""
        roots = dict.fromkeys(b.root for b in self.buffers.values())
        return [v for v in roots if v not in self.fusion.given]

    def _larger_first(self, value: Value) -> tuple[int, int]:
        """Sort key: the largest values first, so that smaller ones can join their kernels.

        Among values of one size, those that concatenations piece together come first: others may
        then be cut into the same boxes. Next come those that are computed of rows' results along
        these rows, so that others that read what these load can join the same kernel.
        """
        if value in self.maker.regions.pieced:
            return -hint(value.tensor.numel), 0
        return -hint(value.tensor.numel), 1 if self._is_along_rows(value) else 2

    def _is_along_rows(self, value: Value) -> bool:
        """Whether a value has the axes that were reduced for what it is computed of."""
        whole = self.maker.store(value)
        owners = (self.graph.owner.get(read.value) for read in whole.footprint.reducers)
        rows = (self.groups[number].reduced for number in owners if number is not None)
        return any(axes and set(whole.parallel).issuperset(axes) for axes in rows)

    # --- what subclasses decide ------------------------------------------------------------

    @abstractmethod
    def _place(self, anchor: Anchor) -> None:
        """Put an anchor into a kernel, or start one with it."""

    @abstractmethod
    def _place_whole_or_parts(self, whole: Anchor) -> None:
        """Place a stored value, as a whole or in parts."""

    def _place_reducer(self, anchor: Anchor) -> None:
        """Place a reduction or scan."""
        self._place(anchor)

    def _place_store(self, value: Value) -> None:
        """Place a value that is only stored."""
        self._place_whole_or_parts(self.maker.store(value))

    # --- ops that end a kernel -------------------------------------------------------------

    def _place_node(self, node: Node) -> None:
        """Place a core op, or an op whose results only later kernels can use."""
        if is_materialize(node):
            self._place_whole_or_parts(self.maker.materialized(node))
        elif is_scatter(node):
            self._place_scatter(node)
        elif is_core(node):
            self._place_core(node)
        else:
            self._place_library(node)

    def _place_library(self, node: Node) -> None:
        """Place an op that torch runs, in a group of its own. Its operands are stored before it."""
        roots = self._in_memory([v for v in node.operands() if v.is_tensor])
        group = FusionGroup(len(self.graph), (), (), needs=self.graph.writing(roots), library=node)
        self.graph.start(group)
        self.graph.owner.update(dict.fromkeys(node.outs, group.number))

    def _place_core(self, node: Node) -> None:
        """Start the kernel of a core op. Values that are computed from it may join later."""
        roots = self._in_memory(self.facts.materialized_operands(node))
        anchor = core_row(node).anchor(self.maker, node, roots)
        self._start(self._empty(anchor, roots), anchor, self.graph.writing(roots))

    def _place_scatter(self, node: Node) -> None:
        """Place two stores into one buffer: the copy, and in a later kernel the elements."""
        for anchor in self.maker.scatter(node):
            self._place(anchor)

    def _in_memory(self, values: Sequence[Value]) -> frozenset[Value]:
        """The buffers in which values lie. Those that no kernel stores yet are placed."""
        roots = frozenset(self.buffers[v].root for v in values)
        for root in sorted(roots, key=lambda v: (-hint(v.tensor.numel), self.maker.ranks[v])):
            if root not in self.graph.owner and root not in self.fusion.given:
                self._place_store(root)
        return roots

    # --- new groups ------------------------------------------------------------------------

    def _empty(self, anchor: Anchor, stored: frozenset[Value] = frozenset()) -> FusionGroup:
        """A group with the axes of an anchor, and nothing in it."""
        return FusionGroup(len(self.graph), anchor.parallel, anchor.reduced, stored=stored)

    def _start(
        self, group: FusionGroup, anchor: Anchor, needs: frozenset[int] = frozenset()
    ) -> None:
        """Start a group with an anchor in it."""
        self.graph.start(group)
        needs |= self.graph.needs(anchor, group)
        self.graph.put(group.grown(anchor, False, needs), anchor)
