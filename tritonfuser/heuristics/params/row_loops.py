"""Params of kernels whose programs loop over rows, and may share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ...lazy import cached_property
from ..plain_data.limits import Within
from .base import KernelParams, RowTiling
from .fields import Axes, Side, Tails

MAX_PARTS = 4096
"""Most programs that share a row: more than any device runs at a time."""


@dataclass(frozen=True, kw_only=True)
class InnerOuterPersistentParams(KernelParams):
    """Reductions along rows and over rows in one pass, as in the backward of a layer norm.

    A program loops over rows. It normalizes each, and keeps one partial sum per column in
    registers.

    Attributes
    ----------
    block_m : int
        Rows of a step of the loop.
    block_r : int
        Length of a row in elements, rounded up to a power of two, or down if ``tails`` hold the
        rest. If ``parts`` is above 1, that of a program's part of a row.
    tails : tuple of int
        Elements of up to three smaller tiles for the rest of a row.
    parts : int
        Programs that share a row. 1 if each program has whole rows. Above 1, each program reduces
        its part, publishes its sums to the others, and reads its part again to finish the row. The
        block and the tails are a part; the last part may be shorter.
    delay : int
        Steps of the loop between the sums of a shared row and its results, 1 or more. The sums of
        the other programs arrive in that time. All programs must be resident at a time.
    align : int
        Elements of a vector, as in ``InnerPersistentParams``. All rows of a program must begin at
        the same place of a vector.
    prefetch : bool
        Whether each step issues the loads of the next one, into registers, before it computes. The
        alternative is ``num_stages`` above 1, which loads ahead into shared memory.
    axes : tuple of int
        The order of the axes of rows, as in ``InnerPersistentParams``. Those that sums over the
        rows keep, along which programs lie, come before those that a program loops over.
    staged : bool
        As in ``ReductionParams``: for short rows, with ``parts`` of 1, without ``prefetch``.
    """

    scheduler: ClassVar[str] = "inner_outer_persistent"
    loops_over_rows: ClassVar[bool] = True

    block_m: Side
    block_r: Side
    tails: Tails = ()
    parts: Annotated[int, Within(1, MAX_PARTS)] = 1
    delay: Annotated[int, Within(1)] = 1
    align: Side = 1
    prefetch: bool = False
    axes: Axes = ()
    staged: bool = False

    @property
    def row_parts(self) -> int:
        return self.parts

    @property
    def prefetches(self) -> bool:
        return self.prefetch

    @cached_property
    def row_tiling(self) -> RowTiling:
        return RowTiling(
            rows=self.block_m,
            block=self.block_r,
            tails=self.tails,
            align=self.align,
            can_align=True,
            in_registers=True,
            staged=self.staged,
        )
