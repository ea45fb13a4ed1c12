"""Concrete Fusion in, an equal Fusion with less to compute out."""

from __future__ import annotations

from ...ir import Fusion
from .copy_elimination import eliminate_copies
from .decompose import decompose
from .redundant_nodes import drop_dead, merge_equal


def simplify(fusion: Fusion) -> Fusion:
    """Decompose composite ops, eliminate copies, equal nodes and dead ones.

    ``silu(x)`` -> ``mul(x, sigmoid(x))``;
    ``cast(cast(x: BFloat16, Float), BFloat16)`` -> ``x``;
    ``mul(x, y); mul(x, y)`` -> one ``mul``.
    """
    for rewrite in (decompose, eliminate_copies, merge_equal, drop_dead):
        fusion = rewrite(fusion)
    return fusion
