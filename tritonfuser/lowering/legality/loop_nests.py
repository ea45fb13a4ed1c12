"""``Nesting``: how the loop nest of an anchor fits into that of a group, if it does."""

from __future__ import annotations

from enum import Enum, auto

from ...symbolic.index_expr import extent
from ...symbolic.queries import assume_equal, assume_less
from ...symbolic.sizes import hint, is_size
from ..groups.anchor import Anchor
from ..groups.cores import core_row
from ..groups.fusion_group import FusionGroup
from ..groups.nest_matching import axes_of_box
from ..segments.member import Share


class Nesting(Enum):
    """How the loop nest of an anchor fits into that of a group.

    Attributes
    ----------
    SAME_AXES
        Its axes are axes of the group.
    OVER_ROWS
        It reduces over the group's rows, and keeps the axes along them.
    CO_REDUCED
        It reduces results of several rows of the group, all of which one program computes.
    SAME_EXTENTS
        Its axes are others of the same extents, or of fewer positions: the group's can replace
        them.
    """

    SAME_AXES = auto()
    OVER_ROWS = auto()
    CO_REDUCED = auto()
    SAME_EXTENTS = auto()


def nesting_of(
    anchor: Anchor, group: FusionGroup, co_reduces: bool, rider_bytes: int | None = None
) -> Nesting | None:
    """How an anchor's loop nest fits into a group's. None if it does not.

    Parameters
    ----------
    anchor : Anchor
        The anchor, over its own axes.
    group : FusionGroup
        The kernel to join.
    co_reduces : bool
        Whether one program may have several rows, so that the anchor can reduce their results.
    rider_bytes : int, optional
        Most bytes of a result that joins a flat kernel over more elements. No bound by default.
    """
    mine = None if anchor.member is None else anchor.member.share
    if mine is not None:
        over_rows = _of_reduction(anchor, group) is Nesting.OVER_ROWS
        return Nesting.OVER_ROWS if over_rows and _alike(mine, group) else None
    if anchor.is_core or group.core is not None:
        found = _around_core(anchor, group)
    elif anchor.member is None:
        found = _of_stored(anchor, group, rider_bytes)
    else:
        found = _of_reduction(anchor, group)
    return _co_reduced(anchor, group) if found is None and co_reduces else found


def _alike(share: Share | None, group: FusionGroup) -> bool:
    """Whether the group's reductions over rows divide the rows among programs in the same way."""
    partitions = [None if m.share is None else m.share.partition for m in group.outer[:1]]
    return partitions in ([], [None if share is None else share.partition])


def _of_stored(anchor: Anchor, group: FusionGroup, rider_bytes: int | None) -> Nesting | None:
    """The nesting of a stored value: over all axes of a kernel, over its rows, or along them."""
    parallel = anchor.loops.rows
    rows, inner = group.loops.rows, group.loops.inner
    if not inner:
        if parallel == rows:
            return Nesting.SAME_AXES
        return _of_same_extents(anchor, group) or _of_fewer_elements(anchor, group, rider_bytes)
    # If programs reduce parts of the rows, every part would store a value with fewer axes.
    in_parts = bool(group.outer) and group.outer[0].share is not None
    fewer = inner.union(group.batch_axes) if group.outer else rows.difference(group.co_reduced)
    if parallel in (rows, rows | inner) or (parallel == fewer and not in_parts):
        return Nesting.SAME_AXES
    is_box = not group.outer and axes_of_box(anchor, group) is not None
    if not group.scans and (is_box or _follows(anchor, group)):
        return Nesting.SAME_EXTENTS
    return None


def _follows(anchor: Anchor, group: FusionGroup) -> bool:
    """Whether a value depends on a reduction whose axes were replaced by the group's."""
    if anchor.footprint.at_own_index.isdisjoint(group.computed_at):
        return False
    mine, others = anchor.loops.row_extent, group.loops
    return assume_equal(mine, others.row_extent) or assume_equal(
        mine, others.row_extent * others.inner_extent
    )


def _of_reduction(anchor: Anchor, group: FusionGroup) -> Nesting | None:
    parallel, reduced = anchor.loops.rows, anchor.loops.inner
    rows, inner = group.loops.rows, group.loops.inner
    if not inner:
        return None
    if parallel == rows and reduced == inner:
        # A scan runs along its axes in their order.
        in_order = anchor.reduced == group.reduced
        free = in_order or not (anchor.is_scan or group.scans)
        return Nesting.SAME_AXES if free else None
    across = set(group.outer[0].across) if group.outer else reduced
    over_rows = bool(reduced) and reduced <= rows and parallel == inner | (rows - reduced)
    # A sum over no rows still has a result, which no program would compute.
    over_rows = over_rows and assume_less(0, group.loops.row_extent)
    if over_rows and reduced == across and group.members and not anchor.is_scan:
        assert anchor.member is not None
        return Nesting.OVER_ROWS if _alike(anchor.member.share, group) else None
    return None if anchor.is_scan or group.scans else _of_same_extents(anchor, group)


def _co_reduced(anchor: Anchor, group: FusionGroup) -> Nesting | None:
    """The nesting of a reduction of results of a group's rows, which one program computes."""
    rows, across = group.loops.rows, anchor.loops.inner
    if anchor.member is None or anchor.is_scan or group.scans or group.outer or group.core:
        return None
    if not across or not across <= rows or anchor.loops.rows != rows - across:
        return None
    # A sum over no rows still has a result, which no program would compute.
    if is_size(extent(across)) or not extent(across) or across != set(group.co_reduced or across):
        return None
    reads_rows = not anchor.footprint.at_own_index.isdisjoint(group.computed_at)
    return Nesting.CO_REDUCED if reads_rows else None


def _around_core(anchor: Anchor, group: FusionGroup) -> Nesting | None:
    """The nesting of an anchor over the axes of a core op."""
    if anchor.is_core or anchor.is_scan or group.core is None:
        return None
    return Nesting.SAME_AXES if core_row(group.core).joins(anchor, group) else None


def _of_fewer_elements(anchor: Anchor, group: FusionGroup, most: int | None) -> Nesting | None:
    """The nesting of a small result, which the first programs of a flat kernel compute: that saves
    a launch."""
    elements = anchor.loops.row_extent
    small = most is None or hint(elements) * anchor.value.dtype.info.bits // 8 <= most
    fewer = small and assume_less(0, elements) and assume_less(elements, group.loops.row_extent)
    return Nesting.SAME_EXTENTS if fewer else None


def _of_same_extents(anchor: Anchor, group: FusionGroup) -> Nesting | None:
    mine, others = anchor.loops, group.loops
    same = assume_equal(mine.row_extent, others.row_extent)
    same = same and assume_equal(mine.inner_extent, others.inner_extent)
    return Nesting.SAME_EXTENTS if same else None
