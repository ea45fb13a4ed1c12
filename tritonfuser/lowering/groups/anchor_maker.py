"""``AnchorMaker``: makes the anchors of a fusion, each with its loop nest and read footprint."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ...ir import Fusion, Node, Value
from ...lazy import cached_property
from ...ops.builder import as_call
from ...ops.forms import Scan
from ...shapes.index_map import Index
from ...symbolic.sizes import hint
from ..access.atomic_axes import AtomicAxes
from ..access.node_kinds import ends_kernel, is_reducer
from ..access.read_footprint import EMPTY_FOOTPRINT, ReadFootprint, walk
from ..access.reads import KnownReads, Read
from ..segments.member import Member
from ..segments.store import Store
from .anchor import Anchor
from .element_reads import ElementReads
from .known_traffic import KnownTraffic
from .regions import RegionFinder
from .row_shares import over_existing_rows

_NO_COUNTS: Mapping[str, int] = MappingProxyType({})


class AnchorMaker:
    """Makes the anchors of a fusion: finds the loop nest of a value, and all that it reads.

    Parameters
    ----------
    reads : KnownReads, optional
        Shared with the makers of other rewrites of a fusion.

    Attributes
    ----------
    fusion : Fusion
        The fusion.
    axes : AtomicAxes
        The axes of the dims of its values.
    home_index : dict of Value to Index
        For each result of a reduction, scan or other anchor, the only index at which kernels
        compute it, in the axes of the result.
    counts : mapping of str to int
        The number of boxes of values in a given schedule, by the names of stores.
    traffic : KnownTraffic
        Its loads and stores as functions of axes.
    """

    def __init__(
        self,
        fusion: Fusion,
        counts: Mapping[str, int] = _NO_COUNTS,
        reads: KnownReads | None = None,
    ) -> None:
        self.fusion = fusion
        self.counts = counts
        self.axes = AtomicAxes(fusion)
        self.traffic = KnownTraffic(fusion, self.ranks)
        self._reads = KnownReads() if reads is None else reads
        self.home_index = {
            out: self.axes.index(out)
            for node in fusion.nodes
            if is_reducer(node) or ends_kernel(node)
            for out in node.outs
            if out.is_tensor
        }

    def walk(
        self,
        start: Iterable[Read],
        computed_at: Mapping[Value, Index],
        stored: Container[Value] = frozenset(),
    ) -> ReadFootprint:
        """The footprint of reads, see ``read_footprint.walk``."""
        return walk(self.fusion, start, computed_at, stored, self._reads)

    @cached_property
    def elements(self) -> ElementReads:
        """Loads and instructions of kernels for single elements."""
        return ElementReads(self.fusion, self.home_index, self._reads)

    @cached_property
    def regions(self) -> RegionFinder:
        """Finds the boxes that stored values are computed in."""
        return RegionFinder(self.elements, self.axes)

    @cached_property
    def ranks(self) -> dict[Value, int]:
        """The position of each value in the fusion, inputs first."""
        made = (out for node in self.fusion.nodes for out in node.outs)
        return {value: rank for rank, value in enumerate((*self.fusion.inputs, *made))}

    @cached_property
    def depth(self) -> dict[Value, int]:
        """How many reductions, library calls and scatters lie between a value and the inputs."""
        found: dict[Value, int] = {}
        for node in self.fusion.nodes:
            below = max((found.get(v, 0) for v in node.operands()), default=0)
            ends = is_reducer(node) or ends_kernel(node)
            found.update(dict.fromkeys(node.outs, below + ends))
        return found

    def reducer(self, node: Node) -> Anchor:
        """The anchor of a reduction or scan, in the loop nest of its operand."""
        call = as_call(node)
        operand = call.value("arg")
        atoms = self.axes.atoms(operand)
        is_scan = isinstance(call.op.form, Scan)
        reduced = {a for d in across_dims(node) for a in atoms[d]}
        domain = self.axes.domain(operand)
        parallel = tuple(self.axes.axis(a) for a in domain if a not in reduced)
        across = tuple(self.axes.axis(a) for a in domain if a in reduced)
        member = Member(node, self.home_index[node.out], self.axes.index(operand), across)
        footprint = self.walk([Read(operand, member.operand_index)], self.home_index)
        return Anchor(node.out, parallel, across, member.index, footprint, member, is_scan)

    def loading(self, anchor: Anchor, stored: frozenset[Value]) -> Anchor:
        """The anchor with the values ``stored`` loaded, although it could compute them."""
        return replace(anchor, footprint=self.walk(anchor.root_reads, self.home_index, stored))

    def over_existing_rows(self, anchor: Anchor) -> Anchor | None:
        """A reduction of padded parts over the rows without padding; None for any other anchor."""
        if anchor.member is None or anchor.is_scan or anchor.is_core:
            return None
        member = over_existing_rows(self.fusion, self.axes, anchor.member.node)
        if member is None:
            return None
        assert member.share is not None
        domain = (self.axes.axis(atom) for atom in self.axes.domain(member.share.source))
        parallel = tuple(axis for axis in domain if axis not in member.across)
        footprint = self.walk(member.reads, self.home_index)
        return Anchor(anchor.value, parallel, member.across, member.index, footprint, member)

    def store(self, value: Value) -> Anchor:
        """The anchor of a value that is only stored."""
        return self._anchor(Store(value, self.axes.index(value)), value)

    def scatter(self, node: Node) -> tuple[Anchor, Anchor]:
        """The anchors of a scatter: the copy, and the elements that are put into it."""
        call = as_call(node)
        under, index = call.value("arg"), call.value("index")
        copy = Store(node.out, self.axes.index(under), source=under)
        put = Store(node.out, self.axes.index(index), (), call.operand("src"), node)
        return self._anchor(copy, under), self._anchor(put, index)

    def materialized(self, node: Node) -> Anchor:
        """The anchor of a materialized value: its operand is computed and stored."""
        operand = as_call(node).value("arg")
        return self._anchor(Store(node.out, self.axes.index(operand), source=operand), operand)

    def parts(self, store: Store) -> list[Anchor]:
        """The anchors of the boxes that a stored value may be computed in. Empty for it whole.

        The largest come first: smaller ones can ride along in their kernels.

        Parameters
        ----------
        store : Store
            Of a value as a whole, or of a materialized one, whose source is computed.
        """
        value, source = store.value, store.source
        computed = source if isinstance(source, Value) else value
        regions = self.regions.found(computed, self.counts.get(value.name))
        whole = Anchor(value, (), (), store.index, EMPTY_FOOTPRINT, source=source)
        found = [
            replace(whole, parallel=r.axes, index=r.index, part=at, parts=len(regions))
            for at, r in enumerate(regions)
        ]
        found.sort(key=lambda anchor: -hint(anchor.loops.row_extent))
        return [self._walked(anchor) for anchor in found]

    def _anchor(self, store: Store, over: Value) -> Anchor:
        """The anchor of a store in the loop nest of a value."""
        parallel = tuple(self.axes.axis(a) for a in self.axes.domain(over))
        bare = Anchor(
            store.value, parallel, (), store.index, EMPTY_FOOTPRINT, None, False, store.guards
        )
        return self._walked(replace(bare, source=store.source, scatter=store.scatter))

    def _walked(self, anchor: Anchor) -> Anchor:
        """An anchor with what it reads in its own axes."""
        return replace(anchor, footprint=self.footprint(anchor, self.home_index))

    def footprint(self, anchor: Anchor, computed_at: Mapping[Value, Index]) -> ReadFootprint:
        """What an anchor reads. A scatter needs the copy in memory."""
        found = self.walk(anchor.root_reads, computed_at)
        return found if anchor.scatter is None else found.needing(anchor.value)

    def runs_inner(self, anchor: Anchor) -> bool:
        """Whether the bytes a reduction reads lie along its reduced axes."""
        along = across = 0
        for item in self.traffic(anchor.footprint.loads | anchor.footprint.reducers):
            if item.fastest in anchor.reduced:
                along += item.bytes
            elif item.fastest is not None:
                across += item.bytes
        return along >= across


def across_dims(node: Node) -> tuple[int, ...]:
    """The operand's dims that a reduction or scan runs along."""
    call = as_call(node)
    if isinstance(call.op.form, Scan):
        dim = call.attrs["dim"]
        assert isinstance(dim, int)
        return (dim,)
    return call.dims()
