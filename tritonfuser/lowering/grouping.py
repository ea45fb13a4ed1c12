"""Seeds and groups: what wants to be computed, and the kernels-to-be it can join.

A *seed* is a reduction, a scan, or a value to store, with the loop nest it runs over. A *group*
is a kernel in the making. ``fit`` says how a seed's loop nest lies in a group's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from ..affine import Affine, Axis, axes_in_order, digit, linear, unravel
from ..ir import Fusion, Node, Operand, Value
from ..ops.builder import as_call
from ..ops.products import product_bias, product_sizes
from ..ops.table import Scan, View
from ..shapes import Guard, Index
from .aliases import buffer_strides
from .axes import AxisMap
from .contract import is_product
from .reach import NOTHING, Reach, Read, ends_kernel, is_anchor, walk
from .segments import Member, Store
from .traffic import Traffic, offset_of


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


@dataclass(frozen=True)
class Group:
    """A kernel in the making.

    ``outer`` are the members that reduce over its rows instead; ``stored`` what it finds in memory
    though it could compute it.
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

    @property
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


class SeedMaker:
    """Makes seeds: places each value in its atoms' loop nest and walks what it reads."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.axes = AxisMap(fusion)
        self._moves: dict[tuple[Value, Index, bool], Traffic] = {}
        self.places = {
            out: self.axes.index(out)
            for node in fusion.nodes
            if is_anchor(node) or ends_kernel(node)
            for out in node.outs
            if out.is_tensor
        }

    @cached_property
    def ranks(self) -> dict[Value, int]:
        """Places of values in the fusion: the same in whatever order it was recorded."""
        made = (out for node in self.fusion.nodes for out in node.outs)
        return {value: rank for rank, value in enumerate((*self.fusion.inputs, *made))}

    @cached_property
    def depth(self) -> dict[Value, int]:
        """How many reductions, library calls and scatters lie between a value and the inputs."""
        found: dict[Value, int] = {}
        for node in self.fusion.nodes:
            below = max((found.get(v, 0) for v in node.operands()), default=0)
            ends = is_anchor(node) or ends_kernel(node)
            found.update(dict.fromkeys(node.outs, below + ends))
        return found

    def anchor(self, node: Node) -> Seed:
        """The seed of a reduction or scan, in the loop nest of its operand."""
        call = as_call(node)
        operand = call.value("arg")
        atoms = self.axes.atoms(operand)
        is_scan = isinstance(call.op.form, Scan)
        reduced = {a for d in across_dims(node) for a in atoms[d]}
        domain = self.axes.domain(operand)
        parallel = tuple(self.axes.axis(a) for a in domain if a not in reduced)
        across = tuple(self.axes.axis(a) for a in domain if a in reduced)
        member = Member(node, self.places[node.out], self.axes.index(operand), across)
        reach = walk(self.fusion, [Read(operand, member.operand_index)], self.places)
        return Seed(node.out, parallel, across, member.index, reach, member, is_scan)

    def product(self, node: Node, stored: frozenset[Value]) -> Seed:
        """The seed of a matrix product, over its result's axes and one of its own."""
        call = as_call(node)
        index = self.places[node.out]
        inner = Axis(f"k{node.out.index}", product_sizes(call)[3])
        parallel = tuple(self.axes.axis(a) for a in self.axes.domain(node.out))
        *batch, row, column = index
        left, right = (*batch, row, digit(inner)), (*batch, digit(inner), column)
        bias = () if product_bias(call) is None else ((column,),)
        member = Member(node, index, left, (inner,), (right, *bias))
        reach = walk(self.fusion, member.reads, self.places, stored)
        return Seed(node.out, parallel, (inner,), index, reach, member)

    def store(self, value: Value) -> Seed:
        """The seed of a value that is only stored."""
        return self._seed(Store(value, self.axes.index(value)), value)

    def scatter(self, node: Node) -> tuple[Seed, Seed]:
        """The seeds of a scatter: of the copy, and of the elements that are put into it."""
        call = as_call(node)
        under, index = call.value("arg"), call.value("index")
        copy = Store(node.out, self.axes.index(under), source=under)
        put = Store(node.out, self.axes.index(index), (), call.operand("src"), node)
        return self._seed(copy, under), self._seed(put, index)

    def parts(self, value: Value) -> list[Seed]:
        """The seeds of a value's parts, where it is operands side by side."""
        node = self.fusion.producers.get(value)
        form = None if node is None else as_call(node).op.form
        if node is None or not isinstance(form, View) or form.parts is None:
            return []
        found = [part for part in form.parts(as_call(node)) if part[0].tensor.numel]
        return [
            self._seed(Store(value, self.axes.index(part), source=part, start=start), part)
            for part, start in found
        ]

    def _seed(self, store: Store, over: Value) -> Seed:
        """The seed of a store in the loop nest of a value."""
        parallel = tuple(self.axes.axis(a) for a in self.axes.domain(over))
        bare = Seed(store.value, parallel, (), store.index, NOTHING, None, False, store.guards)
        seed = replace(bare, source=store.source, scatter=store.scatter, start=store.start)
        return replace(seed, reach=self._reach(seed, self.places))

    def _reach(self, seed: Seed, places: Mapping[Value, Index]) -> Reach:
        """What a seed reads; a scatter needs the copy to be there."""
        found = walk(self.fusion, seed.starts, places)
        return found if seed.scatter is None else found.needing(seed.value)

    def moved(self, seed: Seed, group: Group) -> Seed:
        """The seed over a group's axes, positions matched in row-major order.

        A value of fewer elements takes the first positions.
        """
        position = _position(group.parallel)
        index = unravel(position, seed.sizes)
        guard = Guard(position, 0, extent(seed.parallel))
        member = None
        if seed.member is not None:
            operand = next(seed.member.node.operands()).tensor.sizes
            dims = across_dims(seed.member.node)
            inner = iter(unravel(_position(group.reduced), tuple(operand[d] for d in dims)))
            outer = iter(index)
            place = tuple(next(inner if d in dims else outer) for d in range(len(operand)))
            member = Member(seed.member.node, index, place, group.reduced)
        seed = replace(
            seed,
            index=index,
            member=member,
            parallel=group.parallel,
            reduced=group.reduced,
            guards=() if guard.always else (guard,),
        )
        return replace(seed, reach=self._reach(seed, {**self.places, **group.places}))

    def traffic(self, reads: Iterable[Read], stores: Iterable[Store] = ()) -> list[Traffic]:
        """Loads and stores of tensors, as functions of the axes, in the values' order."""
        found = [self._move(r.value, r.index, False) for r in reads if r.value.is_tensor]
        found += [self._move(s.value, s.target.index, True) for s in stores]
        return sorted(dict.fromkeys(found), key=lambda t: t.order)

    def _move(self, value: Value, index: Index, is_store: bool) -> Traffic:
        """One load or store; kept, since groups ask again for each value they are offered."""
        key = value, index, is_store
        if key not in self._moves:
            offset = offset_of(index, buffer_strides(self.fusion, value))
            self._moves[key] = Traffic(value, offset, is_store, self.ranks[value])
        return self._moves[key]

    def runs_inner(self, seed: Seed) -> bool:
        """Whether the bytes a reduction reads lie along its reduced axes."""
        along = across = 0
        for item in self.traffic(seed.reach.loads | seed.reach.anchors):
            if item.fastest in seed.reduced:
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


def _position(axes: tuple[Axis, ...]) -> Affine:
    return linear(tuple(digit(a) for a in axes), tuple(a.extent for a in axes))


def extent(axes: Iterable[Axis]) -> int:
    return prod(a.extent for a in axes)


SAME, ROWS, EXTENTS = "same", "rows", "extents"
"""How a seed fits a group: over its axes, over its rows, or over as many positions."""


def fit(seed: Seed, group: Group) -> str | None:
    """How a seed's loop nest lies in a group's, or None."""
    parallel, reduced = set(seed.parallel), set(seed.reduced)
    rows, inner = set(group.parallel), set(group.reduced)
    if seed.is_product or group.product is not None:
        return _behind_product(seed, group)
    if seed.member is None:
        if not inner:
            return SAME if parallel == rows else _by_extent(seed, group) or _as_part(seed, group)
        kept = set(group.chunked) | inner if group.outer else rows
        return SAME if parallel in (rows, rows | inner, kept) else None
    if not inner:
        return None
    if parallel == rows and reduced == inner:
        # A scan runs along its axes in their order.
        in_order = seed.reduced == group.reduced
        return SAME if in_order or not (seed.is_scan or group.scans) else None
    across = set(group.outer[0].across) if group.outer else reduced
    over_rows = bool(reduced) and reduced <= rows and parallel == inner | (rows - reduced)
    over_rows = over_rows and extent(rows) > 0  # of no rows there is still a sum
    if over_rows and reduced == across and group.members and not seed.is_scan:
        return ROWS
    return None if seed.is_scan or group.scans else _by_extent(seed, group)


def _behind_product(seed: Seed, group: Group) -> str | None:
    """What is computed for each element of a product, or reduced along a few of its columns."""
    if seed.is_product or seed.is_scan or group.product is None:
        return None
    if seed.member is None:
        return SAME if set(seed.parallel) == set(group.parallel) else None
    inside = set(seed.parallel) | set(seed.reduced) == set(group.parallel)
    columns = axes_in_order(group.members[0].index[-1])
    last = columns[len(columns) - len(seed.reduced) :]
    fits = inside and set(last) == set(seed.reduced) and group.width in (0, extent(last))
    return SAME if fits else None


def _as_part(seed: Seed, group: Group) -> str | None:
    """A value of a few elements rides along in a kernel over more: that saves a launch."""
    elements = extent(seed.parallel)
    small = elements * seed.value.dtype.info.bits // 8 <= RIDER_BYTES
    return EXTENTS if small and 0 < elements < extent(group.parallel) else None


RIDER_BYTES = 1 << 20
"""Results of at most this size ride along: they take less time to write than a launch does."""


def _by_extent(seed: Seed, group: Group) -> str | None:
    same = extent(seed.parallel) == extent(group.parallel)
    return EXTENTS if same and extent(seed.reduced) == extent(group.reduced) else None
