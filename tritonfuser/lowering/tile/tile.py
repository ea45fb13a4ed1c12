"""A kernel axis as a tile: its block, its mask, and the positions that it takes."""

from __future__ import annotations

from dataclasses import dataclass

from ...symbolic.index_expr import Axis


@dataclass(frozen=True, slots=True)
class Tile:
    """A kernel axis as the text has it.

    ``block`` is the constexpr with its tile size, None for an axis of which a program has one
    position, and ``width`` that size; ``masked`` whether the last tile reaches past the extent.
    ``place`` is the dim of a block that runs along it. ``start`` and ``stop`` bound the positions
    that it takes of its axis, where other tiles take the rest; ``scattered`` says that those are
    not neighbours. ``neighbours`` is the most of them that a lane may have, 0 for any number.
    """

    axis: Axis
    block: str | None
    masked: bool
    width: int = 1
    place: int = 0
    start: int = 0
    stop: int | None = None
    scattered: bool = False
    neighbours: int = 0

    @property
    def end(self) -> int:
        """Behind the last position that it takes."""
        return self.axis.extent if self.stop is None else self.stop

    @property
    def name(self) -> str:
        return self.axis.name
