"""``FlatLoads``: the loads and stores of the threads of a program, of all tensors together.

Of one kernel, or of many at once: numbers are then arrays with an entry for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from ....device import NVIDIA_WARP_SIZE
from ..counts import Number
from ..memory.gathered import Gathered
from ..numbers import PLAIN, Lookups
from .access import FlatAccess
from .layout import Access, TileLayout
from .tensor import FlatTensor

_ALONG: tuple[tuple[tuple[int, ...], ...], ...] = ((), ((), (0,)), ((), (0,), (1,), (0, 1)))
"""The sides that a tensor may run along, by the number of sides of a tile."""


class FlatLoads(NamedTuple):
    """The loads and stores of the threads of a program. Other fields are those of ``Traffic``.

    Attributes
    ----------
    hit_lines : float
        Lines that another warp of the program loads too: these hit the L1 cache.
    gathered : list of (Gathered, float)
        The gathers, each with its lines without ``hit_lines``.
    shared : list of float
        For each tensor of which several positions load one element, its lines without
        ``hit_lines``. 0 for other tensors.
    """

    lines: Number
    hit_lines: Number
    accesses: Number
    addresses: Number
    written_bytes: Number
    partial_sector_bytes: Number
    gathered: list[tuple[Gathered, Number]]
    shared: list[Number]


class _TensorLoads(NamedTuple):
    """The loads or stores of one tensor by all warps of a program.

    Attributes
    ----------
    tensor : FlatTensor
        The tensor.
    accesses : float
        Their number.
    lines : float
        Cache lines that they touch.
    first_lines : float
        Of these lines, those that no other warp of the program touches before.
    written_bytes, partial_sector_bytes : float
        Of sectors that stores write; the latter of one kernel alone. 0 for loads, and for stores at
        indices of another tensor.
    """

    tensor: FlatTensor
    accesses: Number
    lines: Number
    first_lines: Number
    written_bytes: Number
    partial_sector_bytes: Number


_NOTHING: Number = 0.0


def flat_loads(
    tensors: Sequence[FlatTensor],
    found: Sequence[Access],
    layout: TileLayout | None,
    blocks: Sequence[Number],
    threads: Number,
    *,
    has_addresses: bool,
    m: Lookups = PLAIN,
) -> FlatLoads:
    """The loads and stores of the threads of a program.

    Parameters
    ----------
    tensors, found : sequence
        The tensors, and how threads load and store each.
    layout : TileLayout or None
        Of tiles of two sides.
    blocks : sequence of int
        The lengths of the sides of the tile.
    threads : int
        Of a program.
    has_addresses : bool
        Whether each load of a thread has an address of its own, as in a transpose.
    """
    lines = hit_lines = accesses = addresses = written = partial = _NOTHING
    gathered: list[tuple[Gathered, Number]] = []
    shared: list[Number] = []
    for tensor, count, touched, first, stored, in_part in _of_tensors(
        tensors, found, layout, blocks, threads, m
    ):
        lines = lines + touched
        hit_lines = hit_lines + (touched - first)
        accesses = accesses + count
        if tensor.stream.is_store:
            written = written + stored
            partial = partial + in_part
        elif has_addresses:
            addresses = addresses + count * NVIDIA_WARP_SIZE / threads
        shared.append(first if tensor.shared else 0.0)
        if tensor.gathered:
            gathered.append((tensor.gathered, first))
    return FlatLoads(lines, hit_lines, accesses, addresses, written, partial, gathered, shared)


def _of_tensors(
    tensors: Sequence[FlatTensor],
    found: Sequence[Access],
    layout: TileLayout | None,
    blocks: Sequence[Number],
    threads: Number,
    m: Lookups,
) -> Iterator[_TensorLoads]:
    """The loads or stores of each tensor."""
    positions = {along: prod(blocks[side] for side in along) for along in _ALONG[len(blocks)]}
    for tensor, access in zip(tensors, found, strict=True):
        is_store, times = tensor.stream.is_store, tensor.times
        block = m.minimum(access.warp_positions, access.along_lanes(blocks))
        count = m.maximum(positions[access.along] / access.load_positions, 1.0)
        first = lines = count * access.lines(block) * times
        if layout is not None and len(access.along) == 1 and not is_store:
            is_small = positions[access.along] < threads
            if m.any(is_small):
                loads, lines_each = layout.broadcast_loads(access, blocks, threads, m)
                lines = m.where(is_small, m.maximum(loads * lines_each * times, first), lines)
                count = m.where(is_small, loads, count)
        written = partial = 0.0
        if is_store and not tensor.gathered:
            written = count * access.written_bytes(block) * times
            if isinstance(access, FlatAccess):  # bounds of many kernels do without
                each = _partial_sector_bytes(access, blocks, positions[access.along], count)
                partial = each * times
        yield _TensorLoads(tensor, count * times, lines, first, written, partial)


def _partial_sector_bytes(
    access: FlatAccess,
    blocks: Sequence[Number],
    positions: Number,
    count: Number,
) -> Number:
    """Bytes of the sectors that ``count`` stores of warps write in part; of tiles with two sides,
    those that rows of the tile write in part. H200, a transpose of 10602 x 7512 in bfloat16, whose
    results begin within sectors: 97, 102 and 132 us by rows of 256, 128 and 64."""
    if len(blocks) == 1:
        return count * access.partial_sector_bytes(min(access.warp_positions, blocks[0]))
    along = blocks[access.lane_side]
    return positions / along * access.partial_sector_bytes_along(along)
