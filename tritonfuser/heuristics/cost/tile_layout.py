"""How threads lie over a flat tile of two sides, and so load what lies along one side of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...device import NVIDIA_WARP_SIZE
from .flat_access import FlatAccess, FlatTensor


class TileLayout(NamedTuple):
    """How the threads of a program lie over a tile of two sides: first the lanes along one side,
    then those along the other, and warps in the same order.

    Attributes
    ----------
    place : int
        The side that the lanes lie along first.
    width : int
        Neighbours of a thread along it.
    """

    place: int
    width: int

    def loads(self, access: FlatAccess, blocks: Sequence[int], threads: int) -> tuple[float, float]:
        """Loads of all warps of a tensor that runs along one side and has fewer elements in the
        tile than there are threads, and the lines of each.

        Triton loads those in the layout of the tile: each warp for itself, as broadcast.
        """
        (side,), warps = access.along, threads // NVIDIA_WARP_SIZE
        lanes = min(max(blocks[self.place] // self.width, 1), NVIDIA_WARP_SIZE)
        along = min(max(blocks[self.place] // (self.width * lanes), 1), warps)
        width = self.width
        if side != self.place:
            lanes, along, width = NVIDIA_WARP_SIZE // lanes, warps // along, 1
        each = max(blocks[side] / along, lanes)
        loads = max(each / (lanes * min(access.width, width)), 1.0)
        return warps * loads, access.lines_apart(lanes, width)


def tile_layout(tensors: Sequence[FlatTensor], found: Sequence[FlatAccess]) -> TileLayout | None:
    """The layout of a tile of two sides: that of its widest store. None of other tiles."""
    stores = [
        (access.neighbours // NVIDIA_WARP_SIZE, access.place)
        for tensor, access in zip(tensors, found, strict=True)
        if tensor.stream.is_store and len(access.along) > 1
    ]
    if not stores:
        return None
    width, place = max(stores)
    return TileLayout(place, width)
