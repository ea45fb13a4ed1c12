"""Grouping by the rules: each anchor joins the first kernel that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from ...heuristics.cost.work import KernelWork
from ...heuristics.problem import Problem
from ...heuristics.programs import Finishing, Sharing
from ...ir import Value
from ...symbolic.queries import known_divisor
from ...symbolic.sizes import hint
from ..access.bytes_moved import held_bytes
from ..axis_order import explicit
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker
from ..groups.fusion_group import FusionGroup
from ..legality.finishing import in_launch_of
from ..legality.kernel import CIRCLE
from ..segments.segment import Segment
from ..tile.arrivals import arrivals
from .core_facts import CoreFacts
from .joining import Joining
from .placed_groups import Scheduled
from .placement import Placement
from .region_work import StoreWork, pays_in_boxes, store_work, threads_at_once, whole_work
from .rewritten import Rewritten
from .rules import Rules
from .scheduler_queries.kernels import propose, refusals, register_limit, why_overruled
from .scheduler_queries.launches import finishing, shares_launch

MOST_REASONS = 8
"""The reason of a cut says of this many kernels at most why they do not take the value in."""


class Grouper(Placement):
    """Groups a fusion: each anchor joins the first group that takes it, or starts one.

    Attributes
    ----------
    joining : Joining
        Decides whether an anchor joins a group.
    """

    def __init__(
        self, found: Rewritten, rules: Rules, co_reduced: frozenset[Value] = frozenset()
    ) -> None:
        facts = CoreFacts(found.fusion, rules.device, rules.fuse_all, rules.misaligned)
        super().__init__(
            AnchorMaker(found.fusion, reads=found.reads), facts, rules.device, found.partial
        )
        self.joining = Joining(self.maker, self.problem, self.one_sided, co_reduced, rules)
        self.place_all()

    def scheduled(self, group: FusionGroup, problem: Problem, work: KernelWork) -> Scheduled:
        """The params that the first accepting scheduler proposes, or the cost model instead."""
        params = propose(problem, work)
        overruled = why_overruled(problem, work, params)
        return Scheduled(params, tuple(refusals(problem)), overruled)

    def with_last_programs(
        self, first: Segment | None, last: Segment, reason: str | None
    ) -> Segment:
        """The segment; computed by the last programs of ``first`` where that saves time."""
        if first is None or reason is not None:
            return last
        assert last.problem is not None
        meeting = arrivals(first, last, block=1)
        facts = Finishing(
            problem=last.problem,
            params=last.kernel_params,
            launch=first.kernel_params,
            counters=meeting.counters,
            width=meeting.width,
            divisor=known_divisor(meeting.width) if meeting.exact else 0,
        )
        params = finishing(facts)
        if params is None:
            return last
        made = in_launch_of(first, replace(last, params=explicit(last, params)))
        return replace(made, finishes=first.name)

    def with_shared_launch(
        self, segments: Sequence[Segment], first: int | None, place: int, reason: str | None
    ) -> Segment:
        """The segment; in the launch of an earlier one where that saves time."""
        piece = segments[place]
        if first is None or reason is not None:
            return piece
        one = segments[first]
        sharing = [s for s in segments[first:place] if one.name in (s.name, s.beside)]
        moved = [s.bytes_read + s.bytes_written for s in (*sharing, piece)]
        facts = Sharing(
            launch=one.kernel_params,
            other=piece.kernel_params,
            moved=sum(moved),
            device=self.device,
        )
        if not shares_launch(facts):
            return piece
        return replace(in_launch_of(one, piece), beside=one.name)

    def with_register_limit(self, segment: Segment) -> Segment:
        """The segment; with the register limit that lets all loads of a step be issued together."""
        if segment.problem is None or not segment.params.has_kernel:
            return segment
        params = segment.kernel_params
        limit = register_limit(segment.problem, segment.work, params)
        return replace(segment, params=replace(params, max_registers=limit)) if limit else segment

    def _place_reducer(self, anchor: Anchor) -> None:
        """Place a reduction or scan. What it reads is stored box by box before where that pays."""
        met = {out for node in anchor.footprint.nodes for out in node.outs}
        roots = frozenset(v for v in self._stored() if v in met and self._is_stored_before(v))
        if not roots:
            self._place(anchor)
            return
        loading = self.maker.loading(anchor, roots)
        for group in self.graph.candidates(loading, self.graph.possible(loading)):
            if group.stored == roots:
                outcome = self.joining.joined(loading, group, self.graph)
                if isinstance(outcome, FusionGroup):
                    self.graph.put(outcome, loading)
                    return
        self._start(self._empty(loading, roots), loading, self.graph.writing(roots))

    def _is_stored_before(self, value: Value) -> bool:
        """Whether a stored value is computed box by box first, so that its reduction loads it.

        The alternative is one kernel that computes it as a whole, reduces it and stores it. That
        loads the value from nowhere, but computes every element by all of its expressions.
        """
        if value in self.graph.owner:
            stores = (store for group in self.groups for store in group.stores)
            return any(s.part is not None for s in stores if s.value == value)
        whole = self.maker.store(value)
        parts = self.maker.parts(whole.store)
        if not parts or value not in self.maker.regions.pieced:
            return False
        before = self.graph, self.cuts
        found = self._placed_on_trial(parts)
        loaded = replace(found, total_bytes=found.total_bytes + held_bytes(self.fusion, value))
        if pays_in_boxes(whole_work(whole, self.maker), loaded, self.device):
            return True
        self.graph, self.cuts = before
        return False

    def _place_whole_or_parts(self, whole: Anchor) -> None:
        """Place a stored value: box by box where that pays."""
        parts = self.maker.parts(whole.store)
        if not parts:
            self._place(whole)
            return
        before = self.graph, self.cuts
        as_whole = self._placed_on_trial([whole])
        if not as_whole.kernels and self._is_quick(whole):
            return
        placed = self.graph, self.cuts
        self.graph, self.cuts = before
        if not pays_in_boxes(as_whole, self._placed_on_trial(parts), self.device):
            self.graph, self.cuts = placed

    def _is_quick(self, whole: Anchor) -> bool:
        """Whether there is a thread for each element of a value, so that boxes save no time."""
        at_once = hint(whole.loops.row_extent) <= threads_at_once(self.device)
        return at_once and not whole.footprint.reducers

    def _placed_on_trial(self, anchors: Sequence[Anchor]) -> StoreWork:
        """Place anchors of a value in a copy of the graph, and keep it; the work of storing it."""
        known = len(self.graph)
        self.graph, self.cuts = self.graph.copy(), {**self.cuts}
        for anchor in anchors:
            self._place(anchor)
        return store_work(anchors[0].value, self.graph, self.maker, len(self.graph) - known)

    def _place(self, anchor: Anchor) -> None:
        refusals: dict[int, str] = {}
        shared = self.maker.over_existing_rows(anchor)
        if shared is not None and self._joins(shared, {}):
            return
        if not self._joins(anchor, refusals):
            self._record_cut(anchor, refusals)
            self._start(self._empty(anchor), anchor)

    def _joins(self, anchor: Anchor, refusals: dict[int, str]) -> bool:
        """Put an anchor into the first kernel that takes it; False where none does."""
        for group in self.graph.candidates(anchor, self.graph.possible(anchor)):
            outcome = self.joining.joined(anchor, group, self.graph)
            if isinstance(outcome, FusionGroup):
                self.graph.put(outcome, anchor)
                return True
            refusals[group.number] = outcome
        return False

    def _record_cut(self, anchor: Anchor, refusals: dict[int, str]) -> None:
        """Record why no kernel takes an anchor in. Kernels that it reads from are named first."""
        kernels = self.graph.kernels
        reasons: list[str] = []
        for group in islice(self.graph.candidates(anchor, kernels), MOST_REASONS):
            why = refusals.get(group.number) or self._refusal(anchor, group)
            reasons.append(f"not in @{group.number}: {why}")
        if not reasons:
            return
        left = kernels.bit_count() - len(reasons)
        if left:
            reasons.append(f"nor in {left} more")
        name = anchor.value.name
        self.cuts[anchor.value] = f"{name} starts @{len(self.graph)}; {'; '.join(reasons)}"

    def _refusal(self, anchor: Anchor, group: FusionGroup) -> str:
        """Why a kernel does not take an anchor in that runs before what the anchor reads."""
        outcome = self.joining.joined(anchor, group, self.graph)
        return CIRCLE if isinstance(outcome, FusionGroup) else outcome
