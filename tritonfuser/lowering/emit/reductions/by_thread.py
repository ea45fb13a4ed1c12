"""Several tiles of a row reduced as one: each thread first reduces its elements of all tiles.

``tl.sum`` of a tile over several warps is an exchange through shared memory, with barriers before
and after it. A row of 5120 elements has two tiles, of 4096 and 1024, but needs only one exchange:
each thread adds up its elements of both tiles, and then the sums of all threads are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ....device import NVIDIA_WARP_SIZE
from ....ops.forms import Reduction
from ...tile.tile import Tile
from ..names import Name
from .member_tile import MemberTile
from .thread_lanes import neighbours_of_thread

Part = tuple[MemberTile, Name]
"""A tile of a row, and its operand."""


@dataclass(frozen=True, slots=True)
class CrossThreadReduction:
    """A block that is reduced across threads.

    Attributes
    ----------
    tile : MemberTile
        The reduction, at the tile of the block.
    block : str
        The block, as text.
    shape : str
        A key of the block's shape: blocks with equal keys can be reduced together.
    """

    tile: MemberTile
    block: str
    shape: str

    def text(self, form: Reduction) -> str:
        """The block reduced along its axis, with ``keep_dims``, as text."""
        if self.tile.tile.block is None:  # one position at a time: there is no block of them
            return self.block
        return self.tile.keep_dim(form.across.format(x=self.block, axis=self.tile.dim))


def across_tiles(form: Reduction, parts: Sequence[Part]) -> str:
    """The reduction of all tiles of a row, as text. The first tile is that of whole blocks."""
    return joined(form, cross_thread_reductions(form, parts))


def cross_thread_reductions(form: Reduction, parts: Sequence[Part]) -> list[CrossThreadReduction]:
    """The blocks to reduce across threads. Their results combine to the reduction of the row."""
    together, others = _by_all_threads(_with_blocks(form, parts))
    found = [CrossThreadReduction(tile, name.text, tile.shape(name.dims)) for tile, name in others]
    if together:
        (tile, _), *_ = together
        lanes = [_of_threads(form, *part) for part in together]
        rows = tile.shape(frozenset().union(*(name.dims - {t.tile.name} for t, name in together)))
        found.insert(0, CrossThreadReduction(tile, _joined(form, lanes), f"threads of {rows}"))
    return found


def _with_blocks(form: Reduction, parts: Sequence[Part]) -> list[Part]:
    """The tiles, after tiles as wide as a block were combined with the blocks elementwise: the rest
    that a loop leaves then is one more step of it."""
    (blocks, found), *rest = parts
    alike = [part for part in rest if _is_as_wide(part[0].tile, blocks.tile)]
    text = _joined(form, [found.text, *(name.text for _, name in alike)])
    dims = found.dims.union(*(name.dims - {tile.tile.name} for tile, name in alike))
    whole = replace(found, text=text, dims=dims)
    return [(blocks, whole), *(part for part in rest if part not in alike)]


def _is_as_wide(tile: Tile, blocks: Tile) -> bool:
    """Whether a tile is as wide as the blocks, and both have consecutive positions."""
    known = blocks.block is not None and not tile.scattered
    return known and (tile.width, tile.place) == (blocks.width, blocks.place)


def joined(form: Reduction, exchanged: Sequence[CrossThreadReduction]) -> str:
    """The reductions of several blocks combined, as text."""
    return _joined(form, [each.text(form) for each in exchanged])


def _joined(form: Reduction, texts: Sequence[str]) -> str:
    return reduce(lambda a, b: form.combine.format(a=a, b=b), texts)


def _by_all_threads(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """(tiles that have elements for all threads, other tiles). The former are none or several."""
    (first, _), *rest = parts
    if rest and first.context.segment.row_start is not None:
        found = [part for part in parts if _is_of_all_threads(part[0])]
        if len(found) > 1:
            return found, [part for part in parts if part not in found]
    return [], list(parts)


def _is_of_all_threads(tile: MemberTile) -> bool:
    """Whether every thread has elements of a row. In a tile of several rows threads have whole
    vectors, so that a short row takes only some of the threads."""
    if tile.tile.block is None or tile.tile.scattered:
        return False
    vector = 1 if tile.dim == 0 else _vector(tile)
    return tile.tile.width >= _threads(tile) * vector


def _vector(tile: MemberTile) -> int:
    """Adjacent elements of a thread, if the tile has enough of them."""
    vector = neighbours_of_thread(tile.context.segment, tile.context.nest)
    return min(vector, tile.tile.neighbours or vector)


def _threads(tile: MemberTile) -> int:
    return NVIDIA_WARP_SIZE * tile.context.segment.kernel_params.num_warps


def _of_threads(form: Reduction, tile: MemberTile, name: Name) -> str:
    """The reduction of each thread's elements of a tile, as text.

    Triton gives the threads one vector each along a row (fewer elements in a short tile), then the
    next vector each, until the end of the tile.
    """
    threads = _threads(tile)
    if tile.tile.width == threads:
        return name.text
    vector = min(_vector(tile), tile.tile.width // threads)
    text = f"by_thread({name.text}, {threads}, {vector})"
    return form.across.format(x=text, axis=tile.dim + 1)
