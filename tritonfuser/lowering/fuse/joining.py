"""``Joining``: whether an anchor may join a fusion group: it is legal, saves time, and
schedulable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...heuristics.problem import Problem
from ...ir import Value
from ...symbolic.choices import choose, env_among
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import hint
from ..access.rough_instructions import is_fused, rough_instructions
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker
from ..groups.fusion_group import FusionGroup
from ..groups.group_graph import GroupGraph
from ..groups.loaded_values import footprint_of
from ..groups.nest_matching import in_nest_of
from ..legality.kernel import OTHER_AXES, grown_with
from ..legality.loop_nests import Nesting, nesting_of
from ..passes.splits.parts import reduced_extents
from .joined_kernels import JoinedKernels, is_slower_joined
from .rules import Rules
from .scheduler_queries.kernels import has_programs, reads_rows_twice, reject_reason, scatters
from .scheduler_queries.splits import shares_rows

SHARES_NOTHING = "it shares nothing with the kernel"

RIDER_BYTES = 1 << 20
"""A result of at most this size joins a flat kernel over more elements. Writing it takes less time
than one more launch."""

BOXES_LAUNCHES = 1.5
"""Most time, in launches, that a kernel may spend at positions that its boxes of a value do not
have. Memory traffic hides some of it. The limit lies between two definitions: at 1.67 launches,
separate kernels take 0.64 of the time of the joint one (H200, measured); at 1.27 launches 1.10 of
it (by the cost model)."""


@dataclass(frozen=True)
class Joining:
    """Decides whether an anchor joins a group: it must be legal, save time, and be schedulable.

    Attributes
    ----------
    maker : AnchorMaker
        Makes the anchors of the fusion.
    problem, one_sided : callable
        The problem of a group, for schedulers; and without the second side of flat tiles.
    co_reduced : frozenset of Value
        Reductions of results of neighbouring rows, which may join the kernel of those rows.
    rules : Rules
        Settings of the grouping.
    """

    maker: AnchorMaker
    problem: Callable[[FusionGroup], Problem]
    one_sided: Callable[[FusionGroup], Problem]
    co_reduced: frozenset[Value]
    rules: Rules

    def joined(self, anchor: Anchor, group: FusionGroup, graph: GroupGraph) -> FusionGroup | str:
        """The group with the anchor in it, or the reason why the anchor cannot join.

        Parameters
        ----------
        anchor : Anchor
            In its own axes.
        group : FusionGroup
            A group of ``graph``.
        """
        co_reduces = anchor.value in self.co_reduced
        nesting = nesting_of(anchor, group, co_reduces, self._rider_bytes(anchor, group))
        if nesting is None:
            return OTHER_AXES
        if nesting is Nesting.OVER_ROWS and not self.rules.over_rows:
            return "what uses the rows reduces them"
        if self._must_be_stored_flat(anchor, group):
            return "it is stored by a kernel without reductions"
        reason = self._why_not_worth(anchor, group, nesting, graph)
        if reason is not None:
            return reason
        grown = grown_with(anchor, group, nesting, self.maker, graph)
        if isinstance(grown, str):
            return grown
        reason = self._why_not_scheduled(anchor, grown, nesting)
        if reason is None:
            reason = self._why_scattered(group, grown)
        if reason is None and nesting is Nesting.SAME_EXTENTS:
            why_not = self._why_not_in_rows if grown.reduced else self._why_slower_joined
            reason = why_not(anchor, group, grown)
        return reason or self._why_elsewhere(anchor, group, graph) or grown

    def _why_elsewhere(self, anchor: Anchor, group: FusionGroup, graph: GroupGraph) -> str | None:
        """None, or why a result along a kernel's rows does not join it: it reads none of the
        tensors of this kernel, and a flat kernel loads them already."""
        tensors = anchor.loaded_tensors
        along = bool(group.reduced) and set(anchor.parallel).issuperset(group.reduced)
        if anchor.member is not None or not along or not tensors:
            return None
        if not group.loaded_tensors.isdisjoint(tensors):
            return None
        largest = max(tensors, key=lambda value: hint(value.tensor.numel))
        others = (g for g in graph.listed if not g.reduced and largest in g.loaded_tensors)
        found = any(not isinstance(self.joined(anchor, other, graph), str) for other in others)
        return "a kernel without reductions loads what it reads" if found else None

    def _must_be_stored_flat(self, anchor: Anchor, group: FusionGroup) -> bool:
        """Whether one of them reduces, and the other stores a value of ``Rules.stored_flat``."""
        if anchor.member is None:
            return bool(group.reduced) and anchor.value.name in self.rules.stored_flat
        return any(store.value.name in self.rules.stored_flat for store in group.stores)

    def _rider_bytes(self, anchor: Anchor, group: FusionGroup) -> int | None:
        """The most bytes of a result with fewer positions than a flat kernel that may join it.

        None for any number, 0 if it may not join. The kernel computes the result at all its
        positions, also at those that the result does not have. That must take less time than the
        launch that is saved; for all boxes of a value together, ``BOXES_LAUNCHES``.
        """
        idle = hint(group.loops.row_extent) - hint(anchor.loops.row_extent)
        device = self.rules.device
        hidden = device.launch_s * device.instructions_per_s
        if anchor.parts > 1:
            hidden *= BOXES_LAUNCHES / anchor.parts
        if idle > 0 and idle * self._instructions(anchor) >= hidden:
            return 0
        return RIDER_BYTES if anchor.part is None else None

    def _instructions(self, anchor: Anchor) -> int:
        """An estimate of the instructions for an element of an anchor.

        Ops that the kernel has already count too: it computes them at other positions.
        """
        if anchor.part is None:
            return sum(rough_instructions(n) for n in anchor.footprint.nodes if is_fused(n))
        return self.maker.elements.instructions(self.maker.elements.needed(anchor.root_reads))

    def _why_not_worth(
        self, anchor: Anchor, group: FusionGroup, nesting: Nesting, graph: GroupGraph
    ) -> str | None:
        """None, or why an anchor and a group gain nothing from sharing a kernel."""
        if nesting is not Nesting.SAME_EXTENTS:
            return None if _shares_work(anchor, group) else SHARES_NOTHING
        if anchor.member is None or self._same_direction(anchor, group, graph):
            return None
        return "it reduces along the other memory direction"

    def _same_direction(self, anchor: Anchor, group: FusionGroup, graph: GroupGraph) -> bool:
        """Whether an anchor and a group's first member reduce along the same memory direction."""
        whole = footprint_of(group, graph, self.maker)
        first = replace(anchor, reduced=group.members[0].across, footprint=whole)
        return self.maker.runs_inner(anchor) == self.maker.runs_inner(first)

    def _why_not_scheduled(
        self, anchor: Anchor, grown: FusionGroup, nesting: Nesting
    ) -> str | None:
        """None, or why no scheduler takes a group with an anchor in it.

        The pointwise scheduler or the transpose one takes each flat group.
        """
        if not grown.reduced:
            return None
        problem = self.problem(grown)
        refused = reject_reason(problem)
        if refused is None and nesting is Nesting.OVER_ROWS:
            assert anchor.member is not None
            if problem.may_split and not shares_rows(problem, anchor.member):
                rows = reduced_extents(anchor.member.node)
                return f"{rows} rows cannot be shared out over programs"
        if refused is None and not self.rules.rereads_rows and reads_rows_twice(problem):
            return "its rows would be read twice"
        return refused

    def _why_scattered(self, group: FusionGroup, grown: FusionGroup) -> str | None:
        """None, or why an anchor should not join: it adds a tensor that no tile is contiguous
        along."""
        if not grown.reduced or not scatters(self.problem(grown)):
            return None
        before = scatters(self.problem(group))
        return None if before else "a large tensor lies across both axes of the kernel's tiles"

    def _why_not_in_rows(
        self, anchor: Anchor, group: FusionGroup, grown: FusionGroup
    ) -> str | None:
        """None, or why a box of a value, which reads no result of a kernel, does not join it.

        If the kernel has too few rows for the device, they may be split later, but the box, whose
        axes are its own, may not. If they are not split, a kernel of the box can use the idle SMs.
        """
        if anchor.member is not None or _follows(anchor, group):
            return None
        moved = in_nest_of(group, anchor, self.maker)
        if moved is None or group.reads.isdisjoint(moved.loaded):
            return SHARES_NOTHING
        fill = has_programs(self.problem(group)) and has_programs(self.problem(grown))
        return None if fill else "its rows are too few for the device"

    def _why_slower_joined(
        self, anchor: Anchor, group: FusionGroup, grown: FusionGroup
    ) -> str | None:
        """None, or why two flat kernels are faster than one over the axes of the group."""
        same = is_known_equal(anchor.loops.row_extent, group.loops.row_extent)
        if not same or self.rules.device.is_cpu:
            return None
        alone = FusionGroup(group.number, anchor.parallel, ()).grown(anchor, False, frozenset())
        both = self.one_sided(group), self.one_sided(alone)
        kernels = JoinedKernels(self.problem(grown), *both)
        env = env_among(*(p.parallel for p in (kernels.joined, kernels.first, kernels.second)))
        lies_across = choose(env, is_slower_joined, kernels)
        return "its tensors lie across the axes of the kernel" if lies_across else None


def _follows(anchor: Anchor, group: FusionGroup) -> bool:
    """Whether an anchor reads results of the group's reductions, at their own index."""
    return not anchor.footprint.at_own_index.isdisjoint(group.computed_at)


def _shares_work(anchor: Anchor, group: FusionGroup) -> bool:
    """Whether joining saves a load or an op. Flat groups take any anchor, since that saves a
    launch."""
    if not group.reduced or _follows(anchor, group):
        return True
    if not anchor.footprint.nodes.isdisjoint(group.nodes):
        return True
    return anchor.member is not None or not group.loaded_tensors.isdisjoint(anchor.loaded_tensors)
