"""Search space and legality of schedules, asked by ``fd.search_space`` and ``fd.is_legal``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..errors import ParamsError
from ..heuristics.integers import next_power_of_2
from ..heuristics.schedule import ReductionSplit, Schedule
from ..heuristics.search.schedule_space import (
    Legality,
    ScheduleSpace,
    SegmentSpace,
    SplitSpace,
    with_launch,
    with_parts,
)
from ..heuristics.search.space import Alternative, SearchSpace
from ..heuristics.search.spaces import SPACES
from ..ir import Fusion
from ..lowering.legality.scheduler import why_not_scheduler
from ..lowering.run_options import RunOptions
from ..lowering.schedules import schedule_of
from ..lowering.segments.segment import Segment
from ..lowering.segments.segmented_fusion import SegmentedFusion
from .dry_run import lower_for

MOST_PARTS = 1 << 12
"""Parts of a reduction that are tried at most: some for each program of the largest device."""

_OF_PARAMS = re.compile(r"segments\[\d+\]\.params")
"""How refusals begin of schedules whose kernels can be, under other params."""

CONTIGUOUS = "about so many parts of neighbouring elements, as the extents have divisors"
INTERLEAVED = "about so many parts, to which elements go in turn, as the extents have divisors"
WITH_REMAINDER = "so many equal parts of one dim, and what is left behind them"
PADDED = "so many parts of one dim, which is padded to a multiple of them"


def search_space(
    fusion: Fusion, inputs: Sequence[Any], options: RunOptions, found: SegmentedFusion
) -> ScheduleSpace:
    """What could be tried in the place of a schedule.

    Parameters
    ----------
    inputs : sequence
        Flat inputs.
    options : RunOptions
        Of the run, without a schedule.
    found : SegmentedFusion
        As the schedule to start from cuts it.
    """
    chosen = schedule_of(found)

    def is_legal(schedule: Schedule) -> bool:
        """Whether it has the same segments: params may have to follow the parts."""
        reason = legality(fusion, inputs, replace(options, schedule=schedule)).reason
        return not reason or _OF_PARAMS.match(reason) is not None

    splits = []
    for field in ("tile_splits", "splits"):
        for place, split in enumerate(getattr(chosen.rewrites, field)):
            if not isinstance(split.parts, int):
                continue
            counts = _counts(split.parts)
            legal = [n for n in counts if is_legal(with_parts(chosen, field, place, n))]
            splits.append(SplitSpace(field, place, split.value, _meaning(split), tuple(legal)))
    spaces = []
    for place, segment in enumerate(found.segments):
        finishes, beside = (
            _values(chosen, place, field, is_legal) for field in ("finishes", "beside")
        )
        spaces.append(replace(segment_space(segment), finishes=finishes, beside=beside))
    return ScheduleSpace(chosen, tuple(spaces), tuple(splits))


def _values(
    chosen: Schedule, place: int, field: str, is_legal: Callable[[Schedule], bool]
) -> tuple[bool, ...]:
    """What a field of a segment that says who launches it may be, that of the schedule first."""
    own: bool = getattr(chosen.segments[place], field)
    other = place > 0 and is_legal(with_launch(chosen, place, field, not own))
    return (own, not own) if other else (own,)


def legality(fusion: Fusion, inputs: Sequence[Any], options: RunOptions) -> Legality:
    """Whether ``options.schedule`` can be run: lowered, not compiled.

    Raises
    ------
    InputError
        The inputs do not fit the definition.
    """
    try:
        lower_for(fusion, inputs, options)
    except ParamsError as error:
        return Legality(error.message)
    return Legality()


def segment_space(segment: Segment) -> SegmentSpace:
    """What could be tried for one segment, and why other schedulers refuse it."""
    if segment.problem is None:
        nothing = SearchSpace(segment.scheduler, (Alternative({}, ()),))
        refused = {n: why_not_scheduler(n, None) or "" for n in SPACES if n != segment.scheduler}
        return SegmentSpace(segment.scheduler, (nothing,), refused)
    refusals = {}
    spaces = []
    for name, space in SPACES.items():
        reason = why_not_scheduler(name, segment.problem)
        if reason is not None:
            refusals[name] = reason
            continue
        made = space(segment.problem)
        spaces += [made] if made.alternatives else []
    spaces.sort(key=lambda space: space.scheduler != segment.scheduler)
    return SegmentSpace(segment.scheduler, tuple(spaces), refusals)


def _counts(chosen: int) -> Iterator[int]:
    """Powers of two, and the chosen number."""
    count = 2
    while count <= min(MOST_PARTS, 8 * next_power_of_2(chosen)):
        yield count
        if count < chosen < 2 * count:
            yield chosen
        count *= 2


def _meaning(split: ReductionSplit) -> str:
    if split.remainder:
        return WITH_REMAINDER
    if split.padded != -1:
        return PADDED
    return INTERLEAVED if split.interleave else CONTIGUOUS
