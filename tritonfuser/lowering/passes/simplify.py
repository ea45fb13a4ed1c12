"""Concrete Fusion in, an equal Fusion with less to compute out."""

from __future__ import annotations

from ...ir import Fusion
from .copy_elimination import eliminate_copies
from .decompose import decompose
from .narrow_operands import narrow_operands
from .redundant_nodes import eliminate_common_subexpressions, eliminate_dead_code


def simplify(fusion: Fusion) -> Fusion:
    """Decompose composite ops, eliminate copies, equal nodes and dead ones.

    ``silu(x)`` -> ``mul(x, sigmoid(x))``;
    ``cast(cast(x: BFloat16, Float), BFloat16)`` -> ``x``;
    ``mul(x, y); mul(x, y)`` -> one ``mul``.
    """
    fusion = eliminate_copies(decompose(fusion))
    narrow = narrow_operands(fusion)
    fusion = fusion if narrow is fusion else eliminate_copies(narrow)
    return eliminate_dead_code(eliminate_common_subexpressions(fusion))
