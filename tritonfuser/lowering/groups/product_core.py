"""A matrix product as the core of a kernel: its anchor, what may be its epilogue, its sizes."""

from __future__ import annotations

from ...ir import Node, Value
from ...ops.builder import as_call
from ...ops.mma import product_bias, product_sizes
from ...symbolic.index_expr import Axis, axes_in_order, digit, extent
from ...symbolic.queries import assume_equal
from ..segments.member import Member
from .anchor import Anchor
from .anchor_maker import AnchorMaker
from .fusion_group import FusionGroup


def product_anchor(maker: AnchorMaker, node: Node, stored: frozenset[Value]) -> Anchor:
    """The anchor of a matrix product, over its result's axes and one of its own.

    Parameters
    ----------
    stored : frozenset of Value
        The operands that are loaded though they could be computed.
    """
    call = as_call(node)
    index = maker.home_index[node.out]
    inner = Axis(f"k{node.out.index}", product_sizes(call)[3])
    parallel = tuple(maker.axes.axis(a) for a in maker.axes.domain(node.out))
    *batch, row, column = index
    left, right = (*batch, row, digit(inner)), (*batch, digit(inner), column)
    bias = () if product_bias(call) is None else ((column,),)
    member = Member(node, index, left, (inner,), (right, *bias))
    footprint = maker.walk(member.reads, maker.home_index, stored)
    return Anchor(node.out, parallel, (inner,), index, footprint, member)


def is_epilogue(anchor: Anchor, group: FusionGroup) -> bool:
    """Whether a value can be in a product's epilogue: elementwise, or reduced over columns."""
    if anchor.member is None:
        return anchor.loops.rows == group.loops.rows
    inside = anchor.loops.rows | anchor.loops.inner == group.loops.rows
    columns = axes_in_order(group.members[0].index[-1])
    last = columns[len(columns) - len(anchor.reduced) :]
    return inside and set(last) == set(anchor.reduced) and _reduces(group, extent(last))


def _reduces(group: FusionGroup, columns: int) -> bool:
    """Whether a product's epilogue reduces so many columns at a time, or none yet."""
    width = reduced_columns(group)
    return assume_equal(width, 0) or assume_equal(width, columns)


def reduced_columns(group: FusionGroup) -> int:
    """Columns of the product that its epilogue reduces at a time. 0 for none."""
    return extent(group.members[1].across) if len(group.members) > 1 else 0


def product_description(node: Node) -> str:
    """The product's shape in words, for reasons."""
    batch, *sizes = product_sizes(as_call(node))
    over = f"a matrix product of {' x '.join(str(n) for n in sizes)}"
    return over + (f", {batch} of them" if batch > 1 else "")
