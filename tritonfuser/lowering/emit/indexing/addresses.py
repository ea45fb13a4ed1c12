"""Addresses of elements as text, with what Triton is told of how they lie together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....ir import Value
from ....shapes.index_map import Guard
from ....symbolic.index_expr import Affine
from ...tile.proven_runs import proven_run
from .index_writer import IndexWriter


def address(index: IndexWriter, value: Value, offset: Affine, guards: Iterable[Guard] = ()) -> str:
    """The address of an element of a buffer: ``tv0_ptr + x * 4 + r``.

    Where Triton would give a thread more consecutive elements than ``Tile.neighbours``, the address
    is limited by ``tl.max_contiguous``. On positions that hint would hide from Triton's axis
    analysis that their quotients are equal for neighbours.

    Parameters
    ----------
    guards : iterable of Guard
        The element is masked where these do not hold.
    """
    place, axes = index.offset_text(offset, guards), index.axes
    text = f"{value.name}_ptr" if place == "0" else f"{value.name}_ptr + {place}"
    blocked = axes.blocked(axes.dims(offset))
    tiles = (tile for tile in axes.tiles_of(offset) if tile.neighbours and tile.name in blocked)
    runs = {t.place: t.neighbours for t in tiles if proven_run(offset, t) > t.neighbours}
    return with_max_contiguous(text, runs, axes.rank)


def with_max_contiguous(pointer: str, runs: Mapping[int, int], rank: int) -> str:
    """A block of addresses in ``tl.max_contiguous``.

    Parameters
    ----------
    runs : mapping of int to int
        For dims of the block, the most consecutive addresses; 1 along all others.
    rank : int
        The number of dims of the block.
    """
    if not runs:
        return pointer
    sizes = [runs.get(place, 1) for place in range(rank)]
    return f"tl.max_contiguous({pointer}, {sizes if rank > 1 else sizes[0]})"
