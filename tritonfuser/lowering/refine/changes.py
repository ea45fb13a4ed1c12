"""Changes of a segmentation: one value in memory more or less, and other splits of reductions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..fuse.segmentation import Choice
from ..fuse.splits.split_policy import ByDims, CommonRows
from ..passes.invariants.kept_orders import named
from .candidates import candidates
from .kernel_times import TimedKernels
from .row_rereads import reads_rows_twice, reduces_along_and_over_rows
from .splits_by_dims import splits_by_dims
from .stored_flat import stored_flat
from .timed_choices import TimedChoices

MOST_TRIED = 8
"""Changes of one segmentation that are tried: those that may save most."""

MOST_OTHERS = 4
"""Changes that are tried in addition, by values of ``Candidates.others``."""

MOST_AGAIN = 2
"""Changes that are tried in addition, by values that kernels compute at several indices."""

MOST_SPLITS = 6
"""Splits of reductions by dims that are tried for one segmentation."""


def try_changes(times: TimedChoices, choice: Choice) -> None:
    """Time the changes of a segmentation, except those that cannot be much faster than all so far.

    Changes that may save most come first. Splits into parts of adjacent rows come last: they suit
    some of the tensors, where a copy of one of them may suit all.
    """
    now = times.known[choice]
    found = candidates(times.base(choice.pieces), now, times.device)
    possible = _possible(now, choice) | _with_one_more(choice, found.first)
    others = _with_one_more(choice, found.others)
    again = _with_one_more(choice, found.again)
    tried = _first_of(possible, MOST_TRIED) | _first_of(again, MOST_AGAIN)
    tried |= _first_of(others, MOST_OTHERS) | _without_sums_over_rows(now, choice)
    for each in sorted(tried, key=lambda each: choice.interleaved and not each.interleaved):
        if not _changed_nothing(times, choice, each):
            _try(times, each, now.seconds - tried[each])


def try_splits(times: TimedChoices, choice: Choice) -> None:
    """Time other splits of reductions of a segmentation, and then its other changes.

    Splits are tried after all other changes, which may make them unnecessary.
    """
    now = times.known[choice]
    splits = _with_other_splits(
        choice, splits_by_dims(times.base(choice.pieces), now, times.device)
    )
    for each, saved in _first_of(splits, MOST_SPLITS).items():
        _try(times, each, now.seconds - saved)
    if splits or choice.by_dims:
        try_changes(times, choice)


def _first_of(possible: Mapping[Choice, float], most: int) -> dict[Choice, float]:
    """The choices that may save most, at most so many."""
    return dict(sorted(possible.items(), key=lambda item: -item[1])[:most])


def _try(times: TimedChoices, choice: Choice, least: float) -> None:
    """Time a choice that takes at least ``least`` seconds, if that is much faster than all so
    far."""
    if times.may_be_beaten_by(least) and times.may_try:
        times(choice)


def _changed_nothing(times: TimedChoices, choice: Choice, other: Choice) -> bool:
    """Whether the same change of ``rows`` or ``interleaved`` made no difference to a segmentation
    with other values in memory."""
    for field in ("rows", "interleaved"):
        value = getattr(other, field)
        if value != getattr(choice, field):
            tried = (c for c in times.known if getattr(c, field) == getattr(choice, field))
            pairs = ((times.known[c], times.known.get(replace(c, **{field: value}))) for c in tried)
            return any(two is not None and one.is_like(two) for one, two in pairs)
    return False


def _possible(now: TimedKernels, choice: Choice) -> dict[Choice, float]:
    """Choices that change splits, or the kernels that store values, or have one value less in
    memory. Each with the most seconds that it may save."""
    found: dict[Choice, float] = {}
    # Reductions that share a first step are split into factors of their dims.
    shares = any(isinstance(split.parts, tuple) for split in now.segmented.rewrites.splits)
    if shares and not choice.by_dims:
        others = (CommonRows.SEPARATE, CommonRows.WHOLE)
        found.update((replace(choice, rows=rows), now.excess) for rows in others)
    # A tensor that is contiguous along columns has adjacent elements in successive rows.
    if choice.interleaved and any(split.interleave for split in now.segmented.rewrites.splits):
        found[replace(choice, interleaved=False)] = now.excess
    if choice.rereads_rows and reads_rows_twice(now.segmented):
        found[replace(choice, rereads_rows=False)] = now.excess
    for names, saved in stored_flat(now):
        more = tuple(dict.fromkeys((*choice.stored_flat, *names)))
        found[replace(choice, stored_flat=more)] = saved
    for name in choice.materialized or ():
        fewer = tuple(other for other in choice.materialized or () if other != name)
        found[replace(choice, materialized=fewer)] = now.excess
    return found


def _without_sums_over_rows(now: TimedKernels, choice: Choice) -> dict[Choice, float]:
    """The choice without kernels that reduce both ways, with the most seconds that it may save.

    Long rows leave these few programs, each with sums of many columns in registers.
    """
    both_ways = choice.over_rows and reduces_along_and_over_rows(now.segmented)
    return {replace(choice, over_rows=False): now.excess} if both_ways else {}


def _with_one_more(choice: Choice, saved: Mapping[str, float]) -> dict[Choice, float]:
    """Choices with one more value in memory. Each with the most seconds that it may save."""
    stored = choice.materialized or ()
    values = {*map(named, stored)}
    return {
        replace(choice, materialized=(*stored, name)): seconds
        for name, seconds in saved.items()
        if named(name) not in values
    }


def _with_other_splits(choice: Choice, saved: Mapping[ByDims, float]) -> dict[Choice, float]:
    """Choices with one more reduction split by dims, or with other factors of its split."""
    return {
        replace(choice, by_dims=(*_without(choice.by_dims, split), split)): seconds
        for split, seconds in saved.items()
        if split not in choice.by_dims
    }


def _without(splits: tuple[ByDims, ...], split: ByDims) -> tuple[ByDims, ...]:
    return tuple(other for other in splits if other.value != split.value)
