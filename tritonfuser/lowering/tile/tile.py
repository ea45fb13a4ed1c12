"""``Tile``: a kernel axis with the block of positions that a program has along it, and its mask."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

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
        The name of the block size, a ``tl.constexpr``. None where a program has one position.
    masked : bool
        Whether the last tile reaches past the extent, so that it needs a mask.
    width : int
        The block size.
    place : int
        The dim of blocks in registers that runs along the axis.
    start : int
        The first position of the tile. Above 0 where other tiles have the positions before it.
    stop : int or None
        The end of its positions, where other tiles have those behind it.
    scattered : bool
        Whether its positions are not consecutive.
    part : Affine or None
        The number of the part of the axis that a program has, where axes are cut into parts and
        the last one may be shorter. ``axis`` is as long as the other parts.
    whole : int
        The extent of all parts together.
    interleave : int
        The number of parts, if part ``i`` of ``n`` has positions ``i, i + n, ...``; 0 if each part
        is contiguous.
    neighbours : int
        The most consecutive elements that one thread may have; 0 for any number.
    limit : int or None
        The end of the positions that pass the mask, if that is before the end of the axis.
    overlaps : bool
        Whether the last tile begins earlier, and ends with the axis: it has some positions of the
        one before it too.
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
    overlaps: bool = False

    @property
    def is_behind(self) -> bool:
        """Whether other tiles have the positions before it."""
        return not is_known_equal(self.start, 0)

    @property
    def end(self) -> int:
        """The end of its positions, exclusive."""
        return self.axis.extent if self.stop is None else self.stop

    @property
    def mask_end(self) -> int:
        """The end of the positions that pass its mask, exclusive."""
        return self.axis.extent if self.limit is None else self.limit

    @property
    def multiple(self) -> int:
        """What the first position of each tile is known to be a multiple of: a power of two."""
        if is_size(self.start):
            return 1
        return gcd(self.width, self.start, self.axis.extent if self.overlaps else 0)

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
