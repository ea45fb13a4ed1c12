"""``PlacedGroups``: the groups of a fusion, and the decisions by which they become segments.

``scheduling.py`` makes the segments and asks for these. The rules answer in ``grouper.py``, a given
schedule in ``given/groups.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from ...device import DeviceProperties
from ...heuristics.cost.work import KernelWork
from ...heuristics.params import HeuristicParams
from ...heuristics.problem import Problem
from ...ir import Value
from ..access.aliases import BufferView, resolve
from ..access.node_kinds import is_core, is_library
from ..groups.anchor_maker import AnchorMaker
from ..groups.fusion_group import FusionGroup
from ..groups.group_graph import GroupGraph
from ..segments.segment import Segment
from .core_facts import CoreFacts
from .problem_facts import problem_of
from .second_sides import with_second_side


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


class PlacedGroups(ABC):
    """The groups of a fusion, with the decisions that are left when all anchors are placed.

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
        self._one_sided: dict[int, tuple[FusionGroup, Problem]] = {}
        self._problems: dict[int, Problem] = {}

    @property
    def groups(self) -> list[FusionGroup]:
        """The kernels, and what torch runs, by number."""
        return self.graph.listed

    def _buffers(self) -> dict[Value, BufferView]:
        """The views of buffers in which outputs and operands of torch's ops lie."""
        values = [o.value for o in self.fusion.outputs]
        for node in self.fusion.nodes:
            if is_library(node):
                values += [v for v in node.operands() if v.is_tensor]
            elif is_core(node):
                values += self.facts.materialized_operands(node)
        return dict(zip(values, resolve(self.fusion, values), strict=True))

    def problem(self, group: FusionGroup) -> Problem:
        """The facts of a group, cached."""
        known = self._problems.get(id(group))
        if known is None:
            found = self.one_sided(group)
            known = found if group.reduced else with_second_side(found)
            self._problems[id(group)] = known
        return known

    def one_sided(self, group: FusionGroup) -> Problem:
        """The facts of a group, cached; without the second side that flat tiles may get."""
        known = self._one_sided.get(id(group))
        if known is None:
            found = problem_of(group, self.maker, self.facts, self.device, self.partial)
            # The group is kept too, so that no other object gets its id.
            known = self._one_sided[id(group)] = (group, found)
        return known[1]

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
