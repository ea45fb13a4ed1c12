"""Which matrix products become generated kernels, and the groups of the fusion with them.

Whether a kernel is faster than torch's product depends on what shares the kernel. So the fusion is
grouped with all products that may be kernels, and again without those that torch is expected to
compute faster, until there are none of these. That is rare: of the 444 definitions of three parts
of ``bench.replay`` (products, random, fuse_matmul) three are grouped twice for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...heuristics import matmul
from ...heuristics.product import product_of
from ...heuristics.product_gain import FusedWork
from ...ir import Node, Value
from ...ops.builder import as_call
from ...ops.forms import Contraction
from ...ops.table import View
from ...symbolic.index_expr import axes_in_order
from ...symbolic.sizes import hint
from ..groups.fusion_group import FusionGroup
from ..passes.contract_to_mma import candidates, contract_to_mma, is_product
from ..product_policy import ProductPolicy
from .grouper import Grouper
from .product_facts import ProductFacts
from .rewritten import Rewritten, in_tiles
from .rules import Rules
from .scheduler_queries.products import torch_is_faster
from .scheduler_queries.splits import split


@dataclass(frozen=True, slots=True)
class Grouped:
    """A fusion as it is rewritten so far, and its groups."""

    found: Rewritten
    groups: Grouper


def with_product_kernels(
    before: Rewritten, policy: ProductPolicy, rules: Rules, two_steps: bool
) -> Grouped:
    """The groups of a fusion with matrix products as kernels.

    Parameters
    ----------
    before : Rewritten
        Torch runs all of its products.
    policy : ProductPolicy
        Who computes matrix products.
    two_steps : bool
        Whether reductions may be done in two steps, the first of which is in a product's tiles.
    """
    chosen = candidates(before.fusion, rules.device, policy)
    while True:
        contracted = contract_to_mma(before.fusion, chosen)
        names = tuple(value.name for value in sorted(chosen, key=lambda value: value.index))
        rewrites = replace(before.rewrites, products=names)
        rewritten = replace(before, fusion=contracted.fusion, rewrites=rewrites)
        found = _in_tiles(rewritten, rules, two_steps)
        slow = frozenset() if rules.fuse_all else slow_products(found.groups)
        if not slow:
            return found
        chosen -= {contracted.products[value] for value in slow}


def _in_tiles(found: Rewritten, rules: Rules, two_steps: bool) -> Grouped:
    """Groups, with reductions of whole rows of products begun in the kernels of these."""
    groups = Grouper(found, rules)
    parts = tile_parts(groups) if two_steps else {}
    if not parts:
        return Grouped(found, groups)
    again = in_tiles(found, parts)
    return Grouped(again, Grouper(again, rules))


def slow_products(grouper: Grouper) -> frozenset[Value]:
    """The results of products that torch is expected to compute faster, with a kernel behind it."""
    found: set[Value] = set()
    for group in grouper.groups:
        if group.core is None or not is_product(group.core):
            continue
        problem = grouper.problem(group)
        product = product_of(problem)
        assert product is not None
        fused = _fused_work(grouper, group, group.core, split(problem)[0])
        alone = not fused.has_epilogue and not fused.prologue_bytes
        if alone or torch_is_faster(product, fused, grouper.device):
            found.add(group.core.out)
    return frozenset(found)


def _fused_work(grouper: Grouper, group: FusionGroup, node: Node, parts: int) -> FusedWork:
    """What a kernel computes before and after its product."""
    forms = (as_call(other).op.form for other in group.nodes)
    return FusedWork(
        epilogue_ops=sum(not isinstance(form, View | Contraction) for form in forms),
        has_epilogue=bool(group.stores) or len(group.members) > 1,
        prologue_bytes=sum(_bytes(value) for value in grouper.facts.prologue_operands(node)),
        k_parts=parts,
    )


def _bytes(value: Value) -> int:
    return hint(value.tensor.numel) * value.dtype.info.bytes


def tile_parts(grouper: Grouper) -> dict[Value, int]:
    """Reductions of whole rows of a product whose first step its kernel can do, and their parts.

    That step reduces the columns that a tile has.
    """
    found: dict[Value, int] = {}
    products = [g for g in grouper.groups if g.core is not None and is_product(g.core)]
    for group in grouper.groups:
        for start in products:
            if start.number in group.needs and group.depth == 1 and not group.full_outputs:
                found.update(_tile_parts(grouper, group, start))
    return found


def _tile_parts(grouper: Grouper, group: FusionGroup, start: FusionGroup) -> dict[Value, int]:
    assert start.core is not None
    columns = frozenset(axes_in_order(start.members[0].index[-1]))
    facts = grouper.facts.of(start.core)
    assert isinstance(facts, ProductFacts)
    product = facts.product(start.core)
    width = matmul.epilogue_columns(product, grouper.device)
    if not width or product.n == width:
        return {}
    return {
        member.node.out: product.n // width
        for member in group.members
        if frozenset(member.across) == columns
    }
