"""Values that a later kernel loads again, and may find in the L2 cache."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from ...device import DeviceProperties
from ...heuristics.cost.refetched import Passing
from ...ir import Fusion, Value
from ..access.bytes_moved import held_bytes
from ..segments.segment import Segment
from .scheduler_queries.launches import may_find_again


def with_later_loads(
    fusion: Fusion, segments: Sequence[Segment], device: DeviceProperties
) -> list[Segment]:
    """Segments, where loops know which of their loads stay in the L2 cache for a later kernel.

    A sum of rows that fit there and what is computed of the sum and the rows: the second kernel
    reads the rows from the cache, unless the loads of the first are marked as used for the last
    time.
    """
    readers: dict[Value, list[int]] = {}
    for place, piece in enumerate(segments):
        for value in piece.inputs:
            readers.setdefault(value, []).append(place)
    moved = [0, *accumulate(piece.bytes_read + piece.bytes_written for piece in segments)]

    def is_found_again(value: Value, place: int) -> bool:
        places = readers[value]
        following = bisect_right(places, place)
        if not value.is_tensor or following == len(places):
            return False
        then = places[following]
        between = moved[then] - moved[place]
        held, read = held_bytes(fusion, value), segments[then].bytes_read
        return may_find_again(Passing(between, held, read, device))

    return [
        replace(piece, loaded_later=tuple(v for v in piece.inputs if is_found_again(v, place)))
        if _has_hints(piece)
        else piece
        for place, piece in enumerate(segments)
    ]


def _has_hints(piece: Segment) -> bool:
    tiling = piece.params.row_tiling
    return tiling is not None and tiling.evict_hints and not tiling.in_registers
