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
        Elements a program.
    vectorization_factor : int
        Most neighbouring elements of a thread, a power of two. 0 for the width of its widest
        vectorized load.
    axes : tuple of int
        The order of the kernel's axes, outermost first. Neighbours in a program, and then programs,
        lie along the last one. An axis' number is that of the dim of the stored value; dims that
        are split count once for each piece. Axes that are left out come first, in the order of the
        rules.
    loads_first : bool or None
        All loads come before what is computed. A thread then waits for memory once, and holds all
        that it loads. None: where the device runs all programs at once and threads have few
        elements, at each size anew.
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
        The axes along x, outermost first, by their numbers as in ``PointwiseParams``. Axes that are
        in neither list come first, in the order of the rules.
    across : tuple of int
        The axes along y, outermost first. Empty for those of the rules.
    first : str
        The side that programs run along first: ``x`` or ``y``. The tiles of the other side are
        65535 at most. Empty for x where they are that few.
    loads_first : bool or None
        All loads come before what is computed. A thread then waits for memory once, and holds all
        that it loads. None: where the device runs all programs at once and threads have few
        elements, at each size anew.
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
