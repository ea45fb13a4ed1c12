"""Groups in, what to rewrite before grouping once more out: steps of reductions, lost products."""

from __future__ import annotations

from ..affine import axes_in_order
from ..heuristics import matmul, schedulers
from ..ir import Node, Value
from .grouper import Grouper
from .grouping import Group
from .products import bytes_of


def parts_of(grouper: Grouper) -> dict[Value, int]:
    """Reductions to do in two steps, and in how many parts."""
    found: dict[Value, int] = {}
    for group in grouper.groups:
        if group.library is not None:
            continue
        parts = schedulers.split(grouper.problem(group))
        if parts > 1:
            members = group.members[:1] if group.product else group.outer or group.members
            found.update({member.node.out: parts for member in members})
    return found


def tile_parts(grouper: Grouper) -> dict[Value, int]:
    """Reductions of whole rows of a product that its kernel can begin, and in how many parts.

    Their first step runs over the columns that a tile has.
    """
    found: dict[Value, int] = {}
    products = [g for g in grouper.groups if g.product is not None]
    for group in grouper.groups:
        for start in products:
            if start.number in group.needs and group.depth == 1 and not group.full_outputs:
                found.update(_tile_parts(grouper, group, start))
    return found


def _tile_parts(grouper: Grouper, group: Group, start: Group) -> dict[Value, int]:
    assert start.product is not None
    columns = frozenset(axes_in_order(start.members[0].index[-1]))
    product = grouper.facts.product(start.product)
    width = matmul.width(product, grouper.device)
    if not width or product.n == width:
        return {}
    return {
        member.node.out: product.n // width
        for member in group.members
        if frozenset(member.across) == columns
    }


def losing(grouper: Grouper) -> frozenset[Value]:
    """Products that torch and a kernel behind it are expected to do faster."""
    found: set[Value] = set()
    for group in grouper.groups:
        if group.product is None:
            continue
        saved = _saved(grouper, group, group.product)
        product = grouper.facts.product(group.product)
        if not saved or matmul.gain(product, grouper.device, saved) <= 0:
            found.add(group.product.out)
    return frozenset(found)


def _saved(grouper: Grouper, group: Group, node: Node) -> int:
    """Bytes that need not go through memory, since the product is no kernel of its own."""
    saved = 0
    result = bytes_of(node.out)
    kept = {b.root for b in grouper.buffers.values()}
    if group.stores or len(group.members) > 1:
        saved += result
        elsewhere = any(r.value == node.out for other in grouper.groups for r in other.reads)
        saved += 0 if node.out in kept or elsewhere else result
    return saved + sum(2 * bytes_of(value) for value in grouper.facts.computed(node))
