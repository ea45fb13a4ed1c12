"""``FusionGroup``: a kernel that is being assembled, which anchors join one after another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...ir import Node, Value
from ...lazy import cached_property
from ...ops.builder import op_of
from ...ops.forms import Random
from ...shapes.index_map import Index
from ...symbolic.index_expr import Axis
from ..access.node_kinds import is_core
from ..access.reads import Read
from ..segments.member import Member
from ..segments.store import Store
from .anchor import Anchor, Loops


@dataclass(frozen=True)
class FusionGroup:
    """A kernel that is being assembled, or an op that torch runs.

    Attributes
    ----------
    number : int
        Its index in the group graph.
    parallel : tuple of Axis
        The axes over rows: every result runs along them, except results of ``outer``.
    reduced : tuple of Axis
        The axes along rows, which ``members`` reduce or scan. Empty for a flat kernel.
    members : tuple of Member
        The reductions and scans along its rows.
    outer : tuple of Member
        The reductions over its rows.
    stores : tuple of Store
        Stores of values other than results of reductions and scans.
    computed_at : dict of Value to Index
        For each result of its reductions and scans, the index at which it is computed, in the axes
        of the group.
    levels : dict of Value to int
        For each result of ``members``, the length of the longest chain of reductions of the group
        that it depends on.
    row_loops : dict of Value to int
        For each result of ``members`` and ``outer``, the number of the loop over rows that computes
        it. Results of ``outer`` are known after the end of their loop.
    needs : frozenset of int
        The groups whose results it reads.
    reads : frozenset of Read
        All its loads: of inputs, and of results of other groups.
    reduced_reads : frozenset of Read
        Those of ``reads`` that its reductions depend on.
    nodes : frozenset of Node
        The elementwise ops and views that it computes.
    full_outputs : bool
        Whether some store runs along ``reduced``.
    dependent_outputs, independent_outputs : bool
        Whether some such store depends on a reduction of the group; whether some does not.
    loops_over_rows : int
        Number of loops over rows that ``outer`` needs, with the stores that depend on it.
    scans : bool
        Whether some member is a scan.
    library : Node or None
        The op that torch runs. None for a kernel.
    stored : frozenset of Value
        Values that it loads, although it could compute them.
    loads_given : bool
        Whether ``stored`` was given by a schedule: no other such value is loaded.
    co_reduced : tuple of Axis
        The axes over rows that one program must have as a whole, because a reduction over them
        reads results of those rows.
    """

    number: int
    parallel: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    members: tuple[Member, ...] = ()
    outer: tuple[Member, ...] = ()
    stores: tuple[Store, ...] = ()
    computed_at: dict[Value, Index] = field(default_factory=dict)
    levels: dict[Value, int] = field(default_factory=dict)
    row_loops: dict[Value, int] = field(default_factory=dict)
    needs: frozenset[int] = frozenset()
    reads: frozenset[Read] = frozenset()
    reduced_reads: frozenset[Read] = frozenset()
    nodes: frozenset[Node] = frozenset()
    full_outputs: bool = False
    dependent_outputs: bool = False
    independent_outputs: bool = False
    loops_over_rows: int = 1
    scans: bool = False
    library: Node | None = None
    stored: frozenset[Value] = frozenset()
    loads_given: bool = False
    co_reduced: tuple[Axis, ...] = ()

    @cached_property
    def loops(self) -> Loops:
        """Its loop nest."""
        return Loops.of(self.parallel, self.reduced)

    @cached_property
    def core(self) -> Node | None:
        """The op that the kernel is built around, if any: it is the first member."""
        return next((m.node for m in self.members if is_core(m.node)), None)

    @cached_property
    def loaded_tensors(self) -> frozenset[Value]:
        """The tensors that it reads from memory."""
        return frozenset(read.value for read in self.reads if read.value.is_tensor)

    @property
    def draws_random(self) -> bool:
        """Whether random numbers are drawn for each element."""
        return any(isinstance(op_of(node).form, Random) for node in self.nodes)

    @property
    def depth(self) -> int:
        """The longest chain of reductions along the rows. 0 without reductions."""
        return max(self.levels.values(), default=-1) + 1

    @property
    def row_passes(self) -> int:
        """Passes over a row that its reductions take. Those over ``co_reduced`` need none."""
        along = (m for m in self.members if m.across != self.co_reduced)
        return len({self.levels[m.node.out] for m in along})

    @property
    def batch_axes(self) -> tuple[Axis, ...]:
        """The axes over rows that the outer members do not reduce."""
        if not self.outer:
            return ()
        return tuple(a for a in self.parallel if a not in self.outer[0].across)

    def root_reads(self) -> list[Read]:
        """The reads of its stores and members, from which ``walk`` finds all that it computes."""
        found = [read for store in self.stores for read in store.root_reads]
        for member in (*self.members, *self.outer):
            found.extend(member.reads)
        return found

    def grown(self, anchor: Anchor, outer: bool, needs: frozenset[int]) -> FusionGroup:
        """The group with one more anchor.

        Parameters
        ----------
        anchor : Anchor
            In the group's axes.
        outer : bool
            Whether the anchor reduces over the group's rows.
        needs : frozenset of int
            The other groups whose results the anchor reads.
        """
        reads = anchor.footprint.loads | self._from_other_groups(anchor)
        group = replace(
            self,
            needs=self.needs | needs,
            reads=self.reads | reads,
            reduced_reads=self.reduced_reads | (reads if anchor.member else frozenset()),
            nodes=self.nodes | anchor.footprint.nodes,
            scans=self.scans or anchor.is_scan,
        )
        if anchor.member is None:
            return group._with_store(anchor)
        loop = self._row_loop_of(anchor)
        group = replace(
            group,
            computed_at={**self.computed_at, **dict.fromkeys(anchor.values, anchor.index)},
            row_loops={**self.row_loops, **dict.fromkeys(anchor.values, loop)},
            loops_over_rows=max(self.loops_over_rows, loop + 1),
        )
        if outer:
            return replace(group, outer=(*self.outer, anchor.member))
        chained = anchor.footprint.at_own_index
        level = max((self.levels.get(v, -1) for v in chained), default=-1) + 1
        levels = {**self.levels, **dict.fromkeys(anchor.values, level)}
        members = (*self.members, anchor.member)
        return replace(group, members=members, levels=levels)

    def _row_loop_of(self, anchor: Anchor) -> int:
        """The first loop over rows in which all values that the anchor reads are known."""
        ended = {value for member in self.outer for value in member.node.outs}
        needed = anchor.footprint.at_own_index & self.row_loops.keys()
        return max((self.row_loops[v] + (v in ended) for v in needed), default=0)

    def _from_other_groups(self, anchor: Anchor) -> frozenset[Read]:
        """The reads of an anchor that are results of other groups."""
        return frozenset(r for r in anchor.footprint.reducers if r.value not in self.computed_at)

    def _with_store(self, anchor: Anchor) -> FusionGroup:
        full = _runs_along(anchor, self.reduced)
        depends = full and not anchor.footprint.at_own_index.isdisjoint(self.computed_at)
        across = self.outer[0].across if self.outer else ()
        loops = self._row_loop_of(anchor) + 1 if _runs_along(anchor, across) else 1
        return replace(
            self,
            stores=(*self.stores, anchor.store),
            full_outputs=self.full_outputs or full,
            dependent_outputs=self.dependent_outputs or depends,
            independent_outputs=self.independent_outputs or (full and not depends),
            loops_over_rows=max(self.loops_over_rows, loops),
        )


def _runs_along(anchor: Anchor, axes: tuple[Axis, ...]) -> bool:
    """Whether the result of an anchor runs along one of these axes."""
    return any(not item.axes().isdisjoint(axes) for item in anchor.index)
