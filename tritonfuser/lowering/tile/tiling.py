"""Axes and block sizes -> tiles: of flat axes, and of rows with peeled tails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from ...symbolic.index_expr import Affine, Axis, Bounded, digit
from ...symbolic.queries import (
    assume_at_most,
    assume_equal,
    assume_less,
    assume_max,
    assume_min,
    is_known_equal,
    is_known_multiple,
)
from .axis_map import AxisMap, RowMaps
from .tile import Tile

PEELED_NAMES = "tuv"
"""The kernel axes of the tiles peeled off a row."""


def spread(axes: tuple[Axis, ...], kernel_axis: Axis | Bounded) -> dict[Axis, Affine]:
    """Loop axes as digits of one kernel axis, or of a place along it, outermost first."""
    found: dict[Axis, Affine] = {}
    stride = 1
    for axis in reversed(axes):
        found[axis] = digit(kernel_axis, stride, axis.extent)
        stride *= assume_max(axis.extent, 1)
    return found


def tile_over(
    name: str, axes: tuple[Axis, ...], block: int | None, place: int = 0
) -> tuple[Tile, dict[Axis, Affine]]:
    """A kernel axis over loop axes, and where each of them is along it."""
    axis = Axis(name, prod(a.extent for a in axes))
    if block is None:
        return Tile(axis, None, False), spread(axes, axis)
    masked = not is_known_multiple(axis.extent, block) or assume_equal(axis.extent, 0)
    return Tile(axis, f"{name.upper()}BLOCK", masked, block, place), spread(axes, axis)


def row_maps(
    others: Mapping[Axis, Affine], reduced: tuple[Axis, ...], tiles: Iterable[Tile]
) -> RowMaps:
    """Where a segment's axes are in each tile of a row; the whole blocks' tile comes first.

    Parameters
    ----------
    others : mapping
        Where the axes are that do not run along the row.
    reduced : tuple of Axis
        The axes along the row, outermost first.
    """
    blocks, *peeled = (AxisMap({**others, **spread(reduced, tile.axis)}) for tile in tiles)
    return RowMaps(blocks, tuple(peeled))


def peel_row(
    axes: tuple[Axis, ...],
    block: int,
    tails: tuple[int, ...],
    place: int = 1,
) -> tuple[Tile, list[Tile]]:
    """The whole blocks of a row, and the tiles peeled off its end.

    Without peeled tiles the last block reaches past the row, with a mask.

    Parameters
    ----------
    tails : tuple of int
        Sizes of the peeled tiles. They may hold more than whole blocks leave: then they take the
        place of some blocks.
    place : int
        The dim of a block that runs along the row.
    """
    r, _ = tile_over("r", axes, block, place)
    row = r.axis.extent
    if not tails or assume_at_most(row, block):
        return r, []
    start = end_of_blocks(row, block, sum(tails))
    if not (assume_less(start, row) and assume_at_most(row, start + sum(tails))):
        return r, []
    found: list[Tile] = []
    begin = start
    for name, size in zip(PEELED_NAMES, tails, strict=False):
        if assume_less(begin, row):
            masked = not _fills(begin + size, row)
            tile = Tile(Axis(name, row), f"{name.upper()}BLOCK", masked, size)
            found.append(replace(tile, start=begin, place=place))
            begin += size
    return replace(r, masked=False, stop=start), found


def end_of_blocks(row: int, block: int, behind: int) -> int:
    """Where the whole blocks of a row end, of which peeled tiles hold ``behind`` elements."""
    if assume_at_most(row, block + behind):
        return block
    return (row - behind + block - 1) // block * block


def _fills(tile_end: int, end: int) -> bool:
    """Whether a tile ends before a row does. Of a row that varies no exact end is assumed, which
    would be that of one length."""
    return assume_less(tile_end, end) or is_known_equal(tile_end, end)


def tiles_of_part(row: int, block: int, tails: tuple[int, ...], before_last: int) -> list[Tile]:
    """The tiles of a row's part, which reach past the row where the last part is shorter.

    Parameters
    ----------
    before_last : int
        Elements of the row before the last part.
    """
    found: list[Tile] = []
    start = 0
    for name, size in zip(("r", *PEELED_NAMES), (block, *tails), strict=False):
        masked = before_last + start + size > row
        stop = start + size if tails else None
        tile = Tile(Axis(name, row), f"{name.upper()}BLOCK", masked, size, start=start, stop=stop)
        found.append(tile)
        start += size
    return found


def aligned_tiles(
    row: int,
    block: int,
    tails: tuple[int, ...],
    vector: int,
    place: int = 1,
    before_last: int = 0,
) -> list[Tile]:
    """The tiles of a row that begin at vectors, and the tile of its edges.

    The blocks and all tails but the last hold whole vectors. The last tail holds the elements
    before the first whole vector of the row and behind the last one. A loop over blocks has a mask
    where there are no other tails: then the last block reaches past the row.

    Parameters
    ----------
    before_last : int
        Elements in whole vectors before the last part, of a row that several programs share. Each
        has one block.
    """
    *middle, rest = tails
    least, most = whole_elements(row, vector)
    fits = before_last or assume_at_most(most, block + sum(middle))
    start = block if fits else end_of_blocks(most, block, sum(middle))
    r, _ = tile_over("r", (Axis("r", most),), block, place)
    is_looped = not fits and bool(middle)  # over blocks that all rows have
    masked = not is_looped and not _fills(before_last + start, least)
    found = [replace(r, masked=masked, stop=assume_min(start, most))]
    for name, size in zip(PEELED_NAMES, middle, strict=False):
        tile, _ = tile_over(name, (Axis(name, most),), size, place)
        masked = not _fills(before_last + start + size, least)
        found.append(replace(tile, masked=masked, start=start, stop=assume_min(start + size, most)))
        start += size
    name = PEELED_NAMES[len(middle)]
    edges, _ = tile_over(name, (Axis(name, row),), rest, place)
    return [*found, replace(edges, masked=True, start=start, scattered=True)]


def whole_elements(row: int, vector: int) -> tuple[int, int]:
    """Elements of a row in whole vectors, at least and at most, wherever the row begins."""
    return (row - vector + 1) // vector * vector, row // vector * vector


def sides(*tiles: Tile) -> tuple[tuple[str, int], ...]:
    """The block sizes of the tiles that have one, by their constexprs' names."""
    return tuple((tile.block, tile.width) for tile in tiles if tile.block is not None)


def part_of(block: str, parts: int) -> str:
    """A block size divided by a number of parts, as text."""
    return block if parts == 1 else f"{block} // {parts}"
