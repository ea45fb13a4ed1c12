"""Seeds and groups: what wants to be computed, and the kernels-to-be it can join.

A *seed* is a reduction, a scan, or a value to store, with the loop nest it runs over. A *group*
is a kernel in the making.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from ...ir import Node, Operand, Value
from ...ops.builder import as_call
from ...shapes import Guard, Index
from ...symbolic.index_expr import Axis, extent
from ..access.read_footprint import Reach, Read
from ..passes.contractions_to_mma import is_product
from ..segments import Member, Store


@dataclass(frozen=True, slots=True)
class Loops:
    """The axes of a loop nest as sets, and how many positions there are along each kind."""

    rows: frozenset[Axis]
    inner: frozenset[Axis]
    row_extent: int
    inner_extent: int

    @staticmethod
    def of(parallel: tuple[Axis, ...], reduced: tuple[Axis, ...]) -> Loops:
        return Loops(frozenset(parallel), frozenset(reduced), extent(parallel), extent(reduced))


@dataclass(frozen=True)
class Seed:
    """A reduction, scan or stored value, placed in a loop nest, with what it reads there.

    ``source``, ``scatter`` and ``start`` are those of its store.
    """

    value: Value
    parallel: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    index: Index
    reach: Reach
    member: Member | None = None
    is_scan: bool = False
    guards: tuple[Guard, ...] = ()
    source: Operand | None = None
    scatter: Node | None = None
    start: tuple[int, ...] = ()

    @property
    def store(self) -> Store:
        """What is written, where it is no reduction or scan."""
        return Store(self.value, self.index, self.guards, self.source, self.scatter, self.start)

    @property
    def starts(self) -> tuple[Read, ...]:
        """Where the walk for it begins."""
        if self.member is None:
            return self.store.starts
        return self.member.reads

    @property
    def is_product(self) -> bool:
        return self.member is not None and is_product(self.member.node)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape that ``index`` is one of."""
        if self.scatter is not None:
            return as_call(self.scatter).value("index").tensor.sizes
        over = self.source if self.start else self.value
        assert isinstance(over, Value)
        return over.tensor.sizes

    @property
    def values(self) -> tuple[Value, ...]:
        return (self.value,) if self.member is None else self.member.node.outs

    @cached_property
    def loops(self) -> Loops:
        return Loops.of(self.parallel, self.reduced)


@dataclass(frozen=True)
class Group:
    """A kernel in the making.

    ``outer`` are the members that reduce over its rows instead; ``stored`` what it finds in memory
    though it could compute it; ``together`` the axes of its rows that a program has whole, since
    results of those rows are reduced further in it.
    """

    number: int
    parallel: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    members: tuple[Member, ...] = ()
    outer: tuple[Member, ...] = ()
    stores: tuple[Store, ...] = ()
    places: dict[Value, Index] = field(default_factory=dict)
    levels: dict[Value, int] = field(default_factory=dict)
    needs: frozenset[int] = frozenset()
    reads: frozenset[Read] = frozenset()
    nodes: frozenset[Node] = frozenset()
    full_outputs: bool = False
    dependent_outputs: bool = False
    scans: bool = False
    library: Node | None = None
    stored: frozenset[Value] = frozenset()
    together: tuple[Axis, ...] = ()

    @cached_property
    def loops(self) -> Loops:
        return Loops.of(self.parallel, self.reduced)

    @cached_property
    def product(self) -> Node | None:
        """The matrix product that the kernel is for."""
        return next((m.node for m in self.members if is_product(m.node)), None)

    @property
    def width(self) -> int:
        """Columns of the product that are reduced in the kernel, 0 for none."""
        return extent(self.members[1].across) if self.product and len(self.members) > 1 else 0

    @property
    def depth(self) -> int:
        return max(self.levels.values(), default=-1) + 1

    @property
    def chunked(self) -> tuple[Axis, ...]:
        """The axes of the rows that the outer members keep."""
        if not self.outer:
            return ()
        return tuple(a for a in self.parallel if a not in self.outer[0].across)

    def starts(self) -> list[Read]:
        """Where the walks for all that it computes begin."""
        found = [read for store in self.stores for read in store.starts]
        for member in (*self.members, *self.outer):
            found.extend(member.reads)
        return found

    def grown(self, seed: Seed, outer: bool, needs: frozenset[int]) -> Group:
        """The group with the seed in it."""
        group = replace(
            self,
            needs=self.needs | needs,
            reads=self.reads | seed.reach.loads | self._from_elsewhere(seed),
            nodes=self.nodes | seed.reach.nodes,
            scans=self.scans or seed.is_scan,
        )
        if seed.member is None:
            return group._with_store(seed)
        places = {**self.places, **dict.fromkeys(seed.values, seed.index)}
        if outer:
            return replace(group, outer=(*self.outer, seed.member), places=places)
        level = max((self.levels.get(v, -1) for v in seed.reach.native), default=-1) + 1
        levels = {**self.levels, **dict.fromkeys(seed.values, level)}
        members = (*self.members, seed.member)
        return replace(group, members=members, places=places, levels=levels)

    def _from_elsewhere(self, seed: Seed) -> frozenset[Read]:
        """Results of other kernels that the seed reads."""
        return frozenset(r for r in seed.reach.anchors if r.value not in self.places)

    def _with_store(self, seed: Seed) -> Group:
        full = any(not item.axes().isdisjoint(self.reduced) for item in seed.index)
        depends = full and not seed.reach.native.isdisjoint(self.places)
        return replace(
            self,
            stores=(*self.stores, seed.store),
            full_outputs=self.full_outputs or full,
            dependent_outputs=self.dependent_outputs or depends,
        )
