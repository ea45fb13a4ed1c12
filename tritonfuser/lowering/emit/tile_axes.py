"""The axes of a kernel as text: where its programs are, its tiles, their masks, pieces of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...dtypes import DataType
from ...ir import Fusion, Value
from ...shapes import Guard, Index
from ..segments import Member
from ..tile.alignment import Alignment
from ..tile.nest import Nest
from ..tile.tile import Tile
from .values import ValueWriter
from .writer import Line, Name


class TileWriter(ValueWriter):
    """Writes the lines that come first in a kernel, and knows which piece of a row is at hand."""

    named_in_loop: frozenset[str] = frozenset()
    """Axes that the loop gives a place, beside its own."""

    def __init__(
        self,
        fusion: Fusion,
        nest: Nest,
        stored: Mapping[Value, tuple[int, ...]],
        wide_index: bool,
    ) -> None:
        super().__init__(fusion, nest.tiles, stored, wide_index)
        self.nest = nest
        self._piece = 0

    # -- tiles ---------------------------------------------------------------

    def shape(self, dims: frozenset[str]) -> str:
        """The block shape of a value over these axes, ``[XBLOCK, 1]``."""
        return self.index.shape(dims)

    @property
    def rank(self) -> int:
        return self.index.rank

    def suffix(self, place: int) -> str:
        """Indexing that turns a 1-D range into the tile's axis number ``place``."""
        if self.rank == 1:
            return ""
        return "[" + ", ".join(":" if i == place else "None" for i in range(self.rank)) + "]"

    # -- pieces of rows ------------------------------------------------------

    @contextmanager
    def on(self, piece: int) -> Iterator[None]:
        """Inside, a row is its whole blocks (0) or one of the tiles for what they leave."""
        before, self._piece = self._piece, piece
        try:
            yield
        finally:
            self._piece = before

    def place(self, index: Index) -> Index:
        """Where an index of the segment is on the kernel's axes, in the piece at hand."""
        return self.nest.place(index, self._piece)

    def guards_here(self, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        """Guards of the segment on the kernel's axes, in the piece at hand."""
        return self.nest.guards(guards, self._piece)

    def pieces(self, index: Index) -> range:
        """The pieces that what lies at an index is in."""
        cut = bool(self.nest.tails) and self.nest.place(index, 0) != self.nest.place(index, 1)
        return range(1 + len(self.nest.tails) if cut else 1)

    def reduces_pieces(self, member: Member) -> bool:
        """Whether a member reduces along the axis that is cut into pieces."""
        axes = [self.nest.piece(piece) for piece in (0, 1)] if self.nest.tails else []
        return bool(axes) and any(axes[0][a] != axes[1][a] for a in member.across)

    def reduced_pieces(self, member: Member) -> range:
        """The pieces whose results a member joins."""
        return range(1 + len(self.nest.tails) if self.reduces_pieces(member) else 1)

    # -- axes ----------------------------------------------------------------

    def _axes(self) -> None:
        """Where this program is: its range along each axis that is not walked in a loop."""
        lines = self.writer.scopes[0].lines
        self._programs(lines)
        if self.nest.alignment is not None:
            self._vectors(self.nest.alignment, lines)
        elsewhere = {tile.name for tile, _ in self.nest.grid} | self.named_in_loop
        for tile in self.nest.tiles:
            if tile.name in elsewhere or tile.block is None:
                continue
            if tile.scattered:
                lines.append(self._edges(tile))
                continue
            text = self._start(tile) + self._range(tile, tile.place)
            if tile.name == self.nest.loop:
                lines.append(Line(f"{tile.name}_base = {text}"))
            else:
                lines.append(Line(f"{tile.name} = {text}"))
                self._mask_line(tile, lines)

    def _programs(self, lines: list[Line]) -> None:
        """The axes that programs are spread over."""
        for number, (tile, _) in enumerate(self.nest.grid):
            program = self._program(number)
            if tile.block is None:
                if tile.axis.extent > 1:
                    lines.append(Line(f"{tile.name} = {program}"))
                continue
            place = tile.place
            lines.append(
                Line(f"{tile.name} = {program} * {tile.block} + {self._range(tile, place)}")
            )
            self._mask_line(tile, lines)

    def _program(self, number: int) -> str:
        wide = ".to(tl.int64)" if self.index.wide else ""
        return f"tl.program_id({number}){wide}"

    def _start(self, tile: Tile) -> str:
        """What is added to a tile's range."""
        return f"{tile.start} + " if tile.start else ""

    def _range(self, tile: Tile, place: int) -> str:
        wide = ".to(tl.int64)" if self.index.wide else ""
        lanes = f"tl.arange(0, {tile.block})"
        if tile.neighbours:
            lanes = f"tl.max_contiguous({lanes}, {tile.neighbours})"
        return f"{lanes}{self.suffix(place)}{wide}"

    def part(self, tile: Tile, count: int) -> str:
        part = f"{tile.block} // {count}"
        wide = ".to(tl.int64)" if self.index.wide else ""
        within = f"tl.arange(0, {part}){self.suffix(tile.place)}{wide}"
        for number, (other, _) in enumerate(self.nest.grid):
            if other == tile:
                return f"tl.program_id({number}){wide} * ({part}) + {within}"
        if tile.name == self.nest.loop:
            return f"{tile.name}_start // {count} + {within}"
        return f"{tile.start // count} + {within}" if tile.start else within

    def _mask_line(self, tile: Tile, lines: list[Line]) -> None:
        if not tile.masked:
            return
        end = "stop" if self._is_aligned(tile) else tile.axis.extent
        lines.append(Line(f"{tile.name}_mask = {tile.name} < {end}"))

    def _vectors(self, alignment: Alignment, lines: list[Line]) -> None:
        """Where a row's whole vectors begin, and how many elements they are."""
        start, dims = self.index.text(alignment.start), self.index.dims(alignment.start)
        found = f"whole_vectors({start}, {alignment.row}, {alignment.vector})"
        lines.append(Line(f"first, lead, stop = {found}"))
        self.writer.scopes[0].names[alignment.first] = Name("first", DataType.Int32, dims)

    def _edges(self, tile: Tile) -> Line:
        alignment = self.nest.alignment
        assert alignment is not None
        lanes = self._range(tile, tile.place)
        given = f"{lanes}, lead, stop, {alignment.row}, {alignment.vector}"
        return Line(f"{tile.name}, {tile.name}_mask = edges({given})")

    def rows_of(self, tile: Tile) -> frozenset[str]:
        """The axes beside its own that a mask of a tile depends on: each row has its vectors."""
        alignment = self.nest.alignment
        if alignment is None or not self._is_aligned(tile):
            return frozenset()
        return self.index.dims(alignment.start)

    def _is_aligned(self, tile: Tile) -> bool:
        return self.nest.alignment is not None and tile in self.nest.alignment.tiles
