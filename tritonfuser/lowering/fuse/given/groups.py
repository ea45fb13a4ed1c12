"""Grouping by a given schedule: each anchor goes where the schedule puts it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from ....device import DeviceProperties
from ....errors import ParamsError
from ....heuristics.cost.work import KernelWork
from ....heuristics.problem import Problem
from ....heuristics.schedule import SegmentSchedule
from ....ir import Node, Value
from ...groups.anchor import Anchor
from ...groups.anchor_maker import AnchorMaker
from ...groups.fusion_group import FusionGroup
from ...groups.group_graph import bits
from ...legality.finishing import in_launch_of
from ...legality.kernel import CIRCLE, grown_with
from ...legality.loop_nests import nesting_of
from ...legality.scheduler import why_not_scheduler
from ...segments.segment import Segment
from ..core_facts import CoreFacts
from ..placed_groups import Scheduled
from ..placement import Placement
from ..rewritten import Rewritten
from .names import GivenNames


class NothingReduced(Exception):
    """A schedule that was made at other sizes reduces what has one element at these.

    No error: ``pipeline.lower`` chooses another schedule.
    """


def _reduces_nothing(anchor: Anchor, group: FusionGroup) -> bool:
    """Whether a reduction has one element: the kernel has other axes than at other sizes."""
    members = (*group.members, *((anchor.member,) if anchor.member is not None else ()))
    return any(not member.across for member in members)


class GivenGroups(Placement):
    """Groups as a schedule has them, where one kernel can hold what the schedule puts into it.

    Attributes
    ----------
    segments : sequence of SegmentSchedule
        The schedule's.
    names : GivenNames
        Which of them has each value that a kernel has to compute or store.
    """

    def __init__(
        self,
        found: Rewritten,
        device: DeviceProperties,
        misaligned: frozenset[Value],
        segments: Sequence[SegmentSchedule],
    ) -> None:
        self.segments = segments
        self.names = GivenNames(segments)
        self.names.refuse_unknown(found.fusion)
        self._group_of: dict[int, int] = {}
        loads = {name: piece.loads for piece in segments for name in piece.computes}
        facts = CoreFacts(found.fusion, device, True, misaligned, loads)
        self._values = {v.name: v for node in found.fusion.nodes for v in node.outs}
        maker = AnchorMaker(found.fusion, self.names.boxes())
        super().__init__(maker, facts, device, found.partial)
        self.place_all()
        self.names.refuse_unused()
        self._link_loads()

    def under(self, segments: Sequence[SegmentSchedule]) -> GivenGroups:
        """The same groups, with the params and the launches of a schedule of the same names."""
        made = copy(self)
        made.segments = segments
        return made

    def scheduled(self, group: FusionGroup, problem: Problem, work: KernelWork) -> Scheduled:
        """The schedule's params."""
        place = self._segment_of(group)
        params = self.segments[place].params
        reason = why_not_scheduler(params.scheduler, problem)
        if reason is not None:
            raise ParamsError(
                f"segments[{place}].scheduler: {params.scheduler} cannot be: {reason}"
            )
        return Scheduled(params)

    def rank(self, number: int) -> int:
        """The place of a group's segment in the given schedule."""
        return self._segment_of(self.groups[number])

    def overlaps_previous(self, group: FusionGroup) -> bool:
        """The field ``overlap`` of the group's segment."""
        return self.segments[self._segment_of(group)].overlap

    def with_last_programs(
        self, first: Segment | None, last: Segment, reason: str | None
    ) -> Segment:
        """The segment in the last programs of ``first`` where its field ``finishes`` says so.

        Raises
        ------
        ParamsError
            The kernel whose results it reads cannot compute it as well.
        """
        place = self.names.segment_of(last)
        if not self.segments[place].finishes:
            return last
        if first is None or reason is not None:
            why = reason or "no kernel before it makes what it reads"
            raise ParamsError(f"segments[{place}].finishes: expected false: {why}")
        return replace(in_launch_of(first, last), finishes=first.name)

    def with_shared_launch(
        self, segments: Sequence[Segment], first: int | None, place: int, reason: str | None
    ) -> Segment:
        """The segment in the launch of an earlier one where its field ``beside`` says so.

        Raises
        ------
        ParamsError
            It cannot share the launch before it.
        """
        piece = segments[place]
        at = self.names.segment_of(piece)
        if not self.segments[at].beside:
            return piece
        if first is None or reason is not None:
            why = reason or "no kernel comes directly before it"
            raise ParamsError(f"segments[{at}].beside: expected false: {why}")
        return replace(in_launch_of(segments[first], piece), beside=segments[first].name)

    def _segment_of(self, group: FusionGroup) -> int:
        if group.library is not None:
            return self.names.segment(group.library.out.name)
        return next(place for place, n in self._group_of.items() if n == group.number)

    def _place(self, anchor: Anchor) -> None:
        place, field = self.names.use(anchor.name)
        number = self._group_of.get(place)
        if number is None:
            self._start(self._empty(anchor), anchor)
            return
        group = self.groups[number]
        co_reduces = anchor.value.name in self.segments[place].co_reduced
        nesting = nesting_of(anchor, group, co_reduces)
        shared = self.maker.over_existing_rows(anchor)
        if shared is not None and nesting_of(shared, group, False) is not None:
            anchor, nesting = shared, nesting_of(shared, group, False)
        if nesting is None:
            if _reduces_nothing(anchor, group):
                raise NothingReduced(f"{field}: a reduction has one element")
            grown: FusionGroup | str = "it runs over other axes"
        else:
            grown = grown_with(anchor, group, nesting, self.maker, self.graph)
        if isinstance(grown, str):
            raise ParamsError(f"{field}: {anchor.value.name} cannot be in this kernel: {grown}")
        self.graph.put(grown, anchor)

    def _place_whole_or_parts(self, whole: Anchor) -> None:
        """In parts where the schedule names parts."""
        parts = self.maker.parts(whole.store)
        in_parts = parts and whole.name not in self.names
        for anchor in parts if in_parts else [whole]:
            self._place(anchor)

    def _place_library(self, node: Node) -> None:
        place, field = self.names.use(node.out.name)
        reason = why_not_scheduler(self.segments[place].scheduler, None)
        if reason is not None:
            raise ParamsError(f"{field}: {node.op} of {node.out.name} is run by torch: {reason}")
        super()._place_library(node)

    def _empty(self, anchor: Anchor, stored: frozenset[Value] = frozenset()) -> FusionGroup:
        place, _ = self.names.use(anchor.name)
        self._group_of[place] = len(self.graph)
        loads = {self._value(name, place) for name in self.segments[place].loads}
        group = super()._empty(anchor, stored | loads)
        return replace(group, loads_given=True)

    def _value(self, name: str, place: int) -> Value:
        if name not in self._values:
            raise ParamsError(
                f"segments[{place}].loads: expected values that kernels compute, got {name!r}"
            )
        return self._values[name]

    def _link_loads(self) -> None:
        """Kernels run after those that write what they load."""
        for place, number in self._group_of.items():
            group = self.groups[number]
            writers = self.graph.writing(group.stored)
            missing = sorted(v.name for v in group.stored if not self.graph.writing([v]))
            if missing:
                raise ParamsError(f"segments[{place}].loads: no kernel stores {missing[0]}")
            if self.graph.up_to(writers) & bits([number]):
                raise ParamsError(f"segments[{place}].loads: {CIRCLE}")
            self.graph.require(number, writers)
