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
        Rows per program.
    block_r : int
        Elements of a row per step of the loop. If ``persistent``, the length of a row, rounded up
        to a power of two, or down if ``tails`` hold the rest.
    persistent : bool
        Whether whole rows are in registers and read once. Otherwise a program loops over a row, and
        every further pass reads it again.
    tails : tuple of int
        Elements of up to three smaller tiles behind the whole blocks, in their order. They hold the
        end of a row. If a program loops over blocks, they stay in registers between passes. Empty
        if the last block is masked instead.
    align : int
        Elements of a vector if rows begin inside vectors, else 1. Above 1, tiles begin at the first
        whole vector of a row. The last tail has the elements before it and those behind the last
        whole vector.
    axes : tuple of int
        The order of the axes of rows, outermost first. Adjacent rows of a program lie along the
        last one, and so do successive programs. An axis has the number of its dim among the dims
        that a reduction keeps, where each piece of a split dim counts. Axes that are not listed
        come first, in the order of the rules.
    loads_first : bool or None
        As in ``PointwiseParams``. In a loop over a row it is about the loads of a step, and None
        stands for True. Not with a pipeline (``num_stages`` above 1), which issues them ahead.
    evict_hints : bool
        Whether loads in a loop over rows ask the L2 cache to evict what is read for the last time
        first, and what is read again last.
    unroll : int
        Factor by which the loop over a row is unrolled: so many steps may issue their loads
        together. 1 leaves it to the compiler, which unrolls loops of short steps without masks.
        Above 1 only for loops without a pipeline that have at least so many steps.
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
        Whether each thread has whole rows, and reduces them by itself. Tensors whose rows follow
        one another in memory are loaded and stored as one contiguous run, through shared memory.
        For short rows that are ``persistent`` and have no tails.
    """

    scheduler: ClassVar[str] = "reduction"

    staged: bool = False


@dataclass(frozen=True, kw_only=True)
class _RereadParams(_RowParams):
    """Rows are reduced and used again: from registers where ``persistent``, else in more passes.

    Attributes
    ----------
    backwards : bool
        Whether every second pass runs from the end of a row to its start: the end was read last
        and is still in the L2 cache. A pass that computes mean and variance with a masked last
        step runs forwards all the same.
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
        Rows per program.
    block_r : int
        Elements of a row per step of the loop.
    axes : tuple of int
        The order of the axes of rows, as in ``InnerPersistentParams``.
    evict_hints : bool
        As in ``InnerPersistentParams``.
    loads_first : bool or None
        As in ``InnerPersistentParams``.
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
