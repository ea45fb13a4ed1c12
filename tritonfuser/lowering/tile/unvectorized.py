"""Small loads that are declared unaligned, so that Triton does not vectorize them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...device import VECTOR_BYTES
from ...ir import Value
from ...symbolic.queries import is_known_equal, is_known_multiple
from ..access.reads import Read
from ..access.traffic import offset_of
from .tile import Tile


def unvectorized(
    reads: Iterable[Read], strides: Mapping[Value, tuple[int, ...]], tiles: tuple[Tile, ...]
) -> frozenset[Value]:
    """The tensors whose loads must not be vectorized, because the large loads of the kernel cannot
    be.

    Triton gives each thread as many adjacent elements as the widest load of a kernel has. The rows
    of a matrix of odd width begin anywhere, so that their elements are loaded one by one. If a
    small tensor, as the weights of rows, were loaded by vectors, the lanes of these single loads
    would be 16 bytes from each other: eight times the accesses. So such tensors are not declared
    aligned.

    Parameters
    ----------
    reads : iterable of Read
        All loads of the kernel.
    strides : mapping
        Strides of the buffers, in elements.
    """
    found = [read for read in reads if read.value.is_tensor]
    row = max((tile.place for tile in tiles if tile.block is not None), default=0)
    whole = [read for read in found if len(places := _places(read, tiles)) > 1 and row in places]
    if all(_is_wide(read, strides[read.value]) for read in whole):
        return frozenset()
    return frozenset(read.value for read in found) - {read.value for read in whole}


def _places(read: Read, tiles: tuple[Tile, ...]) -> set[int]:
    """The dims of a tile that a load runs along, and -1 if it differs between programs."""
    names = {axis.name for item in read.index for axis in item.axes()}
    return {-1 if t.block is None else t.place for t in tiles if t.name in names}


def _is_wide(read: Read, strides: tuple[int, ...]) -> bool:
    """Whether a load can be vectorized: all its strides but 1 are multiples of a vector."""
    offset = offset_of(read.index, strides)
    size = read.value.dtype.info.bytes
    steps = [step for _, step in offset.terms if not is_known_equal(step, 1)]
    return all(is_known_multiple(step * size, VECTOR_BYTES) for step in (*steps, offset.const))
