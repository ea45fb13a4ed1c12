"""Loads that many neighbours share: an element for each lane of them, handed to all.

A weight of a channel lies at ``r // 12544``: 256 neighbours along ``r`` want the same one. Loaded
for each, it would take an instruction and the arithmetic of its index for every element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...dtypes import DataType
from ...shapes import Guard
from ...symbolic.index_expr import Affine, Axis, Digit, digit
from ...symbolic.sizes import is_size
from ..tile.tile import Tile
from .index_text import IndexWriter
from .writer import Line, Name, Writer

FEWEST = 4
"""Neighbours that make a lane worth its lines."""


@dataclass(frozen=True)
class Lanes:
    """``count`` neighbours along a tile are at the same offset."""

    tile: Tile
    count: int


def lanes_of(
    offset: Affine, guards: tuple[Guard, ...], tiles: tuple[Tile, ...], rank: int
) -> Lanes | None:
    """The lanes of a load, if its offset takes no two neighbours along the last tile apart."""
    blocked = [tile for tile in tiles if tile.block is not None and tile.axis in offset.axes()]
    last = max(blocked, key=lambda tile: tile.place, default=None)
    if last is None or last.place != rank - 1 or rank > 2 or last.scattered:
        return None
    if any(last.axis in guard.expr.axes() or guard.expr.loaded() for guard in guards):
        return None  # what is read at run time may differ from neighbour to neighbour
    if is_size(last.axis.extent):
        return None
    mine = [digit for digit, _ in offset.terms if digit.base == last.axis]
    others = Affine(tuple(t for t in offset.terms if t[0] not in mine))
    if last.axis in others.axes() or offset.loaded() or any(is_size(d.div) for d in mine):
        return None
    count = last.width
    while last.start % count or any(digit.div % count for digit in mine):
        count //= 2
    return Lanes(last, count) if count >= FEWEST else None


def parted(position: Affine, tiles: tuple[Tile, ...]) -> tuple[Affine, Affine]:
    """A position as what grows one by one along a tile, and what lanes share.

    ``r % 4096`` is ``r`` and ``r // 4096 * -4096``; and a division costs several instructions.
    """
    axes = {tile.axis for tile in tiles if tile.block is not None}
    fine, shared = Affine((), position.const), Affine()
    for item, step in position.terms:
        base = item.base
        if not isinstance(base, Axis) or base not in axes:
            fine += Affine(((item, step),))
        elif item.div != 1:
            shared += Affine(((item, step),))
        else:
            span = base.extent if item.mod is None else item.mod
            fine += digit(base) * step
            shared -= digit(base, span) * (step * span)
    return fine, shared


class LaneWriter:
    """Writes the lanes of a kernel's tiles, each once in the scope where its tile runs.

    Parameters
    ----------
    part : function
        Of a tile and a number: the positions of the tile by that number, as text.
    """

    def __init__(
        self, writer: Writer, index: IndexWriter, part: Callable[[Tile, int], str]
    ) -> None:
        self.writer = writer
        self.index = index
        self.part = part

    def axis(self, lanes: Lanes) -> Axis:
        """The lanes as an axis, which has a line."""
        tile, count = lanes.tile, lanes.count
        key = ("lanes", tile.name, count)
        found = self.writer.find(key)
        if found is None:
            scope = self.writer.scope_for(frozenset({tile.name}))
            found = Name(self.writer.fresh(f"{tile.name}_lane"), DataType.Int32)
            scope.lines.append(Line(f"{found.text} = {self.part(tile, count)}"))
            scope.names[key] = found
            if tile.name in scope.axes:
                scope.axes |= {found.text}
        return Axis(found.text, -(-tile.axis.extent // count))

    def offset(self, offset: Affine, lanes: Lanes) -> Affine:
        """An offset as a function of the lane."""
        axis = self.axis(lanes)

        def turned(item: Digit) -> Digit:
            if item.base != lanes.tile.axis:
                return item
            return Digit(axis, item.div // lanes.count, item.mod)

        return Affine(tuple((turned(d), step) for d, step in offset.terms), offset.const)

    def masks(self, masks: list[str], lanes: Lanes) -> list[str]:
        """The conditions of a load, of lanes whose first element is inside."""
        tile = lanes.tile
        inside = f"({self.axis(lanes).name} * {lanes.count} < {tile.axis.extent})"
        return [inside if mask == f"{tile.name}_mask" else mask for mask in masks]

    def position(self, position: Affine) -> str:
        """A position as a number, without a division for each element where lanes do."""
        tiles = self.index.met(position)
        fine, shared = parted(position, tiles)
        lanes = lanes_of(shared, (), tiles, self.index.rank)
        if lanes is None:
            return self.index.text(position)
        part = self.index.text(self.offset(shared, lanes))
        return f"{self.index.text(fine)} + spread({part}, {lanes.count})"
