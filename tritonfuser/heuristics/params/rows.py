"""Params of kernels whose programs have some rows each: reductions, normalizations, scans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...lazy import cached_property
from .base import KernelParams, RowTiling
from .fields import Axes, Side, Tails, Unroll


@dataclass(frozen=True, kw_only=True)
class _RowParams(KernelParams):
    """A program has ``block_x`` rows and ``block_r`` reduced elements of each at a time.

    Attributes
    ----------
    block_x : int
        Rows a program.
    block_r : int
        Reduced elements of a step of the loop. Where ``persistent``, the length of a row rounded
        up to a power of two, or down where ``tails`` hold the rest.
    persistent : bool
        True: the whole row is in registers and read once. False: a program loops over the row,
        and every further pass reads it again.
    tails : tuple of int
        Elements of up to three smaller tiles behind the whole blocks, in their order. They hold the
        end of a row. Where a program loops over blocks, they stay in registers between passes.
        Empty where the last block is masked instead.
    align : int
        Elements of a vector where rows begin inside of vectors, else 1. Above 1, tiles begin at the
        first whole vector of a row. The last tail has the elements before it and those behind the
        last whole vector.
    axes : tuple of int
        The order of the axes of rows, outermost first. Neighbouring rows of a program, and then
        programs, lie along the last one. An axis' number is that of the dim of what is reduced
        among those that are kept; dims that are split count once for each piece. Axes that are left
        out come first, in the order of the rules.
    loads_first : bool or None
        As in ``PointwiseParams``; in a loop over a row the loads of each step, which ``num_stages``
        above 1 begins ahead anyhow. None: in all such loops.
    evict_hints : bool
        Loads in a loop over rows ask the L2 cache to drop what is read for the last time, and to
        keep what is read again.
    unroll : int
        Steps of a loop over a row that one pass of its body takes, whose loads may begin together.
        1 leaves it to the compiler, which unrolls few steps, and others where loads have no masks
        and a step is short. For loops without a pipeline, of as many steps.
    """

    can_align: ClassVar[bool] = True
    """Whether kernels of this scheduler support an ``align`` above 1."""

    block_x: Side
    block_r: Side
    persistent: bool
    tails: Tails = ()
    align: Side = 1
    axes: Axes = ()
    loads_first: bool | None = None
    evict_hints: bool = True
    unroll: Unroll = 1

    @property
    def positions(self) -> int:
        return self.block_x

    @cached_property
    def row_tiling(self) -> RowTiling:
        return RowTiling(
            rows=self.block_x,
            block=self.block_r,
            tails=self.tails,
            align=self.align,
            can_align=self.can_align,
            in_registers=self.persistent,
            backwards=getattr(self, "backwards", False),
            evict_hints=self.evict_hints,
            unroll=self.unroll,
            staged=getattr(self, "staged", False),
        )

    def _blocks(self) -> list[dict[str, int]]:
        behind = [{"block_x": self.block_x, "tails": size} for size in self.tails]
        return [*super()._blocks(), *behind]


@dataclass(frozen=True, kw_only=True)
class ReductionParams(_RowParams):
    """A reduction whose outputs are all reduced. Nothing is read twice.

    Attributes
    ----------
    staged : bool
        Each thread has whole rows: it reduces them by itself, and a tile has nothing behind their
        ends. Tensors whose rows lie one behind the other are loaded and stored as one run of
        memory, which goes through shared memory. For short rows, ``persistent`` without tails.
    """

    scheduler: ClassVar[str] = "reduction"

    staged: bool = False


@dataclass(frozen=True, kw_only=True)
class _RereadParams(_RowParams):
    """Rows are reduced and used again: from registers where ``persistent``, else in more passes.

    Attributes
    ----------
    backwards : bool
        Every second pass runs from the end of a row to its start: the end was read last and is
        still in the L2 cache. A pass that computes mean and variance with a masked last step runs
        forwards all the same.
    """

    backwards: bool = False


@dataclass(frozen=True, kw_only=True)
class InnerPersistentParams(_RereadParams):
    """Normalization along contiguous rows: results are used with the rows they came from.

    Attributes
    ----------
    staged : bool
        As in ``ReductionParams``.
    """

    scheduler: ClassVar[str] = "inner_persistent"

    staged: bool = False


@dataclass(frozen=True, kw_only=True)
class OuterPersistentParams(_RereadParams):
    """Normalization along columns: as ``inner_persistent``, with axis x contiguous in memory."""

    scheduler: ClassVar[str] = "outer_persistent"
    can_align: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class ScanParams(KernelParams):
    """Scans along r. The state is carried from one step of the loop to the next.

    Attributes
    ----------
    block_x : int
        Rows a program.
    block_r : int
        Elements of a step of the loop.
    axes : tuple of int
        The order of the axes of rows, as in ``InnerPersistentParams``.
    evict_hints, loads_first : bool
        As in ``InnerPersistentParams``; ``loads_first`` may be None.
    """

    scheduler: ClassVar[str] = "scan"

    block_x: Side
    block_r: Side
    axes: Axes = ()
    loads_first: bool | None = None
    evict_hints: bool = True

    @property
    def positions(self) -> int:
        return self.block_x

    @cached_property
    def row_tiling(self) -> RowTiling:
        return RowTiling(rows=self.block_x, block=self.block_r, evict_hints=self.evict_hints)
