"""Proposes schedules to try: neighbours of the best so far, and random ones."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Any

from ...cache.schedule_queries import segment_space
from ...heuristics.params import HeuristicParams
from ...heuristics.schedule import ReductionSplit, Schedule, SegmentSchedule
from ...heuristics.search.near import params_near, replaced
from ...heuristics.search.schedule_space import LAUNCH_FIELDS, with_launch
from ...heuristics.search.space import SearchSpace
from ...heuristics.search.spaces import SPACES
from ...lowering.schedules import schedule_of
from ...lowering.segments.segment import Segment
from ...lowering.segments.segmented_fusion import SegmentedFusion

PARTS = (0.25, 0.5, 1.0, 1.0, 2.0, 4.0)
"""Factors of the parts of a split reduction, of random schedules."""

SMALL = 0.1
"""A segment with a smaller share of all bytes is left as it is: its time hardly counts."""

DRAWN = 0.3
"""Share of random schedules. The others are near the best one."""

LONGEST_WALK = 3
"""Most moves from the best schedule, once all single ones were tried."""


def candidates(
    found: SegmentedFusion,
    rng: random.Random,
    splits: bool = True,
    schedulers: bool = False,
) -> Iterator[Schedule]:
    """Random schedules with the kernels of a segmented fusion, without end.

    Parameters
    ----------
    splits : bool
        Whether the parts of split reductions differ too.
    schedulers : bool
        Whether other schedulers that take a segment are tried.
    """
    chosen = schedule_of(found)
    spaces = {place: _spaces(found.segments[place], schedulers) for place in large_segments(found)}
    while True:
        segments = list(chosen.segments)
        for place, choices in spaces.items():
            segments[place] = _drawn(segments[place], choices, rng)
        made = replace(chosen, segments=tuple(segments))
        yield _scaled(made, rng.choice(PARTS)) if splits else made


def _spaces(segment: Segment, schedulers: bool) -> Sequence[SearchSpace]:
    """The space of a segment's scheduler, and of the others that could take it."""
    if segment.problem is None:
        return ()
    own = SPACES[segment.scheduler](segment.problem)
    return (own, *segment_space(segment).spaces[1:]) if schedulers else (own,)


def large_segments(found: SegmentedFusion) -> list[int]:
    """The segments that move a tenth of all bytes, so that their time counts."""
    moved = [segment.bytes_read + segment.bytes_written for segment in found.segments]
    return [place for place, count in enumerate(moved) if count >= SMALL * sum(moved)]


def _drawn(
    segment: SegmentSchedule, spaces: Sequence[SearchSpace], rng: random.Random
) -> SegmentSchedule:
    params = rng.choice(spaces).draw(rng) if spaces else None
    return segment if params is None else replace(segment, params=params)


def _scaled(schedule: Schedule, factor: float) -> Schedule:
    """With other numbers of parts of all split reductions."""
    splits = tuple(_with_parts(split, factor) for split in schedule.rewrites.splits)
    return replace(schedule, rewrites=replace(schedule.rewrites, splits=splits))


def _with_parts(split: ReductionSplit, factor: float) -> ReductionSplit:
    if not isinstance(split.parts, int):
        return split
    return replace(split, parts=max(2, int(split.parts * factor)))


# --- near a schedule -----------------------------------------------------------------------------


def neighbours(found: SegmentedFusion, splits: bool = True) -> Iterator[Schedule]:
    """The schedules that differ from that of a segmented fusion by one step of one choice."""
    chosen = schedule_of(found)
    for place in large_segments(found):
        segment = found.segments[place]
        if segment.problem is not None:
            for params in params_near(SPACES[segment.scheduler](segment.problem), segment.params):
                yield _with_segment(chosen, place, params)
    for place, one in enumerate(chosen.segments[1:], 1):
        for field in LAUNCH_FIELDS:
            yield with_launch(chosen, place, field, not getattr(one, field))
    if splits:
        for place, split in enumerate(chosen.rewrites.splits):
            for factor in (0.5, 2.0):
                changed = list(chosen.rewrites.splits)
                changed[place] = _with_parts(split, factor)
                rewrites = replace(chosen.rewrites, splits=tuple(changed))
                yield replace(chosen, rewrites=rewrites)


def _with_segment(schedule: Schedule, place: int, params: HeuristicParams) -> Schedule:
    segments = list(schedule.segments)
    segments[place] = replace(segments[place], params=params)
    return replace(schedule, segments=tuple(segments))


# --- what to try next ----------------------------------------------------------------------------


class Proposals:
    """Schedules to try, without end: neighbours of the best so far mixed with random ones.

    Parameters
    ----------
    found : SegmentedFusion
        The schedule to begin with.
    rng : random.Random
        Decides the order.
    wide : bool
        Whether the parts of split reductions and the schedulers may change.
    """

    def __init__(self, found: SegmentedFusion, rng: random.Random, wide: bool) -> None:
        self._rng, self._wide = rng, wide
        self.move_to(found)

    def move_to(self, best: SegmentedFusion) -> None:
        """From here on, schedules near this one."""
        self._random = candidates(best, self._rng, splits=self._wide, schedulers=self._wide)
        near = list(neighbours(best, self._wide))
        self._rng.shuffle(near)
        self._near = chain(near, self._walks(schedule_of(best), near))

    def __next__(self) -> Schedule:
        return next(self._random if self._rng.random() < DRAWN else self._near)

    def _walks(self, best: Schedule, near: Sequence[Schedule]) -> Iterator[Schedule]:
        """Two or three moves at a time; random schedules where there are no moves."""
        while near:
            count = self._rng.randint(2, LONGEST_WALK)
            yield joined(best, [self._rng.choice(near) for _ in range(count)])
        yield from self._random


def joined(best: Schedule, moved: Sequence[Schedule]) -> Schedule:
    """All that some schedules have changed; the last change of a field counts.

    What has other kernels, or other reductions in two steps, is left out.
    """
    segments, splits = list(best.segments), list(best.rewrites.splits)
    for other in moved:
        if kernels_of(other) != kernels_of(best):
            continue
        for place, (was, now) in enumerate(zip(best.segments, other.segments, strict=True)):
            fields = _changes(was.params, now.params)
            for params in replaced(segments[place].params, fields) if fields else ():
                segments[place] = replace(segments[place], params=params)
        for place, (old, new) in enumerate(
            zip(best.rewrites.splits, other.rewrites.splits, strict=True)
        ):
            splits[place] = new if new != old else splits[place]
    rewrites = replace(best.rewrites, splits=tuple(splits))
    return replace(best, rewrites=rewrites, segments=tuple(segments))


def kernels_of(schedule: Schedule) -> Hashable:
    """A key of the kernels of a schedule: equal where only params, parts and launches differ."""
    splits = tuple(split.value for split in schedule.rewrites.splits)
    segments = ((s.scheduler, s.computes, s.stores, s.loads) for s in schedule.segments)
    return replace(schedule.rewrites, splits=()), splits, tuple(segments)


def _changes(was: HeuristicParams, now: HeuristicParams) -> dict[str, Any]:
    """The fields that differ; of params of one class."""
    names = [row.name for row in fields(was)]
    return {n: getattr(now, n) for n in names if getattr(now, n) != getattr(was, n)}
