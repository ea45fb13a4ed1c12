"""Makes the anchors of a fusion: each value with its loop nest and read footprint."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from ...ir import Fusion, Node, Value
from ...lazy import cached_property
from ...ops.builder import as_call
from ...ops.table import Scan
from ...shapes import Guard, Index
from ...symbolic.index_expr import Affine, Axis, Bounded, digit, extent, linear, substitute, unravel
from ...symbolic.queries import is_known_equal, is_known_less
from ...symbolic.sizes import hint
from ..access.aliases import buffer_strides
from ..access.atomic_axes import AtomicAxes
from ..access.read_footprint import (
    EMPTY_FOOTPRINT,
    Guards,
    KnownReads,
    Read,
    ReadFootprint,
    ends_kernel,
    is_reducer,
    walk,
)
from ..access.traffic import Traffic, accessed_most, offset_of, order_axes, share_of
from ..segments.member import Member
from ..segments.store import Store
from .anchor import Anchor
from .element_reads import ElementReads
from .fusion_group import FusionGroup
from .regions import NONE_GIVEN, RegionFinder
from .row_shares import over_existing_rows


class AnchorMaker:
    """Makes the anchors of a fusion: puts a value in its loop nest and walks over what it reads.

    Attributes
    ----------
    fusion : Fusion
        The fusion.
    axes : AtomicAxes
        The axes of the dims of its values.
    home_index : dict of Value to Index
        The index at which the result of each reduction, scan or other anchor is computed, in the
        axes of the result. Kernels compute it at no other.
    counts : mapping of str to int
        The number of boxes of values in a given schedule, as for ``RegionFinder``.
    """

    def __init__(self, fusion: Fusion, counts: Mapping[str, int] = NONE_GIVEN) -> None:
        self.fusion = fusion
        self.counts = counts
        self.axes = AtomicAxes(fusion)
        self._moves: dict[tuple[Value, Index, Guards, bool], Traffic] = {}
        self._reads = KnownReads()
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
        """What kernels load and compute for elements."""
        return ElementReads(self.fusion, self.home_index, self._reads)

    @cached_property
    def regions(self) -> RegionFinder:
        """Finds the boxes that stored values are computed in."""
        return RegionFinder(self.elements, self.axes, self.counts)

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

    def parts(self, value: Value) -> list[Anchor]:
        """The anchors of the boxes that a stored value may be computed in. Empty for it whole.

        The largest come first: smaller ones can ride along in their kernels.
        """
        found = [
            Anchor(value, region.axes, (), region.index, EMPTY_FOOTPRINT, part=number)
            for number, region in enumerate(self.regions.found(value))
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
        return replace(anchor, footprint=self._footprint(anchor, self.home_index))

    def _walked_in(self, anchor: Anchor, group: FusionGroup) -> Anchor:
        """An anchor with what it reads in the axes of a group."""
        computed_at = {**self.home_index, **group.computed_at}
        return replace(anchor, footprint=self._footprint(anchor, computed_at))

    def _footprint(self, anchor: Anchor, computed_at: Mapping[Value, Index]) -> ReadFootprint:
        """What an anchor reads. A scatter needs the copy in memory."""
        found = self.walk(anchor.root_reads, computed_at)
        return found if anchor.scatter is None else found.needing(anchor.value)

    def moved(self, anchor: Anchor, group: FusionGroup) -> Anchor | None:
        """The anchor in the loop nest of a group; None where it has no place there.

        Positions of both nests are matched by their row-major number. In a flat kernel they are
        matched in memory order, so that neighbours of a tile are neighbours in memory. A value
        with fewer elements takes the first positions. A value over both the rows of a reduction
        and the elements along them follows that reduction, if the group has it.
        """
        if anchor.member is None and group.reduced:
            rows = is_known_equal(anchor.loops.row_extent, group.loops.row_extent)
            return self._along_rows(anchor, group) if rows else self._in_rows(anchor, group)
        return self._along_rows(anchor, group)

    def _in_rows(self, anchor: Anchor, group: FusionGroup) -> Anchor | None:
        """A value over the rows and along the elements of a reduction, matched as that one was."""
        homes = (self.reducer(member.node) for member in group.members)
        home = next((h for h in homes if {*h.parallel, *h.reduced} == {*anchor.parallel}), None)
        if home is None:
            return None
        at = dict[Axis, Affine]()
        for mine, others in ((home.parallel, group.parallel), (home.reduced, group.reduced)):
            at.update(zip(mine, unravel(_position(others), _extents(mine)), strict=True))
        index = tuple(substitute(item, at) for item in anchor.index)
        found = replace(anchor, index=index, parallel=(*group.parallel, *group.reduced))
        return self._walked_in(found, group)

    def _along_rows(self, anchor: Anchor, group: FusionGroup) -> Anchor:
        """The anchor with its rows, or positions, matched with those of a group by number."""
        index, guards = self._axis_by_axis(anchor, group) or self._by_number(anchor, group)
        member = None
        if anchor.member is not None:
            operand = next(anchor.member.node.operands()).tensor.sizes
            dims = across_dims(anchor.member.node)
            inner = iter(unravel(_position(group.reduced), tuple(operand[d] for d in dims)))
            outer = iter(index)
            place = tuple(next(inner if d in dims else outer) for d in range(len(operand)))
            member = Member(anchor.member.node, index, place, group.reduced)
        anchor = replace(
            anchor,
            index=index,
            member=member,
            parallel=group.parallel,
            reduced=group.reduced,
            guards=guards,
        )
        return self._walked_in(anchor, group)

    def _axis_by_axis(self, anchor: Anchor, group: FusionGroup) -> tuple[Index, Guards] | None:
        """The element and the guards of a box that is little shorter than the nest of a flat group.

        A program has the same rows of both then, and loads once what both read of them, as the
        halves of 57 elements do that are rotated. Matched by number they drift apart.
        """
        few = 2 * hint(anchor.loops.row_extent) < hint(group.loops.row_extent)
        if anchor.part is None or group.reduced or few:
            return None
        mine, others = self._stored_axes(anchor), self._flat_axes(group)
        shorter = [
            (axis, other)
            for axis, other in zip(mine, others, strict=False)
            if not is_known_equal(axis.extent, other.extent)
        ]
        fits = all(is_known_less(axis.extent, other.extent) for axis, other in shorter)
        if len(mine) != len(others) or not shorter or not fits:
            return None
        at = {axis: digit(other) for axis, other in zip(mine, others, strict=True)}
        guards = tuple(Guard(at[axis], 0, axis.extent) for axis, _ in shorter)
        at |= {axis: digit(Bounded(at[axis], axis.extent)) for axis, _ in shorter}
        return tuple(substitute(item, at) for item in anchor.index), guards

    def _by_number(self, anchor: Anchor, group: FusionGroup) -> tuple[Index, Guards]:
        """The element and the guards where positions are matched by their row-major number."""
        position = _position(self._flat_axes(group))
        guard = Guard(position, 0, extent(anchor.parallel))
        return self._at(anchor, position), () if guard.always else (guard,)

    def _stored_axes(self, anchor: Anchor) -> tuple[Axis, ...]:
        """The axes of a box in the order of the memory that it is stored to."""
        stored = self._move(anchor.value, anchor.index, anchor.guards, is_store=True)
        return order_axes(anchor.parallel, [stored])

    def _flat_axes(self, group: FusionGroup) -> tuple[Axis, ...]:
        """A group's axes of results, of a flat kernel in the order of its memory."""
        if group.reduced or len(group.parallel) < 2:
            return group.parallel
        return order_axes(group.parallel, self.traffic(group.reads, group.stores))

    def _at(self, anchor: Anchor, position: Affine) -> Index:
        """The element that an anchor computes at a position; of a stored value as memory lies."""
        if anchor.member is not None or anchor.scatter is not None:
            return unravel(position, anchor.sizes)
        if anchor.part is not None:
            return _in_box(anchor, self._stored_axes(anchor), position)
        strides = buffer_strides(self.fusion, anchor.value)
        dims = sorted(range(len(strides)), key=lambda d: -hint(strides[d]))
        places = unravel(position, tuple(anchor.sizes[d] for d in dims))
        return tuple(places[dims.index(d)] for d in range(len(dims)))

    def traffic(self, reads: Iterable[Read], stores: Iterable[Store] = ()) -> list[Traffic]:
        """Loads and stores of tensors as functions of the axes, in the values' order."""
        found = [self._move(r.value, r.index, r.guards) for r in reads if r.value.is_tensor]
        stored = ((s.value, s.target.index, (*s.guards, *s.target.guards)) for s in stores)
        found += [self._move(*one, is_store=True) for one in stored]
        return accessed_most(found)

    def _move(self, value: Value, index: Index, guards: Guards, is_store: bool = False) -> Traffic:
        """One load or store, cached: groups ask again for each value that they are offered."""
        key = value, index, guards, is_store
        if key not in self._moves:
            offset, share = offset_of(index, buffer_strides(self.fusion, value)), share_of(guards)
            self._moves[key] = Traffic(value, offset, is_store, self.ranks[value], share)
        return self._moves[key]

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


def _in_box(anchor: Anchor, axes: tuple[Axis, ...], position: Affine) -> Index:
    """The element of its value that an anchor over a box computes at a position of its axes."""
    places = unravel(position, _extents(axes))
    # A guard keeps the first axis to its extent where a kernel has more positions.
    at = {
        axis: digit(Bounded(place, axis.extent)) for axis, place in zip(axes, places, strict=True)
    }
    return tuple(substitute(item, at) for item in anchor.index)


def _position(axes: tuple[Axis, ...]) -> Affine:
    return linear(tuple(digit(a) for a in axes), _extents(axes))


def _extents(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    return tuple(axis.extent for axis in axes)
