"""The kernel axes of a segment: tiles, the loop, the grid; what all kinds of kernels build on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from ...shapes import Guard, Index
from ...symbolic.index_expr import Affine, Axis, Bounded, digit, substitute
from ...symbolic.sizes import is_size, surely_multiple
from .alignment import Alignment
from .tile import Tile


@dataclass(frozen=True)
class Nest:
    """The kernel axes of a segment.

    Attributes
    ----------
    tiles : tuple of Tile
        The axes in order; those with a block make up the dims of a tile.
    loop : str or None
        The axis walked in a loop.
    grid : tuple of (Tile, int)
        The axes that programs are spread over, with the number of programs along each.
    axes : dict
        Where the segment's axes are on the kernel's.
    constants : tuple of (str, int)
        The block sizes.
    tails : tuple of dict
        Where they are in each of the tiles for what whole blocks leave of a row.
    alignment : Alignment or None
        Where tiles of a row begin at vectors though rows do not.
    backwards : bool
        Whether every second walk over the loop's axis begins at its end, where it may.
    evict_hints : bool
        Whether loads of a walk say what the L2 cache should keep.
    """

    tiles: tuple[Tile, ...]
    loop: str | None
    grid: tuple[tuple[Tile, int], ...]
    axes: dict[Axis, Affine]
    constants: tuple[tuple[str, int], ...]
    tails: tuple[dict[Axis, Affine], ...] = ()
    alignment: Alignment | None = None
    backwards: bool = False
    evict_hints: bool = True

    @property
    def loop_tile(self) -> Tile | None:
        """The axis walked in a loop."""
        return next((tile for tile in self.tiles if tile.name == self.loop), None)

    def place(self, index: Index, piece: int = 0) -> Index:
        axes = self.piece(piece)
        return tuple(substitute(item, axes) for item in index)

    def guards(self, guards: tuple[Guard, ...], piece: int = 0) -> tuple[Guard, ...]:
        axes = self.piece(piece)
        return tuple(Guard(substitute(g.expr, axes), g.low, g.high) for g in guards)

    def piece(self, number: int) -> dict[Axis, Affine]:
        """Where the segment's axes are in a piece of the rows: 0 for whole blocks."""
        return self.tails[number - 1] if number else self.axes


def spread(axes: tuple[Axis, ...], kernel_axis: Axis | Bounded) -> dict[Axis, Affine]:
    """Loop axes as digits of one kernel axis, or of a place along it, outermost first."""
    found: dict[Axis, Affine] = {}
    stride = 1
    for axis in reversed(axes):
        found[axis] = digit(kernel_axis, stride, axis.extent)
        stride *= max(axis.extent, 1)
    return found


def tile_over(
    name: str, axes: tuple[Axis, ...], block: int | None, place: int = 0
) -> tuple[Tile, dict[Axis, Affine]]:
    axis = Axis(name, prod(a.extent for a in axes))
    if block is None:
        return Tile(axis, None, False), spread(axes, axis)
    masked = not surely_multiple(axis.extent, block) or axis.extent == 0
    return Tile(axis, f"{name.upper()}BLOCK", masked, block, place), spread(axes, axis)


TAIL_NAMES = "tuv"
"""The kernel axes of what whole blocks leave of a row."""


def row_tiles(
    axes: tuple[Axis, ...],
    block: int,
    tails: tuple[int, ...],
    width: int | None = None,
    place: int = 1,
) -> tuple[Tile, list[Tile]]:
    """Whole blocks of a row and the tiles of the rest; a block that reaches past it without.

    Tails may be more than what whole blocks leave: then they take the place of some.
    With ``width`` they are those of a part of the row, which is as long as its tiles.
    """
    r, _ = tile_over("r", axes, block, place)
    row = r.axis.extent
    extent = row if width is None else width
    if is_size(extent) or extent < block:
        return r, []
    left = extent - sum(tails) if width is None else block
    start = max(-(-left // block), 1) * block
    if not 0 < extent - start <= sum(tails):
        return r, []
    row_tile = replace(r, masked=False, stop=start)
    found: list[Tile] = []
    for name, size in zip(TAIL_NAMES, tails, strict=False):
        if start < extent:
            tile = Tile(Axis(name, row), f"{name.upper()}BLOCK", start + size > extent, size)
            found.append(replace(tile, start=start, place=place))
            start += size
    return row_tile, found


def aligned_tiles(
    row: int, block: int, tails: tuple[int, ...], vector: int, place: int = 1
) -> list[Tile]:
    """The tiles of a row: whole vectors, by a block and all tails but the last, and the edges."""
    *middle, rest = tails
    most = row // vector * vector
    least = (row - vector + 1) // vector * vector
    found: list[Tile] = []
    start = 0
    for name, size in zip(("r", *TAIL_NAMES), (block, *middle), strict=False):
        tile, _ = tile_over(name, (Axis(name, most),), size, place)
        masked = start + size > least
        found.append(replace(tile, masked=masked, start=start, stop=min(start + size, most)))
        start += size
    name = TAIL_NAMES[len(middle)]
    edges, _ = tile_over(name, (Axis(name, row),), rest, place)
    return [*found, replace(edges, masked=True, start=start, scattered=True)]


def sides(*tiles: Tile) -> tuple[tuple[str, int], ...]:
    """The block sizes of tiles that have one."""
    return tuple((tile.block, tile.width) for tile in tiles if tile.block is not None)
