"""Walks all anchors of a fusion in order and puts each into a group (``Grouper``, ``GivenGroups``).

The order is here. The group of each anchor is up to the subclass: ``grouper.py`` chooses one by the
rules, ``given/groups.py`` takes it from a schedule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from ...device import DeviceProperties
from ...heuristics.cost.work import KernelWork
from ...heuristics.params import HeuristicParams
from ...heuristics.problem import Problem
from ...ir import Node, Value
from ...symbolic.sizes import hint
from ..access.aliases import BufferView, resolve
from ..access.read_footprint import (
    is_core,
    is_library,
    is_materialize,
    is_scatter,
)
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker
from ..groups.cores import core_row
from ..groups.fusion_group import FusionGroup
from ..groups.group_graph import GroupGraph
from ..segments.segment import Segment
from .anchor_order import reductions_first
from .core_facts import CoreFacts
from .problem_facts import problem_of


class Scheduled(NamedTuple):
    """The params of a kernel, and how they were found.

    Attributes
    ----------
    params : HeuristicParams
        The params.
    refusals : tuple of str
        Why each scheduler of higher priority refuses the kernel.
    overruled : str
        The predicted times for which the cost model chose other params than the rules. Empty where
        the params are those of the rules.
    """

    params: HeuristicParams
    refusals: tuple[str, ...] = ()
    overruled: str = ""


class Placement(ABC):
    """Puts the anchors of a fusion into groups.

    Attributes
    ----------
    fusion : Fusion
        The fusion, simplified and concrete.
    device : DeviceProperties
        The device to schedule for.
    maker : AnchorMaker
        Makes the anchors of the fusion.
    facts : CoreFacts
        The facts of core ops, such as matrix products.
    buffers : dict of Value to BufferView
        Where outputs and operands of torch's ops lie in memory.
    partial : frozenset of Value or None
        The results of the first steps of reductions that were split. None where none was split yet.
    graph : GroupGraph
        The groups.
    cuts : dict of Value to str
        For each value that started a kernel, why earlier kernels did not take it in. ``@0`` stands
        for the kernel of group 0.
    """

    def __init__(
        self,
        maker: AnchorMaker,
        facts: CoreFacts,
        device: DeviceProperties,
        partial: frozenset[Value] | None = None,
    ) -> None:
        self.fusion = maker.fusion
        self.device = device
        self.partial = partial
        self.maker = maker
        self.facts = facts
        self.buffers = self._buffers()
        self.graph = GroupGraph()
        self.cuts: dict[Value, str] = {}
        # By identity, since hashing a group takes long.
        self._problems: dict[int, tuple[FusionGroup, Problem]] = {}

    @property
    def groups(self) -> list[FusionGroup]:
        """The kernels, and what torch runs, by number."""
        return self.graph.listed

    @abstractmethod
    def scheduled(self, group: FusionGroup, problem: Problem, work: KernelWork) -> Scheduled:
        """The params of a group's kernel.

        Parameters
        ----------
        group : FusionGroup
            The group.
        problem : Problem
            Its facts.
        work : KernelWork
            The instructions of its nodes.
        """

    def rank(self, number: int) -> int:
        """Sort key of groups that could run next: the lowest rank runs first."""
        return number

    def overlaps_previous(self, group: FusionGroup) -> bool:
        """Whether a group's kernel may start while the one before it ends."""
        return True

    @abstractmethod
    def with_last_programs(
        self, first: Segment | None, last: Segment, reason: str | None
    ) -> Segment:
        """The segment ``last``; computed by the last programs of ``first`` where that is chosen.

        Parameters
        ----------
        first : Segment or None
            The segment whose kernel makes the last of what ``last`` reads. None without such.
        last : Segment
            The segment.
        reason : str or None
            Why the kernel of ``first`` cannot compute it. None where it can.
        """

    @abstractmethod
    def with_shared_launch(
        self, segments: Sequence[Segment], first: int | None, place: int, reason: str | None
    ) -> Segment:
        """The segment at ``place``; in the launch of an earlier one where that is chosen.

        Parameters
        ----------
        segments : sequence of Segment
            All segments, in order.
        first : int or None
            The place of the segment whose launch it could share. None without such.
        place : int
            The place of the segment.
        reason : str or None
            Why it cannot share that launch. None where it can.
        """

    def with_register_limit(self, segment: Segment) -> Segment:
        """The segment; with a limit on the registers of its kernel where that is chosen."""
        return segment

    def problem(self, group: FusionGroup) -> Problem:
        """The facts of a group, cached."""
        known = self._problems.get(id(group))
        if known is None:
            found = problem_of(group, self.maker, self.facts, self.device, self.partial)
            # The group is kept too, so that no other object gets its id.
            known = self._problems[id(group)] = (group, found)
        return known[1]

    @abstractmethod
    def _place(self, anchor: Anchor) -> None:
        """Put an anchor into a kernel, or start one with it."""

    def _place_reducer(self, anchor: Anchor) -> None:
        """Place a reduction or scan."""
        self._place(anchor)

    @abstractmethod
    def _place_whole_or_parts(self, whole: Anchor) -> None:
        """Place a stored value, as a whole or in parts."""

    def _place_store(self, value: Value) -> None:
        """Place a value that is only stored."""
        self._place_whole_or_parts(self.maker.store(value))

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

    def _buffers(self) -> dict[Value, BufferView]:
        """The views of buffers in which outputs and operands of torch's ops lie."""
        values = [o.value for o in self.fusion.outputs]
        for node in self.fusion.nodes:
            if is_library(node):
                values += [v for v in node.operands() if v.is_tensor]
            elif is_core(node):
                values += self.facts.materialized_operands(node)
        return dict(zip(values, resolve(self.fusion, values), strict=True))

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

    def _in_memory(self, values: Sequence[Value]) -> frozenset[Value]:
        """The buffers in which values lie. Those that no kernel stores yet are placed."""
        roots = frozenset(self.buffers[v].root for v in values)
        for root in sorted(roots, key=lambda v: (-hint(v.tensor.numel), self.maker.ranks[v])):
            if root not in self.graph.owner and root not in self.fusion.given:
                self._place_store(root)
        return roots

    def _place_core(self, node: Node) -> None:
        """Start the kernel of a core op. Values that are computed from it may join later."""
        roots = self._in_memory(self.facts.materialized_operands(node))
        anchor = core_row(node).anchor(self.maker, node, roots)
        self._start(self._empty(anchor, roots), anchor, self.graph.writing(roots))

    def _place_scatter(self, node: Node) -> None:
        """Place two stores into one buffer: the copy, and in a later kernel the elements."""
        for anchor in self.maker.scatter(node):
            self._place(anchor)

    def _stored(self) -> list[Value]:
        """The buffers that kernels have to store, each once; inputs are none of them."""
        roots = dict.fromkeys(b.root for b in self.buffers.values())
        return [v for v in roots if v not in self.fusion.given]

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
