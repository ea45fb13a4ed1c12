"""Writes the first lines of a kernel: program ids, positions of its tiles, masks."""

from __future__ import annotations

from ....dtypes import DataType
from ....symbolic.index_expr import Affine
from ...tile.alignment import Alignment
from ...tile.nest import Nest, RowSplit
from ...tile.tile import Tile
from ..lines import Line
from ..names import Name
from .index_writer import IndexWriter


class AxesWriter:
    """Writes a program's positions along each kernel axis."""

    def __init__(self, index: IndexWriter, nest: Nest) -> None:
        self.index = index
        self.tile_text = index.tile_text
        self.writer = index.writer
        self.nest = nest

    def write(self) -> None:
        """Write the program's range along each axis that is not moved by a loop."""
        self._assume_bounds()
        if self.nest.row_split is not None:
            self._programs_of_a_row(self.nest.row_split)
        else:
            self._programs()
        if self.nest.alignment is not None:
            self._vectors(self.nest.alignment)
        for tile in self.nest.tiles:
            if tile.part is not None:
                self._stop(tile, tile.part)
        over_programs = {tile.name for tile, _ in self.nest.grid}
        for tile in self.nest.tiles:
            if tile.name in over_programs or tile.block is None or tile == self.nest.rest:
                continue
            if tile.scattered:
                self._edges(tile)
                continue
            text = self._start(tile) + self.tile_text.range(tile)
            if tile.name == self.nest.loop:
                self._line(f"{tile.name}_base = {text}")
            else:
                self._line(f"{tile.name} = {text}")
                self._mask(tile)

    def rest(self, tile: Tile) -> tuple[str, list[str]]:
        """The ``if`` line of the lines that only the last program runs, and their first lines."""
        ((_, programs),) = self.nest.grid
        header = f"if {self.tile_text.program(0)} == {programs - 1}:"
        positions = f"{tile.name} = {self._start(tile)}{self.tile_text.range(tile)}"
        return header, [positions, f"{tile.name}_mask = {tile.name} < {tile.axis.extent}"]

    def part(self, tile: Tile, count: int) -> str:
        """The positions of a tile divided by ``count``, each once."""
        part = f"{tile.block} // {count}"
        wide = self.tile_text.widened
        within = f"tl.arange(0, {part}){self.tile_text.suffix(tile.place)}{wide}"
        split = self.nest.row_split
        first = "" if split is None else f"part * {split.width // count} + "
        for number, (other, _) in enumerate(self.nest.grid):
            if other == tile:
                return f"{first}{self.tile_text.first(tile, number, count)} + {within}"
        if tile.name == self.nest.loop:
            return f"{first}{tile.name}_start // {count} + {within}"
        return f"{first}{tile.start // count} + {within}" if tile.is_behind else f"{first}{within}"

    def _assume_bounds(self) -> None:
        nest, terms = self.nest, self.index.terms
        for tile in nest.tiles:
            split = nest.row_split
            terms.add_tile(tile, 0 if split is None else split.before_last)
        for _, programs in nest.grid:
            terms.add_number(programs)
        if nest.rest is not None:
            # The program of the rest is one more: its other positions are behind the end.
            terms.add(sum(tile.end + 2 * tile.width for tile, _ in nest.grid))
        if nest.alignment is not None:
            terms.add(nest.alignment.row + 2 * nest.alignment.vector)

    def _line(self, text: str) -> None:
        self.writer.scopes[0].lines.append(Line(text))

    def _programs(self) -> None:
        """The axes that programs are spread over."""
        for number, (tile, _) in enumerate(self.nest.grid):
            if tile.block is not None:
                first = self.tile_text.first(tile, number)
                self._line(f"{tile.name} = {first} + {self.tile_text.range(tile)}")
                self._mask(tile)
            elif tile.axis.extent > 1:
                self._line(f"{tile.name} = {self.tile_text.program(number)}")

    def _programs_of_a_row(self, split: RowSplit) -> None:
        """The rows of a program, and which part of them it has."""
        program = self.tile_text.program(0)
        if self.nest.grid[0][0].axis.extent > 1:
            self._line(f"s = {program} // {split.parts}")
        self._line(f"part = {program} % {split.parts}")
        self._line(f"parts = tl.arange(0, {split.slots})")
        if split.slots > split.parts:
            self._line(f"parts_mask = parts < {split.parts}")

    def _start(self, tile: Tile) -> str:
        """What is added to a tile's range."""
        start = f"{tile.start} + " if tile.is_behind else ""
        split = self.nest.row_split
        return start if split is None else f"part * {split.width} + {start}"

    def _mask(self, tile: Tile) -> None:
        if tile.masked:
            end = "stop" if self.nest.is_aligned(tile) else tile.mask_end
            self._line(f"{tile.name}_mask = {tile.name} < {end}")

    def _stop(self, tile: Tile, part: Affine) -> None:
        """Where the program's part of an axis ends: the last part may be shorter."""
        if tile.interleave:
            left = self.index.text(Affine((), tile.whole + tile.interleave - 1) - part)
            self._line(f"{tile.stop_text} = ({left}) // {tile.interleave}")
            return
        left = self.index.text(Affine((), tile.whole) - part * tile.axis.extent)
        self._line(f"{tile.stop_text} = tl.minimum({left}, {tile.axis.extent})")

    def _vectors(self, alignment: Alignment) -> None:
        """Where a row's whole vectors begin, and how many elements they are."""
        start = self.index.text(alignment.start, beyond=alignment.vector)
        dims = self.index.axes.dims(alignment.start)
        self._line(
            f"first, lead, stop = whole_vectors({start}, {alignment.row}, {alignment.vector})"
        )
        self.writer.scopes[0].names[alignment.first] = Name("first", DataType.Int32, dims)

    def _edges(self, tile: Tile) -> None:
        alignment = self.nest.alignment
        assert alignment is not None
        given = f"{self.tile_text.range(tile)}, lead, stop, {alignment.row}, {alignment.vector}"
        self._line(f"{tile.name}, {tile.name}_mask = edges({given})")
        split = self.nest.row_split
        if split is not None:
            # One program has them: that of the last part, which is shorter.
            mask = f"{tile.name}_mask"
            self._line(f"{mask} = {mask} & (part == {split.parts - 1})")
