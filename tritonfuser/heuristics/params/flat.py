"""Params of kernels that reduce nothing: along one side of a tile, or along two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from ...errors import ParamsError
from .base import KernelParams
from .fields import Axes, Power, Side


@dataclass(frozen=True, kw_only=True)
class PointwiseParams(KernelParams):
    """A program computes ``block_x`` elements of the flattened output.

    Attributes
    ----------
    block_x : int
        Elements per program.
    vectorization_factor : int
        Most adjacent elements of a thread, a power of two. 0 for the width of its widest vectorized
        load.
    axes : tuple of int
        The order of the kernel's axes, outermost first. Adjacent elements of a program lie along
        the last one, and so do successive programs. An axis has the number of its dim in the stored
        value, where each piece of a split dim counts. Axes that are not listed come first, in the
        order of the rules.
    loads_first : bool or None
        Whether a thread issues all its loads before it computes. It then waits for memory once, and
        holds all that it loads in registers. None: if it loads few elements.
    """

    scheduler: ClassVar[str] = "pointwise"

    block_x: Side
    vectorization_factor: Annotated[int, replace(Power, also=(0,))] = 0
    axes: Axes = ()
    loads_first: bool | None = None

    @property
    def positions(self) -> int:
        return self.block_x


@dataclass(frozen=True, kw_only=True)
class TransposeParams(KernelParams):
    """A program computes a tile over two axes, each of them contiguous in some tensor.

    Attributes
    ----------
    block_x : int
        Elements of the tile along the output's contiguous axis.
    block_y : int
        Elements along the axis that is contiguous in the other tensors.
    axes : tuple of int
        The axes along x, outermost first, numbered as in ``PointwiseParams``. Axes that are in
        neither list come first, in the order of the rules.
    across : tuple of int
        The axes along y, outermost first. Empty for those of the rules.
    first : str
        The side that successive programs run along: ``x`` or ``y``. The other side has at most
        65535 tiles. Empty for x, or for y if that has more.
    loads_first : bool or None
        Whether a thread issues all its loads before it computes. It then waits for memory once, and
        holds all that it loads in registers. None: if it loads few elements.
    """

    scheduler: ClassVar[str] = "transpose"
    tile_sides: ClassVar[int] = 2

    block_x: Side
    block_y: Side
    axes: Axes = ()
    across: Axes = ()
    first: Literal["", "x", "y"] = ""
    loads_first: bool | None = None

    def validate(self) -> None:
        super().validate()
        both = sorted({*self.axes} & {*self.across})
        if both:
            raise ParamsError(
                f"{self.scheduler} params: axes and across both have {both[0]}, "
                "an axis lies along one side"
            )
