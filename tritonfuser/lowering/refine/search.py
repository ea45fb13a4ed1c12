"""Tries changes of a segmentation, and keeps those that the cost model says are faster.

Rules cut a fusion by legality and by bytes. They do not see that a kernel reads one tensor along
another axis than the rest, a sector for each element, or computes a value again for each of its
uses. Where the model says that kernels take much longer than their bytes, other ways to cut are
tried: with one more value in memory, or one less, with reductions split in another way, and with
rows reduced in one kernel and used in the next. The most promising way that was found is changed
next (best-first search): of two tensors that lie across the rest, both may have to be copied before
anything is gained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...device import DeviceProperties
from ...ir import Fusion
from ..cost import LEAST_S, moved_bytes
from ..fuse.segmentation import HEURISTIC, Choice
from ..passes.invariants.materialize import can_be_kept
from ..passes.materialization import materialize_shared
from ..segments.segmented_fusion import SegmentedFusion
from .after_reductions import computed_of_reductions
from .changes import try_changes, try_splits
from .computed_again import computed_again
from .crossing_views import crossing_views
from .kernel_times import TimedKernels, timed_kernels
from .row_rereads import few_read_rows_twice, rereads_rows_in_next_kernel
from .times import BETTER, Times, worth_trying

APART = 0.9
"""Share of the time that kernels may take at most where rows are reduced in other kernels. These
read the same bytes as often, so what the model errs by is alike."""

SAVED = 0.15
"""Share of the time that changes have to save. Predictions of two ways to cut one fusion err alike:
less than those of kernels that have nothing in common (``ERROR`` in ``lowering/cost.py``)."""

ALIKE = 0.03
"""Share of the time by which ways to cut may be slower than the fastest, and be taken for that they
have fewer values in memory."""

LOADED = 0.95
"""Share of the time that kernels may take at most which load what others have stored. They take no
more bytes, but wait for these kernels."""

COPIED = 0.9
"""Share of the time that kernels may take at most which read copies of inputs that lie across
their rows."""

WORTH_S = 3e-5
"""Seconds beyond the time of their bytes from which on kernels are changed: other ways to cut are
tried for some tenths of a second, which 10,000 calls win back."""

SHARES = (0.75, 1.5, 2.0)
"""Parts of reductions, as multiples of what the heuristics want, that are tried at last."""

SHARED = 0.03
"""Share of the time that another number of parts has to save. The kernels are the same but for
their waves and tails. H200: eight definitions with splits that are predicted to save so much take
0.94 times as long (geometric mean; 0.82 to 1.03)."""

WORTH_SHARED_S = 2e-5
"""Seconds beyond the time of their bytes from which on they are tried: these few leave the groups
of a fusion as they are. H200: a row of the suite with fewer takes 1.10 times as long by them."""

MOST_CHANGED = 6
"""Ways to cut whose changes are tried."""

MOST_IN_VAIN = 3
"""Ways to cut, one after the other, whose changes are tried without one that is faster than all
before. Of 107 definitions that are searched, of models and at random, three lose 3 to 10% of their
predicted time by it, and the others nothing."""


def refined(
    fusion: Fusion, device: DeviceProperties, make: Callable[[Choice], SegmentedFusion]
) -> SegmentedFusion:
    """The kernels of a fusion whose sizes do not vary.

    Parameters
    ----------
    fusion : Fusion
        Simplified.
    device : DeviceProperties
        The device to schedule for.
    make : callable
        Cuts the fusion by a choice.
    """
    first, bandwidth = make(HEURISTIC), device.bandwidth_bytes_per_s
    if device.is_cpu or moved_bytes(first) < LEAST_S * bandwidth:
        return first
    best, choice = timed_kernels(first, device), Choice(kept=first.rewrites.invariants)
    times = Times(device, make, {choice: best}, worth_trying(best, fusion))
    for other in _apart(first, choice):
        apart = times(other)
        if apart.is_faster(best, APART):
            best, choice = apart, other
    best = _with_more_in_memory(fusion, times, choice)
    if is_slow(best):
        base = materialize_shared(fusion)[0]
        _try_best_first(times, lambda found: try_changes(base, times, found))
        best = _taken(times, best)
        _try_best_first(times, lambda found: try_splits(base, times, found))
        best = _split(times, best)
    return _shared(times, best).segmented


def _apart(first: SegmentedFusion, choice: Choice) -> Iterator[Choice]:
    """Choices that move row reductions into the kernel that uses them, or into one before it."""
    if rereads_rows_in_next_kernel(first):
        yield replace(choice, over_rows=False)
    if few_read_rows_twice(first):
        yield replace(choice, rereads_rows=False)


def _with_more_in_memory(fusion: Fusion, times: Times, choice: Choice) -> TimedKernels:
    """The kernels where what others need of them is in memory, if that is faster.

    Kernels with reductions compute more of their results: they read and write the same bytes, and
    there are as many of them. Later kernels load what is stored anyway.
    """
    finders = (
        (computed_of_reductions, 1.0),
        (computed_again, LOADED),
        (crossing_views, COPIED),
    )
    for find, share in finders:
        now, kept = times.known[choice], choice.kept or ()
        more = [name for name in find(now.segmented) if name not in kept]
        if not more:
            continue
        possible = can_be_kept(materialize_shared(fusion)[0])
        other = replace(choice, kept=(*kept, *(name for name in more if name in possible)))
        if times(other).is_faster(now, share):
            choice = other
    return times.known[choice]


def is_slow(now: TimedKernels) -> bool:
    """Whether kernels take so much longer than their bytes that a change may pay."""
    return now.excess > max(WORTH_S, SAVED * now.seconds)


def _try_best_first(times: Times, try_changes: Callable[[Choice], None]) -> None:
    """Change the most promising way to cut, then the most promising one of all that are known."""
    changed, in_vain = set[Choice](), 0
    while in_vain < MOST_IN_VAIN and times.may_try and len(changed) < MOST_CHANGED:
        found, known, least = _next(times, changed), len(times.known), times.least
        if found is None:
            break
        changed.add(found)
        try_changes(found)
        in_vain = 0 if times.least < least else in_vain + (len(times.known) > known)


def _next(times: Times, changed: set[Choice]) -> Choice | None:
    """The most promising way to cut whose changes were not tried, and may be much faster than all.

    The heuristics' is the first, if it is one of them. Half of what a change can save at most is
    expected of it. Choices that cut alike are one.
    """
    tried = [times.known[choice] for choice in changed]
    possible = {
        choice: found.seconds - found.excess / 2
        for choice, found in times.known.items()
        if is_slow(found)
        and times.may_be_beaten_by(found.seconds - found.excess)
        and not any(map(found.is_like, tried))
    }
    heuristics = next(iter(times.known))
    if not changed and heuristics in possible:
        return heuristics
    return min(possible, key=lambda choice: possible[choice], default=None)


def _split(times: Times, best: TimedKernels) -> TimedKernels:
    """The fastest kernels of all, where splits by dims save enough beside the other changes."""
    found = (times.known[choice] for choice in times.known if choice.by_dims)
    fastest = min(found, key=lambda each: each.seconds, default=best)
    return fastest if fastest.is_faster(best, 1 - BETTER) else best


def _shared(times: Times, best: TimedKernels) -> TimedKernels:
    """The kernels with reductions in another number of parts, where that is faster."""
    choice = next(choice for choice, found in times.known.items() if found is best)
    worth = best.beyond_bytes > max(WORTH_SHARED_S, SAVED * best.seconds)
    if not worth or not best.segmented.rewrites.splits:
        return best
    found = [times(replace(choice, shares=shares)) for shares in SHARES if times.may_try]
    faster = (each for each in found if each.is_faster(best, 1 - SHARED))
    return min(faster, key=lambda each: each.seconds, default=best)


def _taken(times: Times, first: TimedKernels) -> TimedKernels:
    """The fastest kernels, or ones as fast with less in memory; the first where little is saved.

    Less in memory than at first, of which there was a reason before, need not save anything.
    """
    kept = {id(found): len(choice.kept or ()) for choice, found in times.known.items()}
    most = kept[id(first)]
    possible = [
        found
        for found in times.known.values()
        if found.is_faster(first, 1 - SAVED * (kept[id(found)] >= most))
    ]
    least = min((found.seconds for found in possible), default=0.0)
    alike = [found for found in possible if (1 - ALIKE) * found.seconds <= least]
    return min(alike, key=lambda found: (kept[id(found)], found.seconds), default=first)
