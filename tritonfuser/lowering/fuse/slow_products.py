"""Groups in, the matrix products that torch computes faster out."""

from __future__ import annotations

from ...heuristics.product_gain import FusedWork
from ...ir import Node, Value
from ...ops.builder import as_call
from ...ops.table import Contraction, View
from ..groups.fusion_group import FusionGroup
from . import questions
from .grouper import Grouper
from .product_facts import bytes_of


def slow_products(grouper: Grouper) -> frozenset[Value]:
    """The results of products that torch is expected to compute faster, with a kernel behind it."""
    found: set[Value] = set()
    for group in grouper.groups:
        if group.product is None:
            continue
        problem = grouper.problem(group)
        assert problem.product is not None
        fused = _fused_work(grouper, group, group.product, questions.split(problem)[0])
        alone = not fused.has_epilogue and not fused.prologue_bytes
        if alone or questions.is_slow(problem.product, fused, grouper.device):
            found.add(group.product.out)
    return frozenset(found)


def _fused_work(grouper: Grouper, group: FusionGroup, node: Node, parts: int) -> FusedWork:
    """What a kernel computes before and after its product."""
    forms = (as_call(other).op.form for other in group.nodes)
    return FusedWork(
        epilogue_ops=sum(not isinstance(form, View | Contraction) for form in forms),
        has_epilogue=bool(group.stores) or len(group.members) > 1,
        prologue_bytes=sum(bytes_of(value) for value in grouper.facts.computed(node)),
        k_parts=parts,
    )
