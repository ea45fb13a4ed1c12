"""``TileText``: tiles as text. Shapes of their blocks, their ranges and ends, program ids."""

from __future__ import annotations

from ....shapes.memory import INT32_LIMIT
from ....symbolic.sizes import is_size
from ...tile.tile import Tile
from .kernel_axes import KernelAxes


class TileText:
    """Text that depends on the tiles alone, not on index expressions or variables.

    Parameters
    ----------
    axes : KernelAxes
        The kernel axes.
    wide : bool
        Whether positions are computed in 64 bits.
    program : str
        The variable with the number of the tile. Empty where that is the program id.
    """

    def __init__(self, axes: KernelAxes, wide: bool, program: str = "") -> None:
        self.axes = axes
        self.wide = wide
        self._program = program

    # -- blocks ----------------------------------------------------------------

    def shape(self, dims: frozenset[str]) -> str:
        """The block shape of a value over these axes, ``[XBLOCK, 1]``."""
        sizes = ["1"] * self.axes.rank
        for tile in self.axes.tiles.values():
            if tile.block is not None and tile.name in dims:
                sizes[tile.place] = str(tile.block)
        return f"[{', '.join(sizes)}]"

    def spread(self, text: str, dims: frozenset[str], always: bool = False) -> str:
        """An address broadcast to a block over these axes.

        Without an axis along which a program has a block it stays a scalar, unless ``always``.
        """
        if not always and not self.axes.blocked(dims):
            return text
        return f"{text} + tl.zeros({self.shape(dims)}, tl.int32)"

    def suffix(self, place: int) -> str:
        """Indexing that turns a 1-D range into one along dim ``place`` of a block."""
        rank = self.axes.rank
        if rank == 1:
            return ""
        return "[" + ", ".join(":" if i == place else "None" for i in range(rank)) + "]"

    # -- positions -------------------------------------------------------------

    def program(self, number: int) -> str:
        """The program id along an axis of the grid, or the tile number given to the function."""
        if not self._program:
            return f"tl.program_id({number}){self.widened}"
        return self.long(self._program)

    def first(self, tile: Tile, number: int, count: int = 1) -> str:
        """The first position of a program's tile along an axis of the grid, divided by ``count``.

        Parameters
        ----------
        number : int
            Of the axis of the grid.
        """
        block = str(tile.block) if count == 1 else f"({tile.block} // {count})"
        start = f"{self.program(number)} * {block}"
        if not tile.overlaps:
            return start
        last = f"{tile.axis.extent} - {tile.block}"
        return f"tl.minimum({start}, {last if count == 1 else f'({last}) // {count}'})"

    def range(self, tile: Tile) -> str:
        """The positions of a tile from its start on: ``tl.arange(0, RBLOCK)[None, :]``."""
        return f"tl.arange(0, {tile.block}){self.suffix(tile.place)}{self.widened}"

    def loop_end(self, tile: Tile) -> str:
        """The end of a loop over a tile, as a number of 64 bits where its last step needs them.

        Its type is written out: Triton takes a number from 2**31 to below 2**32 for 32 bits without
        a sign, and compares it with a sign, so that the loop would have no step. A loop over single
        positions has their type too, as its variable is the position.
        """
        if not self.wide or tile.part is not None:
            return tile.stop_text
        is_long = not is_size(tile.end) and tile.end + tile.width >= INT32_LIMIT
        return self.long(str(tile.end)) if is_long or tile.block is None else str(tile.end)

    def long(self, number: str) -> str:
        """A number of the type of positions."""
        return f"tl.cast({number}, tl.int64)" if self.wide else number

    @property
    def widened(self) -> str:
        """The suffix that makes a position 64 bits wide, where positions need that."""
        return ".to(tl.int64)" if self.wide else ""
