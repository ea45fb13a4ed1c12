"""Which values a kernel loads although it could compute them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from ...ir import Value
from ...symbolic.sizes import hint
from ..access.read_footprint import ReadFootprint
from .anchor_maker import AnchorMaker
from .fusion_group import FusionGroup
from .group_graph import GroupGraph

WORTH_LOADING = 8
"""A value that an earlier kernel stores is loaded where the loop nest has this many times its
elements: computing it anew would repeat the work as often."""


@dataclass(frozen=True)
class LoadedValues:
    """The values that a kernel loads even where it could compute them.

    These are the results of other groups' reductions, the group's ``stored`` values, and small
    values that kernels before it store.

    Attributes
    ----------
    graph : GroupGraph
        All groups.
    group : FusionGroup
        The group of the kernel.
    anchored : container of Value
        The results of all reductions, scans and other anchors.
    size : int
        Positions of the kernel's loop nest.
    """

    graph: GroupGraph
    group: FusionGroup
    anchored: Container[Value]
    size: int

    def __contains__(self, value: object) -> bool:
        if value in self.anchored and value not in self.group.computed_at:
            return True
        if value in self.group.stored:
            return True
        given = self.group.loads_given
        return not given and isinstance(value, Value) and self._is_worth_loading(value)

    def _is_worth_loading(self, value: Value) -> bool:
        writers = self.graph.writers.get(value, 0)
        if not writers or writers & ~self.graph.before(self.group):
            return False
        return WORTH_LOADING * hint(value.tensor.numel) <= hint(self.size)


def footprint_of(group: FusionGroup, graph: GroupGraph, maker: AnchorMaker) -> ReadFootprint:
    """All that a group computes and loads. Results of other groups are among the loads."""
    size = group.loops.row_extent * group.loops.inner_extent
    loaded = LoadedValues(graph, group, maker.home_index, size)
    return maker.walk(group.root_reads(), group.computed_at, loaded)
