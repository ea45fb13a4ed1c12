"""Searches for a faster segmentation by the cost model, starting from that of the rules.

Rules segment a fusion by legality and by bytes. They do not see that a kernel reads one tensor
along another axis than the others, one sector for each element, or that it recomputes a value for
each use. Where kernels are predicted to take much longer than their bytes, other segmentations are
tried: with one more materialized value, or one less; with reductions split in another way; and with
rows reduced in one kernel and used in the next. The search is best-first: the most promising of all
known segmentations is changed next, since it may take two changes, such as copies of two transposed
tensors, before anything is gained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...device import DeviceProperties
from ...ir import Fusion
from ..cost import LEAST_S, moved_bytes
from ..fuse.segmentation import HEURISTIC, Choice, Segmenter
from ..passes.invariants.materialize import materializable
from ..segments.segmented_fusion import SegmentedFusion
from .after_reductions import computed_of_reductions
from .changes import try_changes, try_splits
from .computed_again import computed_again
from .crossing_views import crossing_views
from .kernel_times import TimedKernels, timed_kernels
from .reduced_pieces import with_pieces
from .row_rereads import few_read_rows_twice, rereads_rows_in_next_kernel
from .timed_choices import TimedChoices, worth_trying

ROWS_MOVED = 0.9
"""Bound on the time of kernels, as a share, if row reductions move to other kernels. These read the
same bytes as often, so the model errs alike for both."""

SAVED = 0.15
"""Least share of the time that changes have to save. Predictions of two segmentations of one fusion
err alike: less than those of unrelated kernels (``ERROR`` in ``lowering/cost.py``)."""

ALIKE = 0.03
"""A segmentation that is slower than the fastest by no more than this share of the time is
preferred if it has fewer materialized values."""

LOADED = 0.95
"""Bound on the time of kernels, as a share, if they load values that others store rather than
recompute them. They move no more bytes, but wait for the other kernels."""

SPLIT_BY_DIMS = 0.9
"""Bound on the time of kernels, as a share, if reductions are split by dims. Their first steps read
other rows together, of which the model is less certain."""

COPIED = 0.9
"""Bound on the time of kernels, as a share, if they read copies of inputs that are strided along
their rows."""

WORTH_S = 3e-5
"""Excess of kernels, in seconds, from which on other segmentations are tried. The search takes some
tenths of a second, which 10,000 calls win back."""

PART_FACTORS = (0.75, 1.5, 2.0)
"""Factors on the heuristics' number of parts of split reductions; these are tried last."""

SAVED_BY_PARTS = 0.03
"""Least share of the time that another number of parts has to save. The kernels are the same apart
from their waves and tails. H200: eight definitions whose splits are predicted to save so much take
0.94 times as long (geometric mean; 0.82 to 1.03)."""

WORTH_PARTS_S = 2e-5
"""Seconds beyond the time of their bytes from which on other numbers of parts are tried. These are
only a few trials, which keep the groups of a fusion. H200: a row of the suite with fewer seconds
takes 1.10 times as long by them."""

MOST_CHANGED = 6
"""Most segmentations whose changes are tried."""

MOST_IN_VAIN = 3
"""The search ends after the changes of so many segmentations in succession without a faster one. Of
107 definitions that are searched, of models and at random, three lose 3 to 10% of their predicted
time by it, and the others nothing."""


def refined(fusion: Fusion, device: DeviceProperties, make: Segmenter) -> SegmentedFusion:
    """The fastest segmentation that the search finds, for a fusion with constant sizes.

    Parameters
    ----------
    fusion : Fusion
        Simplified.
    device : DeviceProperties
        The device to schedule for.
    make : Segmenter
        Segments the fusion by a choice.
    """
    first, bandwidth = make(HEURISTIC), device.bandwidth_bytes_per_s
    if device.is_cpu or moved_bytes(first) < LEAST_S * bandwidth:
        return first
    best, choice = timed_kernels(first, device), Choice(materialized=first.rewrites.invariants)
    times = TimedChoices(device, make.base, make, {choice: best}, worth_trying(best, fusion))
    for other in with_rows_moved(first, choice):
        found = times(other)
        if found.is_faster(best, ROWS_MOVED):
            best, choice = found, other
    choice, whole = with_pieces(fusion, times, choice), choice
    best = _with_more_in_memory(times, choice)
    if choice != whole:
        _with_more_in_memory(times, whole)
    if is_slow(best):
        try_best_first(times, try_changes)
        best = _fastest(times, best)
        try_best_first(times, try_splits)
        best = _with_splits_by_dims(times, best)
        factors = (1.0, *PART_FACTORS)
        best = times.known[with_pieces(fusion, times, times.choice(best), factors)]
    return _with_other_parts(times, best).segmented


def with_rows_moved(first: SegmentedFusion, choice: Choice) -> Iterator[Choice]:
    """Choices that move row reductions into the kernel that uses them, or into one before it."""
    if rereads_rows_in_next_kernel(first):
        yield replace(choice, over_rows=False)
    if few_read_rows_twice(first):
        yield replace(choice, rereads_rows=False)


def _with_more_in_memory(times: TimedChoices, choice: Choice) -> TimedKernels:
    """Kernels that store more of the values that later kernels need, if that is faster.

    Kernels with reductions compute more of their results: the number of kernels stays, and so do
    the bytes that they move. Later kernels load values that are stored anyway.
    """
    finders = (
        (computed_of_reductions, 1.0),
        (computed_again, LOADED),
        (crossing_views, COPIED),
    )
    for find, share in finders:
        now, stored = times.known[choice], choice.materialized or ()
        more = [name for name in find(now.segmented) if name not in stored]
        if not more:
            continue
        possible = materializable(times.base(choice.pieces))
        more = [name for name in more if name in possible]
        other = replace(choice, materialized=(*stored, *more))
        if times(other).is_faster(now, share):
            choice = other
    return times.known[choice]


def is_slow(now: TimedKernels) -> bool:
    """Whether kernels take so much longer than their bytes that a change may pay."""
    return now.excess > max(WORTH_S, SAVED * now.seconds)


def try_best_first(
    times: TimedChoices,
    try_changes: Callable[[TimedChoices, Choice], None],
    is_worth: Callable[[TimedKernels], bool] = is_slow,
) -> None:
    """Try changes of the most promising segmentation, again and again, of all that are known.

    Parameters
    ----------
    is_worth : callable
        Whether changes of a segmentation may pay.
    """
    changed, in_vain = set[Choice](), 0
    while in_vain < MOST_IN_VAIN and times.may_try and len(changed) < MOST_CHANGED:
        found, known, least = _next(times, changed, is_worth), len(times.known), times.least
        if found is None:
            break
        changed.add(found)
        try_changes(times, found)
        in_vain = 0 if times.least < least else in_vain + (len(times.known) > known)


def _next(
    times: TimedChoices, changed: set[Choice], is_worth: Callable[[TimedKernels], bool] = is_slow
) -> Choice | None:
    """The most promising segmentation whose changes were not tried, if they may be much faster than
    all that are known.

    The heuristics' segmentation comes first, if it qualifies. The expected time of a change is
    halfway between the segmentation's time and its lower bound. Choices with equal kernels count as
    one.
    """
    tried = [times.known[choice] for choice in changed]
    possible = {
        choice: found.seconds - found.excess / 2
        for choice, found in times.known.items()
        if is_worth(found)
        and times.may_be_beaten_by(found.seconds - found.excess)
        and not any(map(found.is_like, tried))
    }
    heuristics = next(iter(times.known))
    if not changed and heuristics in possible:
        return heuristics
    return min(possible, key=lambda choice: possible[choice], default=None)


def _with_splits_by_dims(times: TimedChoices, best: TimedKernels) -> TimedKernels:
    """The fastest kernels with splits by dims, if they save enough relative to ``best``."""
    found = (times.known[choice] for choice in times.known if choice.by_dims)
    fastest = min(found, key=lambda each: each.seconds, default=best)
    return fastest if fastest.is_faster(best, SPLIT_BY_DIMS) else best


def _with_other_parts(times: TimedChoices, best: TimedKernels) -> TimedKernels:
    """The kernels with another number of parts of split reductions, if that is faster."""
    choice = times.choice(best)
    worth = best.beyond_bytes > max(WORTH_PARTS_S, SAVED * best.seconds)
    if not worth or not best.segmented.rewrites.splits:
        return best
    found = [
        times(replace(choice, parts_factor=factor)) for factor in PART_FACTORS if times.may_try
    ]
    faster = (each for each in found if each.is_faster(best, 1 - SAVED_BY_PARTS))
    return min(faster, key=lambda each: each.seconds, default=best)


def _fastest(times: TimedChoices, first: TimedKernels) -> TimedKernels:
    """The fastest kernels, or those about as fast with fewer materialized values; ``first`` if they
    do not save enough.

    With fewer materialized values than ``first`` they need not save anything.
    """
    stored = {id(found): len(choice.materialized or ()) for choice, found in times.known.items()}
    most = stored[id(first)]
    possible = [
        found
        for found in times.known.values()
        if found.is_faster(first, 1 - SAVED * (stored[id(found)] >= most))
    ]
    least = min((found.seconds for found in possible), default=0.0)
    alike = [found for found in possible if (1 - ALIKE) * found.seconds <= least]
    return min(alike, key=lambda found: (stored[id(found)], found.seconds), default=first)
