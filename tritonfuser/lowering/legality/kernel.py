"""Whether one kernel can hold given values and reductions. A reason is the answer, or None.

What is worth it is not asked here: that is for grouping and for the schedulers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir import Value
from ...shapes.index_map import Index
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker
from ..groups.fusion_group import FusionGroup
from ..groups.group_graph import GroupGraph
from ..groups.nest_matching import in_nest_of
from .loop_nests import Nesting

CIRCLE = "the kernels would depend on each other"
OTHER_AXES = "it runs over other axes"


def grown_with(
    anchor: Anchor, group: FusionGroup, nesting: Nesting, maker: AnchorMaker, graph: GroupGraph
) -> FusionGroup | str:
    """The group with an anchor in it, or why one kernel cannot hold it.

    Parameters
    ----------
    anchor : Anchor
        In its own axes.
    group : FusionGroup
        The kernel to join, one of the ``graph``.
    nesting : Nesting
        How the loop nest of the anchor lies in that of the group.
    """
    if nesting is Nesting.SAME_EXTENTS:
        moved = in_nest_of(group, anchor, maker)
        if moved is None:
            return OTHER_AXES
        anchor = moved
    reason = why_not_one_kernel(anchor, group, nesting, maker.home_index, graph)
    if reason is not None:
        return reason
    needs = graph.needs(anchor, group)
    grown = group.grown(anchor, nesting is Nesting.OVER_ROWS, needs)
    return replace(grown, co_reduced=anchor.reduced) if nesting is Nesting.CO_REDUCED else grown


def why_not_one_kernel(
    anchor: Anchor,
    group: FusionGroup,
    nesting: Nesting,
    home_index: Mapping[Value, Index],
    graph: GroupGraph,
) -> str | None:
    """None, or why one kernel cannot compute an anchor and what a group has already.

    Parameters
    ----------
    anchor : Anchor
        In the group's axes.
    group : FusionGroup
        The kernel to join, one of the ``graph``.
    nesting : Nesting
        How the anchor came to lie in the group's axes.
    home_index : mapping of Value to Index
        The index at which each reduction's result is computed, in the axes of the result.
    """
    for name in _read_elsewhere(anchor, group, nesting, home_index):
        return f"it reads {name} at another index than where the kernel computes it"
    for name in _written_here(anchor, group, graph):
        return f"it needs all of {name} in memory, which the kernel writes"
    if graph.up_to(graph.needs(anchor, group)) >> group.number & 1:
        return CIRCLE
    return None


def _read_elsewhere(
    anchor: Anchor, group: FusionGroup, nesting: Nesting, home_index: Mapping[Value, Index]
) -> list[str]:
    """Results of the group that an anchor reads at other indices than the group computes them.

    The footprint of an anchor in its own axes compares reads with ``home_index``. A group computes
    results at other indices where they were moved to its axes.
    """
    found = anchor.footprint.at_other_index
    if nesting is not Nesting.SAME_EXTENTS:
        own = anchor.footprint.at_own_index
        found = found.union(v for v in own if group.computed_at.get(v) != home_index[v])
    return [v.name for v in found if v in group.computed_at]


def _written_here(anchor: Anchor, group: FusionGroup, graph: GroupGraph) -> list[str]:
    """Scattered values that the group writes and the anchor reads or overwrites."""
    mine = {v for v in anchor.footprint.results if graph.owner.get(v) == group.number}
    return sorted(v.name for v in mine - group.computed_at.keys())
