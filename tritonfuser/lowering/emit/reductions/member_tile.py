"""One reduction over one tile: its operand, its axis in the block, its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ....dtypes import DataType, compute_dtype
from ....errors import SourceLoc
from ....ir import Value
from ...access.reads import Read
from ...passes.constant_folding import neutral
from ...segments.member import Member
from ...segments.segment import Segment
from ...tile.axis_map import AxisMap
from ...tile.nest import Nest
from ...tile.tile import Tile
from ..expressions import literal
from ..indexing.index_writer import IndexWriter
from ..lines import Summed
from ..names import Name
from ..values import ValueWriter
from ..writer import Writer

AfterLoop = Callable[[], None]
"""Writes what comes behind the loop that a reduction runs in."""


def work_dtype(value: Value) -> DataType:
    """What a reduction of a value is computed in: Float for half, Int32 for Bool."""
    return DataType.Int32 if value.dtype is DataType.Bool else compute_dtype(value.dtype)


def in_loop(nest: Nest, member: Member) -> bool:
    """Whether a member reduces along the axis that the kernel loops over."""
    along = frozenset(axis.name for a in member.across for axis in nest.maps.blocks.axes[a].axes())
    return nest.loop is not None and nest.loop in along


@dataclass(frozen=True)
class ReductionContext:
    """The kernel that reductions are written into."""

    segment: Segment
    nest: Nest
    values: ValueWriter


@dataclass(frozen=True)
class MemberTile:
    """A reduction or scan at one tile of its rows.

    Attributes
    ----------
    context : ReductionContext
        The kernel that it is written into.
    member : Member
        The reduction or scan.
    at : AxisMap
        Where the segment's axes are in the tile.
    peeled : tuple of AxisMap
        The maps of the other tiles whose elements go into the same results.
    """

    context: ReductionContext
    member: Member
    at: AxisMap
    peeled: tuple[AxisMap, ...] = ()

    # -- what it reduces -------------------------------------------------------

    @property
    def value(self) -> Value:
        """What is reduced."""
        return self.member.operand

    @property
    def out(self) -> Value:
        """Its result; the first of several."""
        return self.member.node.out

    @property
    def loc(self) -> SourceLoc | None:
        """The user's line."""
        return self.member.node.loc

    @property
    def dtype(self) -> DataType:
        """What it is computed in."""
        return work_dtype(self.value)

    @property
    def in_loop(self) -> bool:
        """Whether it reduces along the axis that the kernel loops over."""
        return in_loop(self.context.nest, self.member)

    @property
    def joins_steps(self) -> bool:
        """Whether each step is reduced by itself, and combined with the earlier steps."""
        tile = self.tile
        return self.context.nest.rows_of_threads and self.in_loop and tile.block is not None

    def identity(self, kind: str) -> str:
        """The neutral element of a kind of reduction, as text."""
        return literal(neutral(kind, compute_dtype(self.value.dtype)), self.dtype)

    # -- where it is -----------------------------------------------------------

    @cached_property
    def tile(self) -> Tile:
        """The kernel axis that it reduces along."""
        names = {axis.name for a in self.member.across for axis in self.at.axes[a].axes()}
        tiles = self.context.nest.tiles
        # The last: where tiles begin at vectors, a place along a row depends on the row too.
        met = [tile for tile in reversed(tiles) if tile.name in names]
        blocks = [tile for tile in met if tile.block is not None]
        return next(iter((*blocks, *met, tiles[-1])))

    @property
    def dim(self) -> int:
        """The dim of a block that it reduces."""
        return self.tile.place

    def result_dims(self, operand: Name, rest: Sequence[Name] = ()) -> frozenset[str]:
        """The kernel axes of a result.

        Parameters
        ----------
        rest : sequence of Name
            The operand at each peeled tile. Where rows begin inside vectors, it runs along them by
            its mask, whatever the operand in the block does.
        """
        reduced = {tile.tile.name for tile in (self, *self.peeled_tiles())}
        return operand.dims.union(*(peeled.dims for peeled in rest)) - reduced

    def peeled_tiles(self) -> list[MemberTile]:
        """This reduction at the other tiles whose elements go into its results."""
        return [replace(self, at=at, peeled=()) for at in self.peeled]

    # -- text ------------------------------------------------------------------

    @property
    def writer(self) -> Writer:
        """The kernel's lines."""
        return self.context.values.writer

    @property
    def index(self) -> IndexWriter:
        """The kernel's index expressions and block shapes."""
        return self.context.values.index

    def operand(self, identity: str) -> Name:
        """The operand over the whole tile, with ``identity`` where the tile reaches past."""
        read = Read(self.value, self.at.index(self.member.operand_index))
        found = self.context.values.read(read)
        name = self.writer.cast(found, self.dtype, self.value, self.loc)
        if self.tile.masked and not self._gives(name, identity):
            text = f"tl.where({self.tile.name}_mask, {name.text}, {identity})"
            dims = name.dims | {self.tile.name} | self._mask_dims()
            masked = self.writer.define(self.value, text, dims, self.dtype, None, "_masked")
            return replace(masked, held=name.held)
        if self.tile.name not in name.dims:
            dims = name.dims | {self.tile.name}
            text = f"tl.broadcast_to({name.text}, {self.index.tile_text.shape(dims)})"
            return self.writer.define(self.value, text, dims, self.dtype, None, "_whole")
        return name

    def _gives(self, name: Name, identity: str) -> bool:
        """Whether a value is ``identity`` by itself where the tile reaches past."""
        if not name.dims >= {self.tile.name} | self._mask_dims():
            return False
        return self.writer.masked_loads.gives(name, self.tile.name, identity, self.dtype)

    def _mask_dims(self) -> frozenset[str]:
        """The axes beside its own that the tile's mask depends on: each row has its vectors."""
        alignment = self.context.nest.alignment
        if alignment is None or not self.context.nest.is_aligned(self.tile):
            return frozenset()
        return self.index.axes.dims(alignment.start)

    def keep_dim(self, text: str) -> str:
        """What a reduction of a block gives, with its axis back as size 1, so it broadcasts."""
        if self.index.axes.rank == 1:
            return text
        kept = ["None" if i == self.dim else ":" for i in range(self.index.axes.rank)]
        return f"{text}[{', '.join(kept)}]"

    def total(self, text: str) -> str:
        """The sum of a block along its axis, which it keeps."""
        return self.keep_dim(f"tl.sum({text}, {self.dim})")

    def define(self, out: Value, text: str, dims: frozenset[str], mark: str = "") -> Name:
        """Define a variable of a result, or of a partial one, in the dtype of the computation."""
        return self.writer.define(out, text, dims, self.dtype, self.loc, mark)

    def shape(self, dims: frozenset[str]) -> str:
        """The shape of a block over kernel axes, as text."""
        return self.index.tile_text.shape(dims)

    def mark_sums(self, dims: frozenset[str], blocks: Sequence[Summed]) -> None:
        """Say of the last line of a scope that it adds up sums of blocks, and does nothing else."""
        lines = self.writer.scope_for(dims).lines
        lines[-1] = replace(lines[-1], sums=tuple(blocks))

    def bind(self, out: Value, name: Name) -> None:
        """Say that a result is there, in its own dtype."""
        read = Read(out, self.at.index(self.member.index))
        self.writer.bind(read, self.writer.cast(name, out.dtype, out, self.loc))

    # -- loops -----------------------------------------------------------------

    def accumulator(
        self, out: Value, identity: str, dims: frozenset[str], mark: str = "acc", width: int = 1
    ) -> str:
        """Write a block of identities before the loop, with one for ``width`` neighbours.

        Returns
        -------
        str
            Its name.
        """
        name = self.writer.fresh(f"{out.name}_{mark}")
        self.clear(name, identity, dims, width)
        return name

    def clear(self, name: str, identity: str, dims: frozenset[str], width: int = 1) -> None:
        """Assign a block of identities to a given name."""
        shape, loop = self.index.tile_text.shape(dims), self.context.nest.loop_tile
        if width > 1:
            assert loop is not None
            shape = shape.replace(str(loop.block), f"{loop.block} // {width}", 1)
        text = f"tl.full({shape}, {identity}, tl.{self.dtype.info.triton})"
        self.writer.line_before_loop(f"{name} = {text}")
