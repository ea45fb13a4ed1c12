"""A schedule in, random legal ones like it out: other params, other parts of split reductions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tritonfuser import ReductionSplit, Schedule, SegmentSchedule
from tritonfuser.heuristics.search.spaces import SPACES
from tritonfuser.lowering.schedules import schedule_of
from tritonfuser.lowering.segments import Segment, SegmentedFusion

PARTS = (0.25, 0.5, 1.0, 1.0, 2.0, 4.0)
"""Factors of the parts of a split reduction."""


def candidates(found: SegmentedFusion, rng: random.Random) -> Iterator[Schedule]:
    """Random schedules with the kernels of a segmented fusion, without end."""
    chosen = schedule_of(found)
    large = [n for n, piece in enumerate(found.segments) if _is_large(piece, found)]
    while True:
        segments = list(chosen.segments)
        for place in large:
            segments[place] = _drawn(segments[place], found.segments[place], rng)
        factor = rng.choice(PARTS)
        splits = tuple(_scaled(split, factor) for split in chosen.rewrites.splits)
        yield replace(
            chosen, rewrites=replace(chosen.rewrites, splits=splits), segments=tuple(segments)
        )


def _is_large(piece: Segment, found: SegmentedFusion) -> bool:
    """Whether a segment moves a tenth of all bytes, so that its time counts."""
    total = sum(other.bytes_read + other.bytes_written for other in found.segments)
    return 10 * (piece.bytes_read + piece.bytes_written) >= total


def _drawn(segment: SegmentSchedule, piece: Segment, rng: random.Random) -> SegmentSchedule:
    if piece.problem is None:
        return segment
    params = SPACES[piece.scheduler](piece.problem).draw(rng)
    return segment if params is None else replace(segment, params=params)


def _scaled(split: ReductionSplit, factor: float) -> ReductionSplit:
    if not isinstance(split.parts, int):
        return split
    return replace(split, parts=max(2, int(split.parts * factor)))
