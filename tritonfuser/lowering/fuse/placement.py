"""Walks all anchors of a fusion in order and puts each into a group (``Grouper``, ``GivenGroups``).

Which kernel is the question of the two subclasses: ``grouper.py`` chooses, ``given_groups.py`` does
as it is told. The order in which they are asked is here, and is the same for both.
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
    ends_kernel,
    is_core,
    is_library,
    is_materialize,
    is_reducer,
    is_scatter,
)
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker
from ..groups.cores import core_row
from ..groups.fusion_group import FusionGroup
from ..groups.group_graph import GroupGraph
from ..segments import Segment
from .core_facts import CoreFacts
from .problem_facts import problem_of


class Scheduled(NamedTuple):
    """The params of a kernel, and how they were found.

    Attributes
    ----------
    params : HeuristicParams
        The params.
    refusals : tuple of str
        Why the schedulers before its own refuse it.
    overruled : str
        By what the cost model chose other params than the rules propose. Empty where it did not.
    """

    params: HeuristicParams
    refusals: tuple[str, ...] = ()
    overruled: str = ""


class Placement(ABC):
    """Puts the anchors of a fusion into groups, in one order.

    Attributes
    ----------
    fusion : Fusion
        Simplified and concrete.
    device : DeviceProperties
        The device to schedule for.
    maker : AnchorMaker
        Of the fusion.
    facts : CoreFacts
        Of the ops that kernels are built around.
    buffers : dict of Value to BufferView
        Where outputs and operands of torch's ops lie in memory.
    partial : frozenset of Value or None
        The results of the first steps of reductions that were split. None where none was split yet.
    graph : GroupGraph
        The groups.
    cuts : dict of Value to str
        The value that started a kernel, and why the kernels before took it not in. ``@0`` stands
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
        # By identity: a group is frozen, and to hash all that it has takes longer than to look up.
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
        problem : Problem
            That of the group.
        work : KernelWork
            What it computes.
        """

    def rank(self, number: int) -> int:
        """Sort key of groups that could run next: the lowest rank runs first."""
        return number

    def overlaps_previous(self, group: FusionGroup) -> bool:
        """Whether a group's kernel may start while the one before it ends."""
        return True

    @abstractmethod
    def in_last_programs(self, first: Segment | None, last: Segment, reason: str | None) -> Segment:
        """A segment as it is computed by the kernel of another, or by one of its own.

        Parameters
        ----------
        first : Segment or None
            The segment whose kernel could finish it. None for none.
        last : Segment
            The segment.
        reason : str or None
            Why that kernel cannot. None where it can.
        """

    @abstractmethod
    def in_shared_launch(
        self, segments: Sequence[Segment], first: int | None, place: int, reason: str | None
    ) -> Segment:
        """A segment in the launch of another one, or in one of its own.

        Parameters
        ----------
        segments : sequence of Segment
            All.
        first : int or None
            The place of the segment whose launch it could share. None for none.
        place : int
            Its place.
        reason : str or None
            Why it cannot share that launch. None where it can.
        """

    def with_register_limit(self, piece: Segment) -> Segment:
        """A segment, with a limit on the registers of its kernel where that is chosen."""
        return piece

    def problem(self, group: FusionGroup) -> Problem:
        """What schedulers are asked about a group; made once."""
        known = self._problems.get(id(group))
        if known is None:
            found = problem_of(group, self.maker, self.facts, self.device, self.partial)
            # With the group, so that nothing else is given its identity.
            known = self._problems[id(group)] = (group, found)
        return known[1]

    @abstractmethod
    def _place(self, anchor: Anchor) -> None:
        """Put an anchor into a kernel, or start one with it."""

    def _place_reducer(self, anchor: Anchor) -> None:
        """Place a reduction or scan."""
        self._place(anchor)

    @abstractmethod
    def _place_store(self, value: Value) -> None:
        """Place a stored value, as a whole or in parts."""

    def place_all(self) -> None:
        """Place all that the fusion has."""
        for item in self._ordered():
            if isinstance(item, Anchor):
                self._place_reducer(item)
            elif is_materialize(item):
                self._place(self.maker.materialized(item))
            elif is_scatter(item):
                self._place_scatter(item)
            elif is_core(item):
                self._place_core(item)
            else:
                self._place_library(item)
        for value in sorted(self._stored(), key=self._larger_first):
            if value not in self.graph.owner:
                self._place_store(value)

    def _larger_first(self, value: Value) -> tuple[int, bool]:
        """The largest first: smaller results ride along in their kernels.

        Of one size first those that are pieced together: others are then cut like them.
        """
        return -hint(value.tensor.numel), value not in self.maker.regions.pieced

    def _buffers(self) -> dict[Value, BufferView]:
        """Where values lie that must be in memory: outputs, and operands of torch's ops."""
        values = [o.value for o in self.fusion.outputs]
        for node in self.fusion.nodes:
            if is_library(node):
                values += [v for v in node.operands() if v.is_tensor]
            elif is_core(node):
                values += self.facts.materialised(node)
        return dict(zip(values, resolve(self.fusion, values), strict=True))

    def _ordered(self) -> list[Anchor | Node]:
        """Reductions, library calls and scatters by depth.

        At a depth, reductions along contiguous memory come first. Reductions over their rows can
        join them then.
        """
        depth = self.maker.depth
        found: list[tuple[int, int, Anchor | Node]] = []
        for node in self.fusion.nodes:
            if ends_kernel(node) or is_core(node):
                found.append((depth[node.out], 2, node))
            elif is_reducer(node):
                anchor = self.maker.reducer(node)
                found.append((depth[node.out], int(not self.maker.runs_inner(anchor)), anchor))
        return [item for _, _, item in sorted(found, key=lambda entry: entry[:2])]

    def _place_library(self, node: Node) -> None:
        """A library call ends a kernel: its operands are stored before it."""
        roots = self._in_memory([v for v in node.operands() if v.is_tensor])
        group = FusionGroup(len(self.graph), (), (), needs=self.graph.writing(roots), library=node)
        self.graph.start(group)
        self.graph.owner.update(dict.fromkeys(node.outs, group.number))

    def _in_memory(self, values: Sequence[Value]) -> frozenset[Value]:
        """The buffers that values lie in. Those that no kernel stores yet are placed."""
        roots = frozenset(self.buffers[v].root for v in values)
        for root in sorted(roots, key=lambda v: (-hint(v.tensor.numel), self.maker.ranks[v])):
            if root not in self.graph.owner and root not in self.fusion.given:
                self._place_store(root)
        return roots

    def _place_core(self, node: Node) -> None:
        """Start the kernel that is built around a core op. What is computed from it may join."""
        roots = self._in_memory(self.facts.materialised(node))
        anchor = core_row(node).anchor(self.maker, node, roots)
        self._start(self._empty(anchor, roots), anchor, self.graph.writing(roots))

    def _place_scatter(self, node: Node) -> None:
        """Two stores into one buffer: the copy, then in a later kernel what is put into it."""
        for anchor in self.maker.scatter(node):
            self._place(anchor)

    def _stored(self) -> list[Value]:
        """The buffers to be stored that are no inputs, each once."""
        roots = dict.fromkeys(b.root for b in self.buffers.values())
        return [v for v in roots if v not in self.fusion.given]

    def _empty(self, anchor: Anchor, stored: frozenset[Value] = frozenset()) -> FusionGroup:
        """A group for an anchor to start."""
        return FusionGroup(len(self.graph), anchor.parallel, anchor.reduced, stored=stored)

    def _start(
        self, group: FusionGroup, anchor: Anchor, needs: frozenset[int] = frozenset()
    ) -> None:
        """A new group with an anchor in it."""
        self.graph.start(group)
        needs |= self.graph.needs(anchor, group)
        self.graph.put(group.grown(anchor, False, needs), anchor)
