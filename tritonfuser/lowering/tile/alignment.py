"""Rows that begin anywhere in memory, in tiles that begin at whole vectors.

A row of 8193 numbers of 16 bits begins at any of eight places in a vector of 16 bytes. Its tiles
begin at its first whole vector and hold whole vectors. The elements before and behind those are in
a small tile of their own, the edges. So loads and stores of all but a few elements are vectorized.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...symbolic.index_expr import Affine, Axis, Bounded, Digit, digit
from .tile import Tile


@dataclass(frozen=True)
class Alignment:
    """How the tiles of a row lie in memory.

    Attributes
    ----------
    vector : int
        Elements of a vector.
    row : int
        Elements of a row.
    start : Affine
        Where a row begins, in elements behind the start of a vector; over the kernel's axes.
    tiles : tuple of Tile
        The tiles of a row. The last holds the elements before the first whole vector and behind
        the last one.
    """

    vector: int
    row: int
    start: Affine
    tiles: tuple[Tile, ...]

    @cached_property
    def first(self) -> Digit:
        """The first vector that begins in the row."""
        return Digit(self.start + (self.vector - 1), self.vector)

    @cached_property
    def lead(self) -> Affine:
        """Elements of the row before that vector."""
        return Affine(((self.first, self.vector),)) - self.start

    def place(self, tile: Tile) -> Axis | Bounded:
        """Where along the row a position of a tile is."""
        if tile.scattered:
            return tile.axis
        return Bounded(digit(tile.axis) + self.lead, self.row)
