"""The layout of a flat tile of two sides, in which tensors along one of its sides are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....device import NVIDIA_WARP_SIZE
from ..counts import Number
from ..numbers import Lookups
from .access import FlatAccess
from .tensor import FlatTensor


class TileLayout(NamedTuple):
    """How the threads of a program are laid out over a tile of two sides: lanes along one side
    first, then along the other one; warps in the same order.

    Attributes
    ----------
    first_side : int
        The side that lanes run along first.
    vector : int
        Adjacent elements of a thread along it.
    """

    first_side: int
    vector: int

    def broadcast_loads(
        self, access: FlatAccess, blocks: Sequence[Number], threads: Number, m: Lookups
    ) -> tuple[Number, Number]:
        """(loads of all warps, cache lines of each) for a tensor that runs along one side, and has
        fewer elements in the tile than there are threads.

        Triton loads such a tensor in the layout of the tile, broadcast along the other side: each
        warp loads it for itself.
        """
        (side,), warps = access.along, threads // NVIDIA_WARP_SIZE
        block = blocks[self.first_side]
        lanes = m.minimum(m.maximum(block // self.vector, 1), NVIDIA_WARP_SIZE)
        warps_along = m.minimum(m.maximum(block // (self.vector * lanes), 1), warps)
        of_thread = self.vector
        if side != self.first_side:
            lanes, warps_along, of_thread = NVIDIA_WARP_SIZE // lanes, warps // warps_along, 1
        of_warp = m.maximum(blocks[side] / warps_along, lanes)
        loads = m.maximum(of_warp / (lanes * min(access.vector, of_thread)), 1.0)
        return warps * loads, m.each(access.lines_of_lanes, lanes, of_thread)


def tile_layout(tensors: Sequence[FlatTensor], found: Sequence[FlatAccess]) -> TileLayout | None:
    """The layout of a tile of two sides: that of its widest store. None if no store runs along both
    sides."""
    stores = [
        (access.warp_positions // NVIDIA_WARP_SIZE, access.lane_side)
        for tensor, access in zip(tensors, found, strict=True)
        if tensor.stream.is_store and len(access.along) > 1
    ]
    if not stores:
        return None
    vector, first_side = max(stores)
    return TileLayout(first_side, vector)
