"""Groups in, what to rewrite before grouping once more out: steps of reductions, lost products."""

from __future__ import annotations

from collections.abc import Mapping

from ...heuristics import matmul, schedulers
from ...heuristics.product_gain import FusedWork, gain
from ...ir import Node, Value
from ...ops.builder import as_call
from ...ops.table import Contraction, View
from ...symbolic.index_expr import axes_in_order
from ..groups.fusion_group import FusionGroup
from ..groups.online_pairs import online_pairs
from ..passes.split_factors import AlongMaximum, Interleaved, Parts
from ..segments import Member
from .common_rows import FirstSteps, common_rows
from .grouper import Grouper
from .product_facts import bytes_of


def first_steps(grouper: Grouper, cut_rows: bool) -> FirstSteps:
    """Reductions to do in two steps, and in how many parts, or which.

    Parameters
    ----------
    cut_rows : bool
        Whether a kernel's reductions may begin along parts of its rows for others to join them.
    """
    found = FirstSteps()
    for group in grouper.groups:
        if group.library is not None or any(m.node.out in found.parts for m in group.members):
            continue
        steps = common_rows(grouper, group, cut_rows)
        if not steps.parts or _disagree(steps.parts, found.parts):
            steps = FirstSteps(_shares(grouper, group))
        found = found.joined(steps)
    return found


def _shares(grouper: Grouper, group: FusionGroup) -> dict[Value, Parts]:
    """Reductions of a group that are shared out over more programs, if any."""
    problem = grouper.problem(group)
    parts, of = schedulers.split(problem), schedulers.interleave(problem)
    members = group.members[:1] if group.product else group.outer or group.members
    wanted: Parts = Interleaved(parts, of) if of else parts
    found: dict[Value, Parts] = {member.node.out: wanted for member in members}
    for total, top in _pairs(grouper, group).items() if problem.online_softmax else ():
        found[total] = AlongMaximum(top.node.out)
    return found if parts > 1 else {}


def _pairs(grouper: Grouper, group: FusionGroup) -> dict[Value, Member]:
    return online_pairs(grouper.fusion, {m.node.out: m for m in group.members})


def _disagree(steps: Mapping[Value, Parts], found: Mapping[Value, Parts]) -> bool:
    """Whether a reduction is to begin in another way already."""
    return any(found.get(value, parts) != parts for value, parts in steps.items())


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


def _tile_parts(grouper: Grouper, group: FusionGroup, start: FusionGroup) -> dict[Value, int]:
    assert start.product is not None
    columns = frozenset(axes_in_order(start.members[0].index[-1]))
    product = grouper.facts.product(start.product)
    width = matmul.epilogue_columns(product, grouper.device)
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
        problem = grouper.problem(group)
        assert problem.product is not None
        fused = _fused_work(grouper, group, group.product, schedulers.split(problem))
        alone = not fused.has_epilogue and not fused.prologue_bytes
        if alone or gain(problem.product, fused, grouper.device) <= 0:
            found.add(group.product.out)
    return frozenset(found)


def _fused_work(grouper: Grouper, group: FusionGroup, node: Node, parts: int) -> FusedWork:
    forms = (as_call(other).op.form for other in group.nodes)
    return FusedWork(
        epilogue_ops=sum(not isinstance(form, View | Contraction) for form in forms),
        has_epilogue=bool(group.stores) or len(group.members) > 1,
        prologue_bytes=sum(bytes_of(value) for value in grouper.facts.computed(node)),
        k_parts=parts,
    )
