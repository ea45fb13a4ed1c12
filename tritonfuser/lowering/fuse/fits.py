"""An anchor and a group in, how the anchor's loop nest lies in the group's out."""

from __future__ import annotations

from ...symbolic.index_expr import axes_in_order, extent
from ...symbolic.sizes import hint, is_size
from .grouping import Anchor, FusionGroup

SAME, ROWS, EXTENTS, CO_REDUCED = "same", "rows", "extents", "co-reduced"
"""How an anchor fits a group: over its axes, over its rows, over as many positions, or over
results of rows that one program can hold."""


def fit(anchor: Anchor, group: FusionGroup) -> str | None:
    """How an anchor's loop nest lies in a group's, or None."""
    if anchor.is_product or group.product is not None:
        return _behind_product(anchor, group)
    parallel, reduced = anchor.loops.rows, anchor.loops.inner
    rows, inner = group.loops.rows, group.loops.inner
    if anchor.member is None:
        if not inner:
            return (
                SAME if parallel == rows else _by_extent(anchor, group) or _as_part(anchor, group)
            )
        materialized = (
            inner.union(group.batch_axes) if group.outer else rows.difference(group.co_reduced)
        )
        return SAME if parallel in (rows, rows | inner, materialized) else None
    if not inner:
        return None
    if parallel == rows and reduced == inner:
        # A scan runs along its axes in their order.
        in_order = anchor.reduced == group.reduced
        return SAME if in_order or not (anchor.is_scan or group.scans) else None
    across = set(group.outer[0].across) if group.outer else reduced
    over_rows = bool(reduced) and reduced <= rows and parallel == inner | (rows - reduced)
    over_rows = over_rows and group.loops.row_extent > 0  # of no rows there is still a sum
    if over_rows and reduced == across and group.members and not anchor.is_scan:
        return ROWS
    return None if anchor.is_scan or group.scans else _by_extent(anchor, group)


def co_reduced(anchor: Anchor, group: FusionGroup) -> str | None:
    """How a reduction of results of a group's rows lies in it, where one program has those rows."""
    rows, across = group.loops.rows, anchor.loops.inner
    if anchor.member is None or anchor.is_scan or group.scans or group.outer or group.product:
        return None
    if not across or not across <= rows or anchor.loops.rows != rows - across:
        return None
    # Of no rows there is still a sum.
    if is_size(extent(across)) or not extent(across) or across != set(group.co_reduced or across):
        return None
    return None if anchor.footprint.native.isdisjoint(group.places) else CO_REDUCED


def _behind_product(anchor: Anchor, group: FusionGroup) -> str | None:
    """What is computed for each element of a product, or reduced along a few of its columns."""
    if anchor.is_product or anchor.is_scan or group.product is None:
        return None
    if anchor.member is None:
        return SAME if anchor.loops.rows == group.loops.rows else None
    inside = anchor.loops.rows | anchor.loops.inner == group.loops.rows
    columns = axes_in_order(group.members[0].index[-1])
    last = columns[len(columns) - len(anchor.reduced) :]
    fits = inside and set(last) == set(anchor.reduced) and group.width in (0, extent(last))
    return SAME if fits else None


def _as_part(anchor: Anchor, group: FusionGroup) -> str | None:
    """A value of a few elements rides along in a kernel over more: that saves a launch."""
    elements = anchor.loops.row_extent
    small = hint(elements) * anchor.value.dtype.info.bytes <= RIDER_BYTES
    return EXTENTS if small and 0 < elements < group.loops.row_extent else None


RIDER_BYTES = 1 << 20
"""Results of at most this size ride along: they take less time to write than a launch does."""


def _by_extent(anchor: Anchor, group: FusionGroup) -> str | None:
    same = anchor.loops.row_extent == group.loops.row_extent
    return EXTENTS if same and anchor.loops.inner_extent == group.loops.inner_extent else None
