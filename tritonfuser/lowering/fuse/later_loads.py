"""Values that a later kernel loads again, and may find in the L2 cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...device import DeviceProperties
from ...heuristics.cost.refetched import Passing
from ...ir import Value
from ..segments import Segment
from .scheduler_queries.launches import may_find_again


def with_later_loads(segments: Sequence[Segment], device: DeviceProperties) -> list[Segment]:
    """Segments, where loops know which of their loads stay in the L2 cache for a later kernel.

    A sum of rows that fit there and what is computed of the sum and the rows: the second kernel
    reads the rows from the cache, unless the loads of the first are marked as used for the last
    time.
    """
    return [
        replace(piece, loaded_later=tuple(_loaded_later(segments, place, device)))
        if _has_hints(piece)
        else piece
        for place, piece in enumerate(segments)
    ]


def _has_hints(piece: Segment) -> bool:
    tiling = piece.params.row_tiling
    return tiling is not None and tiling.evict_hints and not tiling.in_registers


def _loaded_later(
    segments: Sequence[Segment], place: int, device: DeviceProperties
) -> Iterator[Value]:
    missing = {value for value in segments[place].inputs if value.is_tensor}
    moved = 0
    for before, later in zip(segments[place:], segments[place + 1 :], strict=False):
        if not missing:
            return
        moved += before.bytes_read + before.bytes_written
        found = missing.intersection(later.inputs)
        if found and not may_find_again(Passing(moved, device)):
            return
        yield from sorted(found, key=lambda value: value.index)
        missing -= found
