"""``KernelAxes``: the kernel axes of a text, and which of them an index expression varies along."""

from __future__ import annotations

from collections.abc import Mapping

from ....symbolic.index_expr import Affine, Axis, Digit
from ....symbolic.queries import is_known_multiple
from ...tile.tile import Tile
from ..writer import Writer


class KernelAxes:
    """The kernel axes, and which of them index expressions vary along. It writes nothing.

    Parameters
    ----------
    tiles : tuple of Tile
        The kernel axes.
    writer : Writer
        Is asked along which axes the values vary that an expression reads at run time.
    grid : mapping of str to int
        The axes of the grid by name, each with its number (of ``tl.program_id``). Empty where no
        value is computed once for a whole tile, see ``dims``.

    Attributes
    ----------
    tiles : dict of str to Tile
        The kernel axes by name.
    rank : int
        The number of dims of a block in registers.
    """

    def __init__(self, tiles: tuple[Tile, ...], writer: Writer, grid: Mapping[str, int]) -> None:
        self.tiles = {tile.name: tile for tile in tiles}
        self.grid = grid
        places = (tile.place for tile in self.tiles.values() if tile.block is not None)
        self.rank = 1 + max(places, default=-1)
        self._writer = writer

    def tiles_of(self, expr: Affine) -> tuple[Tile, ...]:
        """The kernel's tiles, without those of a row that the expression does not run over."""
        names = {axis.name for axis in expr.axes()}
        row = [tile for tile in self.tiles.values() if tile.is_behind or tile.stop is not None]
        return tuple(t for t in self.tiles.values() if t not in row or t.name in names)

    def dims(self, expr: Affine) -> frozenset[str]:
        """The kernel axes along which an expression varies within a program's tile.

        Axes along which a program has one position count too.
        """
        varying = (Affine((term,)) for term in expr.terms if not self.is_same_in_tile(term[0]))
        names = {axis.name for term in varying for axis in term.axes()}
        for loaded in expr.loaded():
            found = self._writer.find(loaded.key)
            names |= found.dims if found is not None else frozenset()
        return frozenset(names)

    def is_same_in_tile(self, item: Digit) -> bool:
        """Whether a digit has one value in a program's whole tile.

        With tiles of 64 columns, ``x // 1024`` is a scalar. A value that varies along it alone is
        loaded once, and not once a column.
        """
        base = item.base
        tile = self.tiles.get(base.name) if isinstance(base, Axis) else None
        if tile is None or tile.name not in self.grid or tile.width < 2:
            return False
        if tile.masked or tile.overlaps:
            return False
        return tile.place < self.rank - 1 and is_known_multiple(item.div, tile.width)

    def blocked(self, dims: frozenset[str]) -> frozenset[str]:
        """The axes among ``dims`` along which a program has a block of positions."""
        return frozenset(d for d in dims if d in self.tiles and self.tiles[d].block is not None)

    def is_whole(self, dims: frozenset[str]) -> bool:
        """Whether a value along ``dims`` has an element for each position of a block."""
        return len({self.tiles[name].place for name in self.blocked(dims)}) == self.rank > 0

    def masked(self, dims: frozenset[str]) -> frozenset[str]:
        """The axes among ``dims`` whose tiles need masks."""
        return frozenset(d for d in dims if d in self.tiles and self.tiles[d].masked)
