"""The search space of matrix products."""

from __future__ import annotations

from ..problem import Problem
from ..product import Product, product_of
from .common import powers
from .space import Alternative, AtMost, Choice, SearchSpace

TILE = (16, 256)
"""Least and most elements of a side of a tile."""

MOST_OF_TILE = 256 * 128
"""Elements of a tile that the registers of a program hold."""


def matmul_space(problem: Problem) -> SearchSpace:
    """Tile, step along K, warps, stages, order of tiles, and the copy engine."""
    product = product_of(problem)
    assert product is not None
    sides = tuple(powers(*TILE))
    choices = (
        Choice.of("block_m", sides),
        Choice(("block_n", "parts"), _columns(product, sides)),
        Choice.of("block_k", tuple(powers(32, 128))),
        Choice.of("group_m", (1, 4, 8, 16)),
        Choice.of("programs", (0, problem.device.sm_count)),
        Choice.of("descriptors", (False, True) if product.descriptors else (False,)),
        Choice.of("num_warps", (4, 8)),
        Choice.of("num_stages", range(1, 7)),
    )
    moved = product.left_bytes + product.right_bytes
    shared = problem.device.shared_bytes_per_block
    conditions = (
        AtMost(("block_m", "block_n"), MOST_OF_TILE),
        AtMost(("block_m", "block_k", "num_stages"), shared, scale=moved),
        AtMost(("block_n", "block_k", "num_stages"), shared, scale=moved),
    )
    return SearchSpace("matmul", (Alternative({}, choices, conditions),))


def _columns(product: Product, sides: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """(block_n, parts): the columns of a tile, and the parts in which its epilogue has them.

    An epilogue that reduces columns has all of these in each part.
    """
    width = product.reduced_columns
    if width:
        return tuple((n * width, n) for n in (1, 2) if product.n % (n * width) == 0)
    return tuple((n, parts) for n in sides for parts in (1, 2) if n // parts >= TILE[0])
