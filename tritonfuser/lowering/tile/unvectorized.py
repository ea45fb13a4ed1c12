"""Loads that must be declared unaligned, so that Triton does not vectorize them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...device import VECTOR_BYTES
from ...ir import Value
from ...symbolic.queries import is_known_equal, is_known_multiple
from ..access.read_footprint import Read
from ..access.traffic import offset_of
from .tile import Tile


def unvectorized(
    reads: Iterable[Read], strides: Mapping[Value, tuple[int, ...]], tiles: tuple[Tile, ...]
) -> frozenset[Value]:
    """The tensors whose loads must not be vectorized, since larger loads beside them cannot be.

    Triton gives a thread as many neighbours as the widest load of a kernel takes. In a matrix of
    odd width rows begin anywhere, and those neighbours are loaded one by one, 16 bytes apart
    between threads: eight times the accesses. So small tensors, as a row's weights, are not
    declared aligned there.

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
    """The dims of a tile that a load runs over, and -1 if it differs from program to program."""
    names = {axis.name for item in read.index for axis in item.axes()}
    return {-1 if t.block is None else t.place for t in tiles if t.name in names}


def _is_wide(read: Read, strides: tuple[int, ...]) -> bool:
    """Whether neighbours begin at multiples of a vector, whatever row they are in."""
    offset = offset_of(read.index, strides)
    size = read.value.dtype.info.bytes
    steps = [step for _, step in offset.terms if not is_known_equal(step, 1)]
    return all(is_known_multiple(step * size, VECTOR_BYTES) for step in (*steps, offset.const))
