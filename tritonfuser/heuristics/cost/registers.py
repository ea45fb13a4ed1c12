"""Registers that a kernel may take at most: all loads of a step begun before the first is used."""

from __future__ import annotations

from ..integers import ceil_div
from ..params import KernelParams
from ..problem import Problem, Stream
from .tiles import KernelTile, tile_of
from .traffic import is_linear

WORD_BYTES = 4
"""Bytes of a register."""

ADDRESS_WORDS = 2
"""Registers of an address."""


def most_registers(problem: Problem, params: KernelParams, wanted: float) -> float:
    """Registers of a thread if the compiler begins all loads of a step at once.

    What is loaded takes a register for each 32-bit word, and one for each element that is narrower.
    Where the offset of a tensor is no linear function of both positions, as of one that is
    transposed or repeated inside of an axis, each element has an address of its own.

    Parameters
    ----------
    wanted : float
        What most kernels take (``KernelTime.registers``).
    """
    tile = tile_of(problem, params)
    threads = params.num_warps * problem.device.warp_size
    elements = max(tile.x * tile.r / threads, 1.0)
    loaded = 0.0
    for stream in problem.streams:
        if not stream.is_store:
            words = ceil_div(stream.item_bytes, WORD_BYTES)
            words += 0 if is_linear(problem, stream) else ADDRESS_WORDS
            loaded += words * min(elements, _positions(stream, tile))
    return wanted + loaded


def _positions(stream: Stream, tile: KernelTile) -> float:
    """Elements of a tensor in a tile."""
    along_x, along_r = stream.along_x, stream.along_r
    return float((tile.x if along_x else 1) * (tile.r if along_r else 1))
