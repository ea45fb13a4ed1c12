"""A kernel axis as a tile: its block, its mask, and the positions that it takes."""

from __future__ import annotations

from dataclasses import dataclass

from ...symbolic.index_expr import Affine, Axis
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import is_size


@dataclass(frozen=True, slots=True)
class Tile:
    """A kernel axis, and the positions along it that a program has at once.

    Attributes
    ----------
    axis : Axis
        The kernel axis: its name in the text, and its extent.
    block : str or None
        The constexpr of the tile's size. None where a program has one position of the axis.
    masked : bool
        Whether the last tile reaches past the extent.
    width : int
        The tile's size.
    place : int
        The dim of a block in registers that runs along the axis.
    start : int
        The first position that the tile takes, where other tiles take those before it.
    stop : int or None
        The end of its positions, where other tiles take those behind it.
    scattered : bool
        Whether its positions are not consecutive.
    part : Affine or None
        Which of several parts of an axis a program has, where the last part may be shorter. The
        axis is as long as the other parts.
    whole : int
        The extent that all parts have together.
    interleave : int
        The number of parts, where their positions are interleaved; 0 where each has neighbours.
    neighbours : int
        The most consecutive elements that one thread may have; 0 for any number.
    limit : int or None
        The end of the positions that its mask lets through, if that is before the axis' end.
    """

    axis: Axis
    block: str | None
    masked: bool
    width: int = 1
    place: int = 0
    start: int = 0
    stop: int | None = None
    scattered: bool = False
    part: Affine | None = None
    whole: int = 0
    interleave: int = 0
    neighbours: int = 0
    limit: int | None = None

    @property
    def is_behind(self) -> bool:
        """Whether other tiles take the positions before it."""
        return not is_known_equal(self.start, 0)

    @property
    def end(self) -> int:
        """Behind the last position that it takes."""
        return self.axis.extent if self.stop is None else self.stop

    @property
    def mask_end(self) -> int:
        """Behind the last position that its mask lets through."""
        return self.axis.extent if self.limit is None else self.limit

    @property
    def stop_text(self) -> str:
        """The end of its positions in the kernel's text."""
        return f"{self.axis.name}_stop" if self.part is not None else str(self.end)

    @property
    def may_be_empty(self) -> bool:
        """Whether a program may have no position: where the length of parts varies."""
        return self.part is not None and is_size(self.axis.extent)

    @property
    def name(self) -> str:
        """The axis' name in the kernel's text."""
        return self.axis.name
