"""The blocks that loads and stores move, by how Triton spreads them over threads."""

from __future__ import annotations

from math import prod

from ....dtypes import DataType
from ....symbolic.index_expr import Affine
from ...tile.proven_runs import proven_run
from ..indexing.kernel_axes import KernelAxes
from ..lines import Block


def block_of(
    axes: KernelAxes, offset: Affine, dims: frozenset[str], dtype: DataType, transposes: bool
) -> Block | None:
    """The block of a load or store. None where it is one element.

    Parameters
    ----------
    dims : frozenset of str
        The kernel axes along which its address or its mask varies.
    transposes : bool
        Whether it is written as the transposed block: see ``transposed_blocks``.
    """
    blocked = axes.blocked(dims)
    sides = [tile for tile in axes.tiles.values() if tile.name in blocked and tile.width > 1]
    if not sides:
        return None
    runs = {tile.place: proven_run(offset, tile) for tile in sorted(sides, key=lambda t: t.place)}
    # Triton's coalescing (``lib/Dialect/TritonGPU/Transforms/Coalesce.cpp``, Triton 3.6): the dim
    # of the longest run, and the first of several.
    fastest = max(runs) if transposes else max(runs, key=runs.__getitem__)
    size = prod(tile.width for tile in sides) * dtype.info.bytes
    return Block(frozenset(runs), fastest, size, dtype)
