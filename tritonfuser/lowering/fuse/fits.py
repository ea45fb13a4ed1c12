"""A seed and a group in, how the seed's loop nest lies in the group's out."""

from __future__ import annotations

from ...symbolic.index_expr import axes_in_order, extent
from ...symbolic.sizes import hint, is_size
from .grouping import Group, Seed

SAME, ROWS, EXTENTS, TOGETHER = "same", "rows", "extents", "together"
"""How a seed fits a group: over its axes, over its rows, over as many positions, or over results of
rows that a program can have together."""


def fit(seed: Seed, group: Group) -> str | None:
    """How a seed's loop nest lies in a group's, or None."""
    if seed.is_product or group.product is not None:
        return _behind_product(seed, group)
    parallel, reduced = seed.loops.rows, seed.loops.inner
    rows, inner = group.loops.rows, group.loops.inner
    if seed.member is None:
        if not inner:
            return SAME if parallel == rows else _by_extent(seed, group) or _as_part(seed, group)
        kept = inner.union(group.chunked) if group.outer else rows.difference(group.together)
        return SAME if parallel in (rows, rows | inner, kept) else None
    if not inner:
        return None
    if parallel == rows and reduced == inner:
        # A scan runs along its axes in their order.
        in_order = seed.reduced == group.reduced
        return SAME if in_order or not (seed.is_scan or group.scans) else None
    across = set(group.outer[0].across) if group.outer else reduced
    over_rows = bool(reduced) and reduced <= rows and parallel == inner | (rows - reduced)
    over_rows = over_rows and group.loops.row_extent > 0  # of no rows there is still a sum
    if over_rows and reduced == across and group.members and not seed.is_scan:
        return ROWS
    return None if seed.is_scan or group.scans else _by_extent(seed, group)


def together(seed: Seed, group: Group) -> str | None:
    """How a reduction of results of a group's rows lies in it, where one program has those rows."""
    rows, across = group.loops.rows, seed.loops.inner
    if seed.member is None or seed.is_scan or group.scans or group.outer or group.product:
        return None
    if not across or not across <= rows or seed.loops.rows != rows - across:
        return None
    # Of no rows there is still a sum.
    if is_size(extent(across)) or not extent(across) or across != set(group.together or across):
        return None
    return None if seed.reach.native.isdisjoint(group.places) else TOGETHER


def _behind_product(seed: Seed, group: Group) -> str | None:
    """What is computed for each element of a product, or reduced along a few of its columns."""
    if seed.is_product or seed.is_scan or group.product is None:
        return None
    if seed.member is None:
        return SAME if seed.loops.rows == group.loops.rows else None
    inside = seed.loops.rows | seed.loops.inner == group.loops.rows
    columns = axes_in_order(group.members[0].index[-1])
    last = columns[len(columns) - len(seed.reduced) :]
    fits = inside and set(last) == set(seed.reduced) and group.width in (0, extent(last))
    return SAME if fits else None


def _as_part(seed: Seed, group: Group) -> str | None:
    """A value of a few elements rides along in a kernel over more: that saves a launch."""
    elements = seed.loops.row_extent
    small = hint(elements) * seed.value.dtype.info.bits // 8 <= RIDER_BYTES
    return EXTENTS if small and 0 < elements < group.loops.row_extent else None


RIDER_BYTES = 1 << 20
"""Results of at most this size ride along: they take less time to write than a launch does."""


def _by_extent(seed: Seed, group: Group) -> str | None:
    same = seed.loops.row_extent == group.loops.row_extent
    return EXTENTS if same and seed.loops.inner_extent == group.loops.inner_extent else None
