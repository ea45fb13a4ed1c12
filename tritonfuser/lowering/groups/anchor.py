"""``Anchor``: a reduction, scan, product or stored value, which some kernel has to compute."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import Node, Operand, Value
from ...lazy import cached_property
from ...ops.builder import as_call
from ...shapes.index_map import Guard, Index
from ...symbolic.index_expr import Axis, extent
from ..access.node_kinds import is_core
from ..access.read_footprint import ReadFootprint
from ..access.reads import Read
from ..segments.member import Member
from ..segments.store import Store


@dataclass(frozen=True, slots=True)
class Loops:
    """The axes of a loop nest, as sets.

    Attributes
    ----------
    rows : frozenset of Axis
        The parallel axes, which every result runs along.
    inner : frozenset of Axis
        The axes that are reduced or scanned along.
    row_extent, inner_extent : int
        Products of the extents of either kind; 1 for no axes.
    """

    rows: frozenset[Axis]
    inner: frozenset[Axis]
    row_extent: int
    inner_extent: int

    @staticmethod
    def of(parallel: tuple[Axis, ...], reduced: tuple[Axis, ...]) -> Loops:
        """The loop nest over these axes."""
        return Loops(frozenset(parallel), frozenset(reduced), extent(parallel), extent(reduced))


@dataclass(frozen=True)
class Anchor:
    """A reduction, scan, product or stored value in a loop nest, with its read footprint.

    Attributes
    ----------
    value : Value
        The computed value; the first result of a node with several.
    parallel : tuple of Axis
        The axes that the result runs along.
    reduced : tuple of Axis
        The axes that are reduced or scanned. Empty for a stored value.
    index : Index
        The element of the result that a position of the loop nest computes.
    footprint : ReadFootprint
        All reads, and the nodes that are computed on the way.
    member : Member or None
        The reduction or scan. None for a stored value.
    is_scan : bool
        The member is a scan.
    guards : tuple of Guard
        Conditions on positions: they hold where the loop nest computes an element.
    source : Operand or None
        As in ``Store``.
    scatter : Node or None
        As in ``Store``.
    part : int or None
        As in ``Store``.
    parts : int
        Number of boxes that its value is computed in.
    """

    value: Value
    parallel: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    index: Index
    footprint: ReadFootprint
    member: Member | None = None
    is_scan: bool = False
    guards: tuple[Guard, ...] = ()
    source: Operand | None = None
    scatter: Node | None = None
    part: int | None = None
    parts: int = 1

    @property
    def name(self) -> str:
        """The name that schedules use: of the value, or of its stored part."""
        return self.value.name if self.member is not None else self.store.name

    @property
    def store(self) -> Store:
        """The store of a value that is no reduction or scan."""
        where = (self.value, self.index, self.guards, self.source, self.scatter)
        return Store(*where, self.part)

    @property
    def root_reads(self) -> tuple[Read, ...]:
        """The reads from which ``walk`` finds its footprint."""
        if self.member is None:
            return self.store.root_reads
        return self.member.reads

    @property
    def is_core(self) -> bool:
        """Whether it is an op that a kernel is built around."""
        return self.member is not None and is_core(self.member.node)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape that ``index`` indexes."""
        if self.scatter is not None:
            return as_call(self.scatter).value("index").tensor.sizes
        return self.value.tensor.sizes

    @property
    def values(self) -> tuple[Value, ...]:
        """All results of its node."""
        return (self.value,) if self.member is None else self.member.node.outs

    @cached_property
    def loops(self) -> Loops:
        """Its loop nest."""
        return Loops.of(self.parallel, self.reduced)

    @property
    def loaded(self) -> frozenset[Read]:
        """Its reads of memory and of results of reductions."""
        return self.footprint.loads | self.footprint.reducers

    @cached_property
    def loaded_tensors(self) -> frozenset[Value]:
        """The tensors among ``loaded``."""
        return frozenset(read.value for read in self.loaded if read.value.is_tensor)
