"""Params of kernels around a matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ...device import MAX_BLOCK_ELEMENTS
from ..plain_data.limits import Within
from .base import KernelParams

LEAST_SIDE = 16
"""Least elements of a side of a tile of a matrix product: what tensor cores take."""

OPERAND_BYTES = 2
"""Bytes of an element of the operands of a product: Half or BFloat16."""

ProductSide = Annotated[int, Within(LEAST_SIDE, MAX_BLOCK_ELEMENTS, powers_of_two=True)]


@dataclass(frozen=True, kw_only=True)
class MatmulParams(KernelParams):
    """A matrix product: a program loops over K and accumulates a tile of the result in registers.

    Attributes
    ----------
    block_m, block_n : int
        Sides of a tile of the result, 16 or more.
    block_k : int
        Elements of K a step, 16 or more.
    group_m : int
        Rows of tiles in a group, 1 or more. Programs finish a group before the next one, so that
        its tiles share columns of the right operand in the L2 cache.
    programs : int
        Persistent programs that loop over the tiles. 0 for one program a tile.
    parts : int
        Parts, 1 or 2, that the columns of a tile are cut into for the epilogue.
    descriptors : bool
        Loads and stores go through the copy engine (TMA) where layouts allow it.
    """

    scheduler: ClassVar[str] = "matmul"
    tile_sides: ClassVar[int] = 2

    block_m: ProductSide
    block_n: ProductSide
    block_k: ProductSide
    group_m: Annotated[int, Within(1)] = 8
    programs: Annotated[int, Within(0)] = 0
    parts: Annotated[int, Within(1, 2)] = 1
    descriptors: bool = False

    @property
    def waiting_bytes(self) -> int:
        step = (self.block_m + self.block_n) * self.block_k * OPERAND_BYTES
        return (self.num_stages - 1) * step

    def _blocks(self) -> list[dict[str, int]]:
        sides = {"block_m": self.block_m, "block_n": self.block_n, "block_k": self.block_k}
        return [{k: v for k, v in sides.items() if k != left} for left in sides]
