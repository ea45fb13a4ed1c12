"""Groups in, the facts that schedulers decide by out."""

from __future__ import annotations

from dataclasses import replace

from ..affine import Affine, Axis
from ..device import DeviceProperties
from ..heuristics.problem import Problem, Product, Stream
from ..ops.builder import as_call
from ..ops.table import Random
from .grouping import Group, SeedMaker, extent
from .products import ProductFacts
from .traffic import Traffic, fast_axes, order_axes


def problem_of(
    group: Group, maker: SeedMaker, facts: ProductFacts, device: DeviceProperties
) -> Problem:
    """A kernel in the making as heuristics see it."""
    traffic = maker.traffic(group.reads, group.stores)
    parallel = order_axes(group.parallel, traffic)
    reduced = order_axes(group.reduced, traffic)
    return Problem(
        parallel=extent(parallel),
        reduced=extent(reduced),
        levels=group.depth,
        full_outputs=group.full_outputs,
        dependent_outputs=group.dependent_outputs,
        scans=group.scans,
        outer_members=len(group.outer),
        chunks=extent(group.chunked),
        crossing=extent(crossing_axes(group, traffic)),
        streams=tuple(_stream(t, parallel, reduced) for t in traffic),
        work=len(group.nodes),
        product=_product(group, traffic, facts),
        device=device,
    )


def _product(group: Group, traffic: list[Traffic], facts: ProductFacts) -> Product | None:
    if group.product is None:
        return None
    whole = [t for t in traffic if t.offset.axes() >= frozenset(group.parallel)]
    beside = sum(item.item_bytes for item in whole)
    draws = any(isinstance(as_call(node).op.form, Random) for node in group.nodes)
    found = facts.product(group.product)
    *_, row, column = group.members[0].index
    return replace(
        found,
        left_bytes=max(found.left_bytes, _fetched(group, row, traffic)),
        right_bytes=max(found.right_bytes, _fetched(group, column, traffic)),
        width=group.width,
        beside=beside,
        draws=draws,
    )


def _fetched(group: Group, side: Affine, traffic: list[Traffic]) -> int:
    """Bytes that a product's kernel loads for each element of the operand on that side."""
    along = [t for t in traffic if not t.offset.axes().isdisjoint(group.reduced)]
    return sum(t.item_bytes for t in along if not t.offset.axes().isdisjoint(side.axes()))


CROSSING_SHARE = 0.15
"""Share of the bytes that must lie along another axis for a kernel to use square tiles."""


def crossing_axes(group: Group, traffic: list[Traffic]) -> tuple[Axis, ...]:
    """The axis along which many bytes lie in memory that is not the kernel's fastest one."""
    if group.reduced or not group.parallel:
        return ()
    fastest = order_axes(group.parallel, traffic)[-1]
    found = fast_axes(traffic)
    total = sum(found.values())
    others = {a: n for a, n in found.items() if a != fastest and a.extent >= 8}
    best = max(others, key=lambda a: others[a], default=None)
    if best is None or others[best] < CROSSING_SHARE * total or fastest.extent < 8:
        return ()
    return (best,)


def _stream(item: Traffic, parallel: tuple[Axis, ...], reduced: tuple[Axis, ...]) -> Stream:
    return Stream(
        item_bytes=item.item_bytes,
        along_x=item.runs_along(parallel),
        along_r=item.runs_along(reduced),
        x_stride=item.steps.get(parallel[-1]) if parallel else 0,
        r_stride=item.steps.get(reduced[-1]) if reduced else 0,
        is_store=item.is_store,
    )
