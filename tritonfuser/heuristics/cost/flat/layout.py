"""The layout of a flat tile of two sides, in which tensors along one of its sides are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ....device import NVIDIA_WARP_SIZE
from ..counts import Number
from ..numbers import Lookups
from .access import FlatAccess
from .tensor import FlatTensor


class Access(Protocol):
    """What is asked of a ``FlatAccess``, or of those of many kernels (``ManyAccesses``)."""

    along: tuple[int, ...]
    vector: Number
    load_positions: Number
    warp_positions: Number

    def along_lanes(self, blocks: Sequence[Number]) -> Number: ...
    def lines(self, block: Number) -> Number: ...
    def lines_of_lanes(self, lanes: Number, of_thread: Number) -> Number: ...
    def written_bytes(self, block: Number) -> Number: ...


class TileLayout(NamedTuple):
    """How the threads of a program are laid out over a tile of two sides: lanes along one side
    first, then along the other one; warps in the same order. Of one kernel, or of many (arrays).

    Attributes
    ----------
    first_side : int
        The side that lanes run along first.
    vector : int
        Adjacent elements of a thread along it.
    """

    first_side: Number
    vector: Number

    def broadcast_loads(
        self, access: Access, blocks: Sequence[Number], threads: Number, m: Lookups
    ) -> tuple[Number, Number]:
        """(loads of all warps, cache lines of each) for a tensor that runs along one side, and has
        fewer elements in the tile than there are threads.

        Triton loads such a tensor in the layout of the tile, broadcast along the other side: each
        warp loads it for itself.
        """
        (side,), warps = access.along, threads // NVIDIA_WARP_SIZE
        block = m.where(self.first_side == 0, blocks[0], blocks[-1])
        lanes = m.minimum(m.maximum(block // self.vector, 1), NVIDIA_WARP_SIZE)
        warps_along = m.minimum(m.maximum(block // (self.vector * lanes), 1), warps)
        is_first = self.first_side == side
        of_thread = m.where(is_first, self.vector, 1)
        warps_along = m.where(is_first, warps_along, warps // warps_along)
        lanes = m.where(is_first, lanes, NVIDIA_WARP_SIZE // lanes)
        of_warp = m.maximum(blocks[side] / warps_along, lanes)
        loads = m.maximum(of_warp / (lanes * m.minimum(access.vector, of_thread)), 1.0)
        return warps * loads, access.lines_of_lanes(lanes, of_thread)


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
