"""Several tiles of a row reduced as one: threads first reduce what they have of all tiles.

``tl.sum`` of a tile that several warps have is an exchange through shared memory, with barriers
before and behind it. The tiles of a row of 5120, of 4096 and 1024 elements, need one exchange and
not two: each thread adds what it has of both, and the threads' sums are added once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ....device import NVIDIA_WARP_SIZE
from ....ops.forms import Reduction
from ...tile.tile import Tile
from ..lines import Name
from .member_tile import MemberTile
from .thread_lanes import neighbours_of_thread

Part = tuple[MemberTile, Name]
"""A tile of a row, and its operand."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A block of which threads exchange what each has reduced.

    Attributes
    ----------
    tile : MemberTile
        The reduction at the tile that the block is of.
    block : str
        The block, as text.
    shape : str
        What says that two blocks have one shape.
    """

    tile: MemberTile
    block: str
    shape: str

    def text(self, form: Reduction) -> str:
        """The block reduced along its axis, which it keeps."""
        if self.tile.tile.block is None:  # one position at a time: there is no block of them
            return self.block
        return self.tile.keep_dim(form.across.format(x=self.block, axis=self.tile.dim))


def across_tiles(form: Reduction, parts: Sequence[Part]) -> str:
    """The reduction of all tiles of a row, as text. The first is that of the blocks."""
    return joined(form, exchanges(form, parts))


def exchanges(form: Reduction, parts: Sequence[Part]) -> list[Exchange]:
    """The blocks whose reductions are joined to that of all tiles of a row."""
    together, apart = _by_all_threads(_with_blocks(form, parts))
    found = [Exchange(tile, name.text, tile.shape(name.dims)) for tile, name in apart]
    if together:
        (tile, _), *_ = together
        lanes = [_of_threads(form, *part) for part in together]
        rows = tile.shape(frozenset().union(*(name.dims - {t.tile.name} for t, name in together)))
        found.insert(0, Exchange(tile, _joined(form, lanes), f"threads of {rows}"))
    return found


def _with_blocks(form: Reduction, parts: Sequence[Part]) -> list[Part]:
    """The tiles, of which those as wide as a block are combined with the blocks element by element:
    what a loop leaves is one more step of it."""
    (blocks, found), *rest = parts
    alike = [part for part in rest if _is_as_wide(part[0].tile, blocks.tile)]
    text = _joined(form, [found.text, *(name.text for _, name in alike)])
    dims = found.dims.union(*(name.dims - {tile.tile.name} for tile, name in alike))
    whole = replace(found, text=text, dims=dims)
    return [(blocks, whole), *(part for part in rest if part not in alike)]


def _is_as_wide(tile: Tile, blocks: Tile) -> bool:
    """Whether a tile is as wide as the blocks, whose positions are consecutive."""
    known = blocks.block is not None and not tile.scattered
    return known and (tile.width, tile.place) == (blocks.width, blocks.place)


def joined(form: Reduction, exchanged: Sequence[Exchange]) -> str:
    """What blocks are reduced to, joined, as text."""
    return _joined(form, [each.text(form) for each in exchanged])


def _joined(form: Reduction, texts: Sequence[str]) -> str:
    return reduce(lambda a, b: form.combine.format(a=a, b=b), texts)


def _by_all_threads(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """The tiles, if several, of which all threads have elements, and the other tiles."""
    (first, _), *rest = parts
    if rest and first.context.segment.row_start is not None:
        found = [part for part in parts if _is_of_all_threads(part[0])]
        if len(found) > 1:
            return found, [part for part in parts if part not in found]
    return [], list(parts)


def _is_of_all_threads(tile: MemberTile) -> bool:
    """Whether all threads have elements of a row. Of several rows threads have whole vectors, and
    where these do not reach a row takes some of the threads."""
    if tile.tile.block is None or tile.tile.scattered:
        return False
    vector = 1 if tile.dim == 0 else _vector(tile)
    return tile.tile.width >= _threads(tile) * vector


def _vector(tile: MemberTile) -> int:
    """Neighbours of a thread, if the tile has enough of them."""
    vector = neighbours_of_thread(tile.context.segment, tile.context.nest)
    return min(vector, tile.tile.neighbours or vector)


def _threads(tile: MemberTile) -> int:
    return NVIDIA_WARP_SIZE * tile.context.segment.kernel_params.num_warps


def _of_threads(form: Reduction, tile: MemberTile, name: Name) -> str:
    """What each thread has of a tile, reduced.

    Triton lays threads along a row with neighbours each, as many as a vector has or fewer in a
    short tile, and then from the start again.
    """
    threads = _threads(tile)
    if tile.tile.width == threads:
        return name.text
    vector = min(_vector(tile), tile.tile.width // threads)
    text = f"by_thread({name.text}, {threads}, {vector})"
    return form.across.format(x=text, axis=tile.dim + 1)
