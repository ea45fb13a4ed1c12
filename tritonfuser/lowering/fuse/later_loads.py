"""Marks loads of loops whose tensors a later kernel loads again, and may find in the L2 cache."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from ...device import DeviceProperties
from ...heuristics.cost.memory.refetched import LaterLoad
from ...ir import Fusion, Value
from ..access.bytes_moved import held_bytes
from ..segments.segment import Segment
from .scheduler_queries.launches import may_hit_l2


def with_later_loads(
    fusion: Fusion, segments: Sequence[Segment], device: DeviceProperties
) -> list[Segment]:
    """The segments with ``loaded_later``: inputs that must not be evicted first from the L2 cache.

    Example: a first kernel sums rows that fit in the L2 cache, and a second one computes with the
    sums and the same rows. It reads the rows from the cache, unless the first kernel loads them
    with the eviction policy ``evict_first``. Only kernels with such policies are marked.
    """
    readers: dict[Value, list[int]] = {}
    for place, piece in enumerate(segments):
        for value in piece.inputs:
            readers.setdefault(value, []).append(place)
    moved = [0, *accumulate(piece.bytes_read + piece.bytes_written for piece in segments)]

    def hits_l2_later(value: Value, place: int) -> bool:
        places = readers[value]
        following = bisect_right(places, place)
        if not value.is_tensor or following == len(places):
            return False
        later = places[following]
        reuse_distance = moved[later] - moved[place]
        tensor_bytes, read_bytes = held_bytes(fusion, value), segments[later].bytes_read
        return may_hit_l2(LaterLoad(reuse_distance, tensor_bytes, read_bytes, device))

    return [
        replace(piece, loaded_later=tuple(v for v in piece.inputs if hits_l2_later(v, place)))
        if _has_hints(piece)
        else piece
        for place, piece in enumerate(segments)
    ]


def _has_hints(piece: Segment) -> bool:
    """Whether the kernel loops along rows by loads with eviction policies."""
    tiling = piece.params.row_tiling
    return tiling is not None and tiling.evict_hints and not tiling.in_registers
