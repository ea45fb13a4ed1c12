"""Assigns each reduction and store of a kernel to one of its loops over a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...ir import Fusion, Value
from ...ops.builder import as_call
from ...ops.forms import Scan
from ..access.read_footprint import walk
from ..access.reads import KnownReads, Read
from ..groups.online_pairs import online_pairs
from ..segments.member import Member
from ..segments.segment import Segment
from ..segments.store import Store
from ..tile.nest import Nest
from .reductions.member_tile import in_loop


@dataclass(frozen=True)
class Pass:
    """What one loop over a row writes; a kernel without loops has one pass.

    Attributes
    ----------
    members : list of Member
        Its reductions and scans.
    stores : list of Store
        Its stores.
    independent : list of Store
        Those of them that need no reduction of the kernel.
    """

    members: list[Member] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    independent: list[Store] = field(default_factory=list)


@dataclass(frozen=True)
class PassPlan:
    """The loops of a kernel in order.

    Attributes
    ----------
    passes : tuple of Pass
        The loops. A pass reads results of those before it.
    epilogue : tuple of Store
        Stores behind all loops: they do not run along the loop's axis.
    online : mapping
        A maximum, or a sum of exponentials below it, that are found in one loop -> the member
        that is the maximum.
    """

    passes: tuple[Pass, ...]
    epilogue: tuple[Store, ...]
    online: Mapping[Value, Member]


def plan_passes(
    fusion: Fusion, segment: Segment, nest: Nest, stored: Collection[Value]
) -> PassPlan:
    """The passes of a segment's kernel.

    Parameters
    ----------
    stored : collection of Value
        The values in memory.
    """
    levels = _Levels(fusion, segment, nest, stored)
    epilogue = _epilogue(segment, nest)
    early = [store for store in segment.stores if store not in epilogue]
    # Results of reductions and scans come behind other stores of their pass.
    stores = [s for s in early if s.value not in levels.members]
    stores += [s for s in early if s.value in levels.members]
    store_levels = {store: levels.of_store(store) for store in stores}
    count = 1 + max((*levels.of.values(), *store_levels.values()), default=0)
    passes = tuple(Pass() for _ in range(count))
    for member in segment.members:
        passes[levels.of[member.node.out]].members.append(member)
    for store in stores:
        step = passes[store_levels[store]]
        step.stores.append(store)
        if levels.is_independent(store):
            step.independent.append(store)
    return PassPlan(passes, tuple(epilogue), levels.online)


def _epilogue(segment: Segment, nest: Nest) -> list[Store]:
    """Stores that do not run along the loop."""
    if nest.loop is None:
        return []
    return [
        store
        for store in segment.stores
        if not any(
            axis.name == nest.loop
            for item in nest.maps.blocks.index(store.index)
            for axis in item.axes()
        )
    ]


class _Levels:
    """The pass of each reduction: after the passes of the reductions that it reads.

    Attributes
    ----------
    of : dict
        Result of a member -> number of its pass.
    """

    def __init__(
        self, fusion: Fusion, segment: Segment, nest: Nest, stored: Collection[Value]
    ) -> None:
        self.fusion = fusion
        self.nest = nest
        self.stored = stored
        self.members = {out: m for m in segment.members for out in m.node.outs}
        self.of: dict[Value, int] = {}
        self.online: dict[Value, Member] = {}
        self._computed_at = {out: m.index for out, m in self.members.items()}
        self._reads = KnownReads()
        self._maxima = online_pairs(fusion, self.members)
        for member in segment.members:
            self.of.update(dict.fromkeys(member.node.outs, self._of_member(member)))

    def of_store(self, store: Store) -> int:
        """The pass of a store."""
        found = self.of.get(store.value)
        return self._behind(store.root_reads, self.of) if found is None else found

    def is_independent(self, store: Store) -> bool:
        """Whether a store needs no result of a member."""
        return store.value not in self.members and not self._results(store.root_reads)

    def _of_member(self, member: Member) -> int:
        start = [Read(member.operand, member.operand_index)]
        level = self._behind(start, self.of)
        maximum = self._maxima.get(member.node.out)
        if maximum is None or self.nest.loop != "r" or not in_loop(self.nest, maximum):
            return level
        # A sum of exponentials goes along with its maximum, if it waits for nothing else.
        same_pass = self.of[maximum.node.out]
        if self._behind(start, {**self.of, maximum.node.out: -1}) > same_pass:
            return level
        self.online[maximum.node.out] = self.online[member.node.out] = maximum
        return same_pass

    def _behind(self, starts: Sequence[Read], levels: Mapping[Value, int]) -> int:
        """The first pass in which all operands of these reads are known."""
        found = self._results(starts)
        return max((levels[v] + self._ends_pass(v) for v in found), default=0)

    def _results(self, starts: Sequence[Read]) -> frozenset[Value]:
        """The results of members that these reads need."""
        found = walk(self.fusion, starts, self._computed_at, self.stored, self._reads)
        return found.at_own_index

    def _ends_pass(self, value: Value) -> int:
        """1 for a result known when its loop is over: all but scans, and rows' own results."""
        member = self.members[value]
        if isinstance(as_call(member.node).op.form, Scan):
            return 0
        return int(in_loop(self.nest, member))
