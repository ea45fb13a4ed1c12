"""The kernel axes of a segment: tiles, the loop, the grid; what all kinds of kernels build on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...heuristics.integers import next_power_of_2
from ...ir import Value
from ...symbolic.queries import assume_less
from .alignment import Alignment
from .axis_map import RowMaps
from .tile import Tile

Strides = Mapping[Value, tuple[int, ...]]
"""Of the buffers of values, in elements."""


@dataclass(frozen=True)
class RowSplit:
    """How several programs share each row.

    Attributes
    ----------
    parts : int
        Programs to a row.
    width : int
        Elements of a row that each of them has, but for the last, which may have fewer.
    """

    parts: int
    width: int

    @property
    def slots(self) -> int:
        """Lanes for what the programs publish: their number, or the next power of two."""
        return next_power_of_2(self.parts)

    @property
    def before_last(self) -> int:
        """Elements of a row before the last part."""
        return (self.parts - 1) * self.width


@dataclass(frozen=True)
class Nest:
    """The kernel axes of a segment.

    Attributes
    ----------
    tiles : tuple of Tile
        The kernel axes in order. Those with a block are the dims of a tile in registers.
    loop : str or None
        The axis that the kernel loops over.
    grid : tuple of (Tile, int)
        The axes that programs are spread over, with the number of programs along each.
    maps : RowMaps
        Where the segment's axes are on the kernel's, for each tile of a row.
    constants : tuple of (str, int)
        The block sizes, by the names of their constexprs.
    alignment : Alignment or None
        How tiles begin at vectors where rows do not; None where tiles begin with the row.
    backwards : bool
        Whether every second loop over a row may run from its end to its start.
    evict_hints : bool
        Whether loads in a loop have eviction policies for the L2 cache.
    unroll : int
        Steps of a loop over a row that one pass of its body takes; 1 leaves it to the compiler.
    row_split : RowSplit or None
        How several programs share each row; None where one program has it whole.
    rows_of_threads : bool
        Whether a thread has the same columns of all rows of a step of a loop over rows. Then it
        needs one accumulator a column, and not one an element.
    rest : Tile or None
        The tile that the last program along the grid has, and no other.
    loads_first : bool
        Whether loads come before all that is computed.
    staged : bool
        Whether threads have whole rows, and rows that lie one behind the other are loaded through
        shared memory.
    """

    tiles: tuple[Tile, ...]
    loop: str | None
    grid: tuple[tuple[Tile, int], ...]
    maps: RowMaps
    constants: tuple[tuple[str, int], ...]
    alignment: Alignment | None = None
    backwards: bool = False
    evict_hints: bool = True
    unroll: int = 1
    row_split: RowSplit | None = None
    rows_of_threads: bool = False
    rest: Tile | None = None
    loads_first: bool = False
    staged: bool = False

    @property
    def row_sides(self) -> tuple[Tile, Tile]:
        """The tiles along rows and over rows, where threads have whole rows: the only blocks."""
        row, rows = sorted((t for t in self.tiles if t.block is not None), key=lambda t: t.place)
        return row, rows

    @property
    def loop_tile(self) -> Tile | None:
        """The axis that the kernel loops over."""
        return next((tile for tile in self.tiles if tile.name == self.loop), None)

    def ask_sizes(self, inputs: Strides) -> None:
        """Ask of sizes that vary what the text of the kernel depends on, so that guards say it.

        Parameters
        ----------
        inputs : mapping
            Strides, in elements, of the buffers that are loaded.
        """
        for tile, _ in self.grid:
            if tile.block is None:  # an axis of one position has no program number
                assume_less(1, tile.axis.extent)

    def is_aligned(self, tile: Tile) -> bool:
        """Whether a tile begins at a vector though its row does not."""
        return self.alignment is not None and tile in self.alignment.tiles
