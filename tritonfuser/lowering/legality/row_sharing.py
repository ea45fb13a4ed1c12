"""Whether several programs can share the rows of a kernel. Returns a reason, or None."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ...dtypes import DataType, compute_dtype
from ...ops.builder import as_call
from ...ops.forms import Reduction
from ..segments.member import Member
from ..segments.segment import Segment

_PUBLISHED = (DataType.Float, DataType.Double)
"""Dtypes of the sums that programs can publish to one another."""


def why_not_published(members: Iterable[Member], depth: int) -> str | None:
    """None, or why the results of reductions along rows cannot be published to other programs.

    Parameters
    ----------
    members : iterable of Member
        The reductions along the rows.
    depth : int
        The longest chain of them. Programs publish once a row, so 1 at most.
    """
    if depth > 1:
        return "its reductions along the rows depend on one another"
    found: set[DataType] = set()
    for member in members:
        if not isinstance(as_call(member.node).op.form, Reduction):
            return f"{member.node.op} has several results"
        found.add(compute_dtype(next(member.node.operands()).dtype))
    if len(found) != 1 or not found <= set(_PUBLISHED):
        return "what it reduces along the rows is not all float or all double"
    return None


def why_not_shared(segment: Segment) -> str | None:
    """None, or why programs cannot share the rows of a segment."""
    if prod(a.extent for a in segment.looped_axes) < 2:
        return "a program has one row"
    along = [m for m in segment.members if set(m.across) <= set(segment.reduced)]
    return why_not_published(along, segment.depth)
