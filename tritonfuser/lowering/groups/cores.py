"""The table of core ops, the ops that kernels are built around, and what grouping asks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...ir import Node, Value
from ...ops.builder import op_of
from ...ops.forms import Contraction
from ...ops.table import Form
from .anchor import Anchor
from .anchor_maker import AnchorMaker
from .fusion_group import FusionGroup
from .product_core import is_epilogue, product_anchor, product_description


class CoreRow(NamedTuple):
    """What an op is to its kernel.

    Attributes
    ----------
    anchor : callable
        Its anchor. Some operands are loaded though they could be computed.
    joins : callable
        Whether an anchor that is no core and no scan may be in its kernel, as far as loops go.
    description : callable
        What the kernel runs over, in words.
    """

    anchor: Callable[[AnchorMaker, Node, frozenset[Value]], Anchor]
    joins: Callable[[Anchor, FusionGroup], bool]
    description: Callable[[Node], str]


CORES: dict[type[Form], CoreRow] = {
    Contraction: CoreRow(product_anchor, is_epilogue, product_description),
}
"""By the lowering form of the op."""


def core_row(node: Node) -> CoreRow:
    """The row of an op that a kernel is built around."""
    return CORES[type(op_of(node).form)]
