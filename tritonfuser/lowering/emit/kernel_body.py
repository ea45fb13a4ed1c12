"""Segment and params in, kernel text out: the loop nests of all schedulers.

A kernel is a grid axis ``x`` (``s`` where programs walk over rows), a tile over it, and for
reductions a second tile axis ``r`` that is either whole in registers or walked in a loop, once a
pass. Values are pulled into the scopes by ``ValueWriter``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...dtypes import DataType
from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.table import Moments, Reduction, Scan
from ..access.read_footprint import Read, walk
from ..access.traffic import offset_of
from ..groups.online_pairs import online_pairs
from ..segments import Member, Segment, Store
from ..tile.nest import Nest
from ..tile.tile import Tile
from .eviction_hints import with_evictions
from .expressions import cast_text, typed
from .online_softmax import Online
from .prefetch import is_ahead, load_ahead
from .reduce_tile import Finish
from .scan_tile import REDUCERS
from .tile_axes import TileWriter
from .writer import Line, Name


class KernelBody(TileWriter):
    """Writes the body of one segment's kernel."""

    def __init__(
        self,
        fusion: Fusion,
        segment: Segment,
        nest: Nest,
        stored: Mapping[Value, tuple[int, ...]],
        outputs: Mapping[Value, tuple[int, ...]],
        wide_index: bool,
    ) -> None:
        super().__init__(fusion, nest, stored, wide_index)
        self.outputs = outputs
        self.segment = segment
        self.members = {out: m for m in segment.members for out in m.node.outs}
        self._places = {out: m.index for out, m in self.members.items()}
        self._tops = online_pairs(fusion, self.members)
        self.online: dict[Value, Online] = {}
        self._at_end = False

    # -- body ----------------------------------------------------------------

    def write(self) -> list[Line]:
        """All lines of the function body."""
        self._axes()
        for members, stores in self._passes():
            self._pass(members, stores)
        for store in self._late_stores():
            self._store(store)
        lines = self.writer.scopes[0].lines
        if self.nest.loop == "r" and self.nest.evict_hints:
            lines = with_evictions(lines, self._shared())
        return lines or [Line("pass")]

    def _shared(self) -> frozenset[str]:
        """The tensors of which every program reads the same elements."""
        spread = frozenset(tile.name for tile, _ in self.nest.grid)
        return frozenset(
            read.value.name
            for read in self.loaded
            if not spread & {axis.name for item in read.index for axis in item.axes()}
        )

    # -- passes --------------------------------------------------------------

    def _levels(self) -> tuple[dict[Value, int], dict[Store, int]]:
        """The pass each member and each store belongs to: behind the reductions it reads."""
        member_level: dict[Value, int] = {}
        for member in self.segment.members:
            start = Read(next(member.node.operands()), member.operand_index)
            level = self._level([start], member_level)
            level = self._joined(member, level, [start], member_level)
            member_level.update(dict.fromkeys(member.node.outs, level))
        store_level: dict[Store, int] = {}
        for store in self.segment.stores:
            if store.value not in self.members:
                store_level[store] = self._level(store.starts, member_level)
        return member_level, store_level

    def _joined(
        self,
        member: Member,
        level: int,
        starts: Sequence[Read],
        levels: Mapping[Value, int],
    ) -> int:
        """The pass of a sum that goes along with its maximum, if nothing else makes it wait."""
        top = self._tops.get(member.node.out)
        if top is None or self.nest.loop != "r" or not self.walks(top):
            return level
        if self._level(starts, {**levels, top.node.out: -1}) > levels[top.node.out]:
            return level
        if top.node.out not in self.online:
            self.online[top.node.out] = Online(self, top)
        self.online[member.node.out] = self.online[top.node.out]
        return levels[top.node.out]

    def _level(self, starts: Sequence[Read], levels: Mapping[Value, int]) -> int:
        footprint = walk(self.fusion, starts, self._places, self.stored)
        return max((levels[v] + self._closes_pass(v) for v in footprint.at_own_index), default=0)

    def _closes_pass(self, value: Value) -> int:
        """1 for a result known when its loop is over: all but scans, and rows' own results."""
        member = self.members[value]
        if isinstance(as_call(member.node).op.form, Scan):
            return 0
        return int(self.walks(member))

    def walks(self, member: Member) -> bool:
        """Whether the member reduces along the axis the kernel walks in a loop."""
        along = frozenset(axis.name for a in member.across for axis in self.nest.axes[a].axes())
        return self.nest.loop is not None and self.nest.loop in along

    def _passes(self) -> list[tuple[list[Member], list[Store]]]:
        member_level, store_level = self._levels()
        late = self._late_stores()
        early = [s for s in self.segment.stores if s in store_level and s not in late]
        count = 1 + max([*member_level.values(), *(store_level[s] for s in early)], default=0)
        passes: list[tuple[list[Member], list[Store]]] = [([], []) for _ in range(count)]
        for member in self.segment.members:
            passes[member_level[member.node.out]][0].append(member)
        for store in early:
            passes[store_level[store]][1].append(store)
        scans = [s for s in self.segment.stores if s.value in self.members and s not in late]
        for store in scans:
            passes[member_level[store.value]][1].append(store)
        return passes

    def _late_stores(self) -> list[Store]:
        """Stores that do not run along the loop: they come when all passes are over."""
        loop = self.nest.loop
        if loop is None:
            return []
        return [
            s
            for s in self.segment.stores
            if not any(
                axis.name == loop for item in self.nest.place(s.index) for axis in item.axes()
            )
        ]

    def _pass(self, members: list[Member], stores: list[Store]) -> None:
        loop = self.nest.loop
        if loop is None:
            self._fetch(members)
            for member in members:
                self._reduce(member)
            for store in stores:
                self._store(store)
            return
        self.writer.open_loop(loop)
        self._fetch(members)
        ends = [self._reduce(member) for member in members]
        walked = {store: self.pieces(store.index) if loop == "r" else range(1) for store in stores}
        for store, pieces in walked.items():
            self._store(store, pieces[:1] if loop == "r" else None)
        tile = next(t for t in self.nest.tiles if t.name == loop)
        back = self._at_end and self._may_turn(members, tile)
        self._at_end = not back
        self.writer.close_loop(self._loop_header(tile, back), *self._position(tile, back))
        for end in ends:
            if end is not None:
                end()
        for store, pieces in walked.items():
            self._store(store, pieces[1:])

    def _may_turn(self, members: list[Member], tile: Tile) -> bool:
        """Whether a walk may begin at the end: lanes count steps, of which the last has less."""
        counts = any(isinstance(as_call(m.node).op.form, Moments) for m in members)
        return self.nest.backwards and not (counts and tile.masked)

    def _fetch(self, members: Sequence[Member]) -> None:
        """Read what is reduced first: all loads are under way before a sum waits for some."""
        for member in members:
            start = member.reads[0]
            if member.node.out in self.online:
                continue
            if walk(self.fusion, [start], self._places, self.stored).at_own_index:
                continue
            pieces = self.pieces(member.operand_index)
            # What is behind a walk over rows is not held in registers all through it.
            for piece in pieces[:1] if self.nest.loop == "r" else pieces:
                with self.on(piece):
                    self.read(Read(start.value, self.place(start.index)))

    def _position(self, tile: Tile, back: bool) -> list[str]:
        """Where a step of the loop is."""
        name, lines = tile.name, []
        if back:
            # Of whole blocks, so that Triton sees vectors.
            last = f"({tile.end} - 1) // {tile.block} * {tile.block}"
            lines.append(f"{name}_start = {last} - {name}_back")
        if tile.block is not None:
            lines.append(f"{name} = {name}_start + {name}_base")
        if tile.masked:
            lines.append(f"{name}_mask = {name} < {tile.axis.extent}")
        return lines

    def _loop_header(self, tile: Tile, back: bool = False) -> str:
        stages = self.segment.params.num_stages
        moving = f"{tile.name}_back" if back else f"{tile.name}_start"
        name, step = (tile.name, "1") if tile.block is None else (moving, tile.block)
        steps = f"{tile.end}" if tile.block is None else f"0, {tile.end}, {step}"
        if stages > 1:
            return f"for {name} in tl.range(0, {tile.end}, {step}, num_stages={stages}):"
        return f"for {name} in range({steps}):"

    def _load(self, read: Read) -> Name:
        if not is_ahead(self, read):
            return super()._load(read)
        self.loaded.append(read)
        name = load_ahead(self, read)
        self.bind(read, name)
        return name

    # -- reductions ----------------------------------------------------------

    def _reduce(self, member: Member) -> Finish | None:
        """Write a member's reduction; returns what to write when its loop is over."""
        pair = self.online.get(member.node.out)
        if pair is not None:
            return pair.write(member)
        form = as_call(member.node).op.form
        assert isinstance(form, Reduction | Moments | Scan)
        return REDUCERS[type(form)](self, member, form)

    def across(self, member: Member) -> Tile:
        """The tile axis a member reduces along."""
        axes = self.nest.piece(self._piece)
        names = {axis.name for a in member.across for axis in axes[a].axes()}
        # The last: where tiles begin at vectors, a place along a row depends on the row too.
        met = [tile for tile in reversed(self.nest.tiles) if tile.name in names]
        blocks = [tile for tile in met if tile.block is not None]
        return next(iter((*blocks, *met, self.nest.tiles[-1])))

    def reduced_operand(self, member: Member, dtype: DataType, identity: str) -> Name:
        """The operand over the whole tile, with ``identity`` where the tile reaches past."""
        tile = self.across(member)
        operand = next(member.node.operands())
        read = Read(operand, self.place(member.operand_index))
        name = self.cast(self.read(read), dtype, operand, member.node.loc)
        if tile.masked:
            text = f"tl.where({tile.name}_mask, {name.text}, {identity})"
            dims = name.dims | {tile.name} | self.rows_of(tile)
            return self.define(operand, text, dims, dtype, None, "_masked")
        if tile.name not in name.dims:
            dims = name.dims | {tile.name}
            text = f"tl.broadcast_to({name.text}, {self.shape(dims)})"
            return self.define(operand, text, dims, dtype, None, "_whole")
        return name

    def result_dims(self, member: Member, operand: Name) -> frozenset[str]:
        return operand.dims - {self.across(member).name}

    def keep_dim(self, member: Member, text: str) -> str:
        """A reduction's result with its axis back as size 1, so that it broadcasts."""
        place = self.across(member).place
        if self.rank == 1:
            return text
        kept = ["None" if i == place else ":" for i in range(self.rank)]
        return f"{text}[{', '.join(kept)}]"

    def axis_number(self, member: Member) -> int:
        return self.across(member).place

    def place_result(self, member: Member, out: Value, name: Name) -> None:
        self.bind(Read(out, self.place(member.index)), name)

    def reducer(self, node: Node, read: Read) -> Name:
        """A scan in a later loop than its own is done again there."""
        member = self.members[node.out]
        self._reduce(member)
        found = self.writer.find(read)
        assert found is not None, f"{node.out.name} is read before it is reduced"
        return found

    # -- storing -------------------------------------------------------------

    def _store(self, store: Store, pieces: Sequence[int] | None = None) -> None:
        """Write a result, all pieces of it or some."""
        if store.value.tensor.numel == 0:
            return
        for piece in self.pieces(store.index) if pieces is None else pieces:
            with self.on(piece):
                self._store_piece(store)

    def _store_piece(self, store: Store) -> None:
        index, guards = self.place(store.index), self.guards_here(store.guards)
        store = replace(store, index=index, guards=guards)
        name = self._written_value(store)
        self._read_indices(*store.target.index)
        guards = (*guards, *store.target.guards)
        offset = offset_of(store.target.index, self.outputs[store.value])
        dims = self.index.dims(offset)
        masked = dims | self._guard_dims(guards) | name.dims
        pointer = self.address(store.value, offset)
        if self._needs_tile(dims, masked):
            pointer += f" + tl.zeros({self.shape(masked)}, tl.int32)"
        masks = self.index.mask(masked) + self.guards(guards)
        mask = f", mask={' & '.join(masks)}" if masks else ""
        value = name.text
        if name.dtype is not store.value.dtype:
            value = cast_text(value, name.dtype, store.value.dtype)
        loc = None if store.scatter is None else store.scatter.loc
        line = Line(f"tl.store({pointer}, {value}{mask})", loc)
        self.writer.scope_for(masked | name.dims).lines.append(line)

    def _written_value(self, store: Store) -> Name:
        """What is stored: the value, or what stands for it."""
        if store.source is None:
            return self.read(store.read)
        name = self.operand(store.source, store.value.dtype, store.read)
        return replace(name, text=typed(name)) if name.literal else name

    def _needs_tile(self, dims: frozenset[str], masked: frozenset[str]) -> bool:
        """Whether an address without axes must become a block, to go with a block of values."""
        tiled = {t.name for t in self.nest.tiles if t.block is not None}
        one_position = any(t.block and t.axis.extent == 1 for t in self.nest.tiles)
        if masked & tiled > dims & tiled:
            return True
        return not dims & tiled and (one_position or self.rank > 1)
