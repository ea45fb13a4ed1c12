"""Grouping by a given schedule: each anchor goes where the schedule puts it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from ...device import DeviceProperties
from ...errors import ParamsError
from ...heuristics.cost.work import KernelWork
from ...heuristics.problem import Problem
from ...heuristics.schedule import SegmentSchedule
from ...ir import Fusion, Node, Value
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker
from ..groups.fusion_group import FusionGroup
from ..groups.group_graph import bits
from ..legality.device_limits import why_not_launched
from ..legality.finishing import in_launch_of
from ..legality.kernel import CIRCLE, grown_with
from ..legality.loop_nests import nesting_of
from ..legality.params import why_not_params
from ..legality.scheduler import why_not_scheduler
from ..schedules import segment_schedule
from ..segments.segment import Segment
from .core_facts import CoreFacts
from .placement import Placement, Scheduled
from .rewritten import Rewritten

_BOX = re.compile(r"(.+)\[[0-9]+\]")


class GivenGroups(Placement):
    """Groups as a schedule has them, where one kernel can hold what the schedule puts into it.

    Attributes
    ----------
    segments : sequence of SegmentSchedule
        The schedule's.
    """

    def __init__(
        self,
        found: Rewritten,
        device: DeviceProperties,
        misaligned: frozenset[Value],
        segments: Sequence[SegmentSchedule],
    ) -> None:
        self.segments = segments
        self._places = _places(segments)
        self._refuse_unknown(found.fusion)
        self._left = set(self._places)
        self._numbers: dict[int, int] = {}
        loads = {name: piece.loads for piece in segments for name in piece.computes}
        facts = CoreFacts(found.fusion, device, True, misaligned, loads)
        self._values = {v.name: v for node in found.fusion.nodes for v in node.outs}
        maker = AnchorMaker(found.fusion, _boxes(self._places))
        super().__init__(maker, facts, device, found.partial)
        self.place_all()
        self._refuse_left()
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

    def refuse_unfit(self, made: Iterable[Segment]) -> None:
        """Refuse fields of the schedule that segments cannot have or that would have no effect.

        Raises
        ------
        ParamsError
            Params do not fit a segment, or it loads and reduces other values than are named.
        """
        for at, piece in enumerate(made):
            place = self._places[_name_of(piece)][0]
            where = f"segments[{place}]"
            if place > at:
                raise ParamsError(
                    f"segments[{at}]: it needs results of segments[{place}], which runs later",
                    hint="Segments are in the order in which they run.",
                )
            # As they were given: those of the segment say what these leave to the rules.
            refusal = why_not_params(piece, self.segments[place].params)
            if refusal is not None:
                raise ParamsError(f"{where}.params: {refusal.reason}", hint=refusal.hint)
            reason = why_not_launched(piece.params, self.device)
            if reason is not None:
                raise ParamsError(f"{where}.params: {reason}")
            alone = piece.params.has_kernel and not piece.launched_by
            if not self.segments[place].overlap and not alone:
                raise ParamsError(f"{where}.overlap: expected true: the segment has no kernel")
            self._refuse_idle(piece, where)

    def _refuse_idle(self, piece: Segment, where: str) -> None:
        """Refuse ``beside``, ``loads`` and ``co_reduced`` where they would have no effect."""
        given = self.segments[self._places[_name_of(piece)][0]]
        if given.beside and not piece.beside:
            why = f"{piece.finishes} finishes it" if piece.finishes else "it has no kernel"
            raise ParamsError(f"{where}.beside: expected false: {why}")
        found = segment_schedule(piece)
        inputs = {value.name for value in piece.inputs}
        for at, name in enumerate(given.loads):
            if name not in inputs or name in given.loads[:at] or name not in found.loads:
                raise ParamsError(f"{where}.loads[{at}]: the kernel reads no {name}, or only so")
        for at, name in enumerate(given.co_reduced):
            if name not in found.co_reduced or name in given.co_reduced[:at]:
                raise ParamsError(
                    f"{where}.co_reduced[{at}]: {name} reduces no results of the kernel's own rows"
                )

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
        place = self._places[_name_of(last)][0]
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
        at = self._places[_name_of(piece)][0]
        if not self.segments[at].beside:
            return piece
        if first is None or reason is not None:
            why = reason or "no kernel comes directly before it"
            raise ParamsError(f"segments[{at}].beside: expected false: {why}")
        return replace(in_launch_of(segments[first], piece), beside=segments[first].name)

    def _segment_of(self, group: FusionGroup) -> int:
        if group.library is not None:
            return self._places[group.library.out.name][0]
        return next(place for place, n in self._numbers.items() if n == group.number)

    def _place(self, anchor: Anchor) -> None:
        place, field = self._found(anchor.name)
        number = self._numbers.get(place)
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
            grown: FusionGroup | str = "it runs over other axes"
        else:
            grown = grown_with(anchor, group, nesting, self.maker, self.graph)
        if isinstance(grown, str):
            raise ParamsError(f"{field}: {anchor.value.name} cannot be in this kernel: {grown}")
        self.graph.put(grown, anchor)

    def _place_store(self, value: Value) -> None:
        """As a whole, or in parts where the schedule names parts."""
        parts = self.maker.parts(value)
        in_parts = parts and value.name not in self._places
        for anchor in parts if in_parts else [self.maker.store(value)]:
            self._place(anchor)

    def _place_library(self, node: Node) -> None:
        place, field = self._found(node.out.name)
        reason = why_not_scheduler(self.segments[place].scheduler, None)
        if reason is not None:
            raise ParamsError(f"{field}: {node.op} of {node.out.name} is run by torch: {reason}")
        super()._place_library(node)

    def _empty(self, anchor: Anchor, stored: frozenset[Value] = frozenset()) -> FusionGroup:
        place, _ = self._found(anchor.name)
        self._numbers[place] = len(self.graph)
        loads = {self._value(name, place) for name in self.segments[place].loads}
        group = super()._empty(anchor, stored | loads)
        return replace(group, loads_given=True)

    def _value(self, name: str, place: int) -> Value:
        if name not in self._values:
            raise ParamsError(
                f"segments[{place}].loads: expected values that kernels compute, got {name!r}"
            )
        return self._values[name]

    def _found(self, name: str) -> tuple[int, str]:
        """The segment that has an anchor, and the path of its name in the schedule."""
        if name not in self._places:
            raise ParamsError(
                f"segments: {name} is in none of them",
                hint="Each reduction, op of torch and stored result has to be in one.",
            )
        self._left.discard(name)
        return self._places[name]

    def _refuse_unknown(self, fusion: Fusion) -> None:
        """Refuse names that no value has before saying what is in no segment: it may be misnamed.

        Raises
        ------
        ParamsError
            A name under computes or stores.
        """
        known = {value.name for node in fusion.nodes for value in node.outs}
        for name, (_, field) in self._places.items():
            if name.partition("[")[0].partition(".")[0] not in known:
                raise ParamsError(
                    f"{field}: this definition computes no {name}",
                    hint="Names are those of the definition that the schedule is given to: "
                    "fd.schedule(inputs) has them, in the order of the printed definition in "
                    "its field values.",
                )

    def _refuse_left(self) -> None:
        for name in sorted(self._left):
            place, field = self._places[name]
            raise ParamsError(
                f"{field}: {name} is nothing that a kernel of this definition has to compute "
                "or store",
                hint=f"fd.schedule(inputs) gives the names, those of segments[{place}] among them.",
            )

    def _link_loads(self) -> None:
        """Kernels run after those that write what they load."""
        for place, number in self._numbers.items():
            group = self.groups[number]
            writers = self.graph.writing(group.stored)
            missing = sorted(v.name for v in group.stored if not self.graph.writing([v]))
            if missing:
                raise ParamsError(f"segments[{place}].loads: no kernel stores {missing[0]}")
            if self.graph.up_to(writers) & bits([number]):
                raise ParamsError(f"segments[{place}].loads: {CIRCLE}")
            self.graph.require(number, writers)


def _boxes(names: Iterable[str]) -> Mapping[str, int]:
    """The number of boxes of each value: ``tv3[0]`` and ``tv3[1]`` are two of ``tv3``."""
    found = (_BOX.fullmatch(name) for name in names)
    return Counter(box[1] for box in found if box is not None)


def _name_of(piece: Segment) -> str:
    """A name by which the schedule refers to a segment: a value that it computes or stores."""
    if piece.members:
        return piece.members[0].node.out.name
    return piece.stores[0].name if piece.stores else piece.nodes[0].out.name


def _places(segments: Iterable[SegmentSchedule]) -> dict[str, tuple[int, str]]:
    """The segment of each name, and the path of the name in the schedule."""
    found: dict[str, tuple[int, str]] = {}
    for place, piece in enumerate(segments):
        if not piece.computes and not piece.stores:
            raise ParamsError(f"segments[{place}]: expected names under computes or stores")
        for field in ("computes", "stores"):
            for at, name in enumerate(getattr(piece, field)):
                path = f"segments[{place}].{field}[{at}]"
                if name in found:
                    raise ParamsError(f"{path}: {name} is in {found[name][1]} already")
                found[name] = place, path
    return found
