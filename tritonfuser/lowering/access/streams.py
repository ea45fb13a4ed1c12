"""The loads and stores of a kernel as ``Stream``: bytes, strides and reuse along its axes."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from ...device import SECTOR_BYTES
from ...heuristics.streams import Stream
from ...ir import Fusion
from ...symbolic.index_expr import Axis, extent
from ...symbolic.queries import min_by_hint
from ...symbolic.sizes import hint
from .bytes_moved import held_bytes
from .pairs import pairs_in
from .stride_terms import stride_terms_of
from .traffic import Traffic


@dataclass(frozen=True, slots=True)
class ProblemAxes:
    """The axes of a kernel as ``Problem`` numbers them.

    Attributes
    ----------
    parallel, reduced : tuple of Axis
        Those of rows and those along rows, outermost first.
    every : tuple of Axis
        All axes, in the order of ``Problem.axes``.
    order : tuple of tuple of int
        ``Problem.order``: numbers of the axes that params may reorder.
    """

    parallel: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    every: tuple[Axis, ...]
    order: tuple[tuple[int, ...], ...]


def streams_of(
    fusion: Fusion,
    traffic: list[Traffic],
    axes: ProblemAxes,
    known: Sequence[int],
    late: Container[Traffic],
) -> tuple[Stream, ...]:
    """The facts of loads and stores. In flat kernels both elements of a pair are one access.

    Parameters
    ----------
    known : sequence of int
        For each access, its bytes that an earlier load left in the L1 cache.
    late : container of Traffic
        The loads after the reductions.
    """
    found: list[Stream] = []
    is_flat = axes.parallel and not axes.reduced
    seconds = pairs_in(traffic, axes.parallel[-1]) if is_flat else {}
    for item, again in zip(traffic, known, strict=True):
        half = seconds.get(item)
        held = held_bytes(fusion, item.value) if item.offset.loaded() else None
        if half is None:
            found.append(stream_of(item, axes, held, again, item in late))
        elif not half.is_second:
            one = stream_of(replace(item, offset=half.in_pairs), axes, held, again)
            found.append(
                replace(one, item_bytes=2 * one.item_bytes, total_bytes=2 * one.total_bytes)
            )
    return tuple(found)


def stream_of(
    item: Traffic,
    axes: ProblemAxes,
    held: int | None = None,
    known: int = 0,
    is_late: bool = False,
) -> Stream:
    """The facts of one load or store.

    Parameters
    ----------
    held : int or None
        Bytes of the tensor, for a gather: ``Stream.held_bytes``.
    known : int
        Bytes that an earlier load left in the L1 cache.
    is_late : bool
        Whether it is a load after the reductions.
    """
    parallel, reduced = axes.parallel, axes.reduced
    return Stream(
        item_bytes=item.item_bytes,
        along_x=item.runs_along(parallel),
        along_r=item.runs_along(reduced),
        x_stride=_inner_stride(item, parallel),
        r_stride=_inner_stride(item, reduced),
        is_store=item.is_store,
        is_late=is_late,
        contiguous_run=_contiguous_run(item, parallel),
        x_same=_repeated_positions(item, parallel),
        r_same=_repeated_positions(item, reduced),
        total_bytes=item.accessed_bytes if held is None else min_by_hint(item.accessed_bytes, held),
        held_bytes=0 if held is None else held,
        accessed=item.share,
        known_bytes=known,
        stride_terms=stride_terms_of(item.offset, axes.every),
        start=hint(item.offset.const) % (SECTOR_BYTES // item.item_bytes),
    )


def _contiguous_run(item: Traffic, axes: tuple[Axis, ...]) -> int:
    """The number of innermost positions of the axes that are contiguous in memory; 0 for all."""
    run = 1
    for axis in reversed(axes):
        if hint(item.steps.get(axis, 0)) != hint(run):
            return run
        run *= axis.extent
    return 0


def _repeated_positions(item: Traffic, axes: tuple[Axis, ...]) -> int:
    """The number of innermost positions of the axes that access the same element."""
    inner = takewhile(lambda axis: axis not in item.axes, reversed(axes))
    return extent(tuple(inner))


def _inner_stride(item: Traffic, axes: tuple[Axis, ...]) -> int | None:
    """The stride along the innermost axis, in elements; None where the offset is not linear."""
    return item.steps.get(axes[-1]) if axes else 0
