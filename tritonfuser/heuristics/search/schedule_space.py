"""The search space of a whole schedule: params of its kernels, parts of its split reductions."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from ..plain_data.codec import encode
from ..schedule import ReductionSplit, Schedule, SegmentSchedule
from .space import SearchSpace


@dataclass(frozen=True, slots=True)
class SegmentSpace:
    """The params that a segment of a schedule may have.

    Attributes
    ----------
    scheduler : str
        The segment's scheduler in the schedule.
    spaces : tuple of SearchSpace
        That of the segment's scheduler, then those of the others that could take the segment.
    refusals : dict of str to str
        Each other scheduler, and why it cannot.
    finishes, beside : tuple of bool
        What these fields of the segment may be, all others as in the schedule.
    """

    scheduler: str
    spaces: tuple[SearchSpace, ...]
    refusals: dict[str, str]
    finishes: tuple[bool, ...] = (False,)
    beside: tuple[bool, ...] = (False,)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "scheduler": self.scheduler,
            "spaces": [space.to_dict() for space in self.spaces],
            "refusals": dict(self.refusals),
            "finishes": list(self.finishes),
            "beside": list(self.beside),
        }


@dataclass(frozen=True, slots=True)
class SplitSpace:
    """The numbers of parts that a split of a schedule may have, its segments as they are.

    Attributes
    ----------
    field : str
        ``splits`` or ``tile_splits``.
    place : int
        Its place in that list.
    value : str
        The first result of the reduction or matrix product.
    meaning : str
        What ``parts`` counts, in words.
    parts : tuple of int
        Those among powers of two for which the segments stay as they are, and that of the
        schedule. Params of rows in registers may have to follow.
    """

    field: str
    place: int
    value: str
    meaning: str
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScheduleSpace:
    """Schedules that differ from one in params, schedulers and parts of reductions.

    The fields are independent but for the conditions in each space. What conditions do not say,
    ``fd.is_legal(schedule, inputs)`` does.

    Attributes
    ----------
    schedule : Schedule
        The schedule to start from.
    segments : tuple of SegmentSpace
        One for each of its segments.
    splits : tuple of SplitSpace
        The splits whose parts can be varied.
    """

    schedule: Schedule
    segments: tuple[SegmentSpace, ...]
    splits: tuple[SplitSpace, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-able: for a tuner of one's own."""
        return {
            "schedule": self.schedule.to_dict(),
            "segments": [segment.to_dict() for segment in self.segments],
            "splits": encode(self.splits),
        }

    def draw(self, rng: random.Random) -> Schedule:
        """A random schedule. Segments for which nothing is found keep their params."""
        pairs = zip(self.schedule.segments, self.segments, strict=True)
        segments = tuple(_drawn(segment, space, rng) for segment, space in pairs)
        found = replace(self.schedule, segments=segments)
        for split in self.splits:
            found = with_parts(found, split.field, split.place, rng.choice(split.parts))
        return found


def _drawn(segment: SegmentSchedule, space: SegmentSpace, rng: random.Random) -> SegmentSchedule:
    if rng.choice((True, False)):  # what both may be, they may not be at once
        segment = replace(segment, finishes=rng.choice(space.finishes))
    else:
        segment = replace(segment, beside=rng.choice(space.beside))
    params = rng.choice(space.spaces).draw(rng) if space.spaces else None
    return segment if params is None else replace(segment, params=params)


LAUNCH_FIELDS = ("finishes", "beside")
"""The fields by which a segment has no launch of its own."""


def with_launch(schedule: Schedule, place: int, field: str, value: bool) -> Schedule:
    """The schedule with a segment in a launch of its own, or in that of another."""
    segments = list(schedule.segments)
    changed: dict[str, Any] = {field: value}
    segments[place] = replace(segments[place], **changed)
    return replace(schedule, segments=tuple(segments))


def with_parts(schedule: Schedule, field: str, place: int, parts: int) -> Schedule:
    """The schedule with another number of parts of one of its splits."""
    found: list[ReductionSplit] = [*getattr(schedule.rewrites, field)]
    found[place] = replace(found[place], parts=parts)
    changed: dict[str, Any] = {field: tuple(found)}
    return replace(schedule, rewrites=replace(schedule.rewrites, **changed))


@dataclass(frozen=True, slots=True)
class Legality:
    """Whether a schedule can be run. True in an ``if`` where it can.

    Attributes
    ----------
    reason : str
        Why not, beginning with the path of the field. Empty where it can.
    """

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        return self.reason or "legal"
